"""The leaderboard: every method of ours, and whatever is added, on the reference posteriors.

What comes of it is error against gradients and seconds: how far each method's means, spreads and predictions are from
the reference's, modulo symmetry, and whether that is more than Monte Carlo error.
"""

from .page import STUDY as STUDY
