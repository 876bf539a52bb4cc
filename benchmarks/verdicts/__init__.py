"""Posteriors whose answer is known, simulated, and what `onebasin.diagnose` says of them.

`families.py` is the table of families with their truths; `python -m benchmarks.verdicts` draws them for many seeds,
asks, and counts what is wrong.
"""
