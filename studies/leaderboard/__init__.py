"""The leaderboard: every method of ours, and whatever is added, on the reference posteriors.

What comes of it is error against gradients and seconds: how far each method's means, spreads and predictions are from
the reference's, modulo symmetry, and whether that is more than Monte Carlo error.
"""

from ..lab import Study
from .design import cells, configure, make, target
from .measures import CLAIMS, measure
from .page import SHOWN, TEXT, VIEWS

STUDY = Study(configure, cells, target, measure, CLAIMS, VIEWS, TEXT, shown=SHOWN, make=make)
"""Methods compared with the references, as cells that are kept and resumed."""
