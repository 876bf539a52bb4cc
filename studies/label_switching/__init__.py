"""Diagnostics raw and aligned, over models whose parts are interchangeable, on data with a known truth.

The experiment is our own: what Stephens 2000, "Dealing with label switching in mixture models" (JRSS B 62(4)),
shows on mixtures, held here against mixtures, topics, factors, a hidden Markov model and a network, with chains of
NUTS that know nothing of labels. What docs/label-switching.md claims is measured here.
"""

from ..lab.study import Study
from .conclusions import conclude
from .design import cells, configure, make, target

STUDY = Study(configure=configure, cells=cells, target=target, conclude=conclude, make=make)
