"""A teacher with two ReLU units, free and constrained, by NUTS and by ADVI.

Pourzanjani, Jiang and Petzold 2017, "Improving the identifiability of neural networks for Bayesian
inference", section 4.1 and Figure 1. Beyond the paper: both engines, biases ordered or not, held-out
scores against the true function, and two charts of the unit circle without the seam of Givens'.
With --full, many data sets at two levels of noise: every number then has an interval.
"""

from ..lab.study import Study
from .design import cells, configure, target
from .figures import draw_figures
from .measures import TABLES, measure

STUDY = Study(configure, cells, target, measure, TABLES, draw_figures)
