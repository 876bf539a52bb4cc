"""Posteriors that are really sampled, each with a verdict and numbers that are known without onebasin.

`kinds.py` and `questions.py` are tables of kinds: a short Stan program, data that are simulated (`data.py`), and what
is true. `references.py` has exact posteriors and long runs of programs that leave no label open, `truths.py` the right
verdicts, `numbers.py` the comparison. `python -m benchmarks.sampled` samples every kind for several seeds, asks, and
prints what is wrong.
"""
