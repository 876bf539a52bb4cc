"""A teacher with two ReLU units, free and constrained, by NUTS and by ADVI.

The study repeats section 4.1 and Figure 1 of Pourzanjani, Jiang and Petzold 2017, "Improving the identifiability of
neural networks for Bayesian inference". It adds both engines, ordered biases, held-out scores with the true function,
and two charts of the unit circle without the seam of the Givens chart. With `--full`, it uses many data sets at two
levels of noise, so every number has an interval.
"""

from ..lab.study import Study
from .design import cells, configure, target
from .figures import draw_figures
from .measures import TABLES, measure

STUDY = Study(configure, cells, target, measure, TABLES, draw_figures)
