"""Five layers of 32 SELU units on a sinc function: the symmetry as it is, or broken, by mean-field VI and by MCMC.

Kurle, Januschowski, Gasthaus and Wang 2021, "On symmetries in variational Bayesian neural nets", Figure 1 and equation
6. Beyond the paper: numbers, paired over data sets; the posteriors themselves by NUTS and MCLMC; the gap of equation 6
by layer, during the training; what collapses; two scales of the prior.
"""

from ..lab.study import Study
from .design import cells, configure, make, target
from .figures import draw_figures
from .measures import TABLES, measure

STUDY = Study(configure, cells, target, measure, TABLES, draw_figures, make)
