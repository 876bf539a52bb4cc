"""Five layers of 32 SELU units on a sinc function, with the symmetry intact or broken, by mean-field VI and by MCMC.

The study repeats Figure 1 and equation 6 of Kurle, Januschowski, Gasthaus and Wang 2021, "On symmetries in variational
Bayesian neural nets". It adds numbers paired over data sets, the posteriors by NUTS and MCLMC, and the gap of equation
6 by layer during training. It also counts collapsed units and uses several prior scales.
"""

from ..lab.study import Study
from .design import cells, configure, make, target
from .figures import draw_figures
from .measures import TABLES, measure

STUDY = Study(configure, cells, target, measure, TABLES, draw_figures, make)
