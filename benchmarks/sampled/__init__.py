"""Benchmark of `onebasin.diagnose` on sampled posteriors whose verdict and numbers are known without onebasin.

`kinds.py` and `questions.py` are tables of kinds: a short Stan program, simulated data (`data.py`), and the truth.
`references.py` has exact posteriors and long runs of programs without label switching. `truths.py` has the correct
verdicts, and `numbers.py` the comparison. `python -m benchmarks.sampled` samples every kind for several seeds,
diagnoses the draws, and prints the errors.
"""
