"""Benchmark of `onebasin.diagnose` on simulated posteriors with known verdicts.

`families.py` is the table of families with their correct verdicts. `python -m benchmarks.verdicts` draws every family
with many seeds, diagnoses the draws, and counts the errors.
"""
