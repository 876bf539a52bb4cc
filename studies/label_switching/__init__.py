"""Diagnostics raw and aligned, over models whose parts are interchangeable, on data with a known truth.

The experiment is our own: what Stephens 2000, "Dealing with label switching in mixture models" (JRSS B 62(4)),
shows on mixtures, tested here on mixtures, topics, factors, a hidden Markov model and a network, with chains of
NUTS that know nothing of labels. What docs/guides/label-switching.md claims is measured here.
"""

from .page import STUDY as STUDY
