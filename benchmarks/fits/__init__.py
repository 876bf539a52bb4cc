"""Benchmark of the verdicts on approximations, compared with NUTS and on targets with known moments."""
