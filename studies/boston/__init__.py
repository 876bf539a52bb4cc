"""Boston Housing with 50 ReLU units, free and with unit-norm weights, by NUTS on 80/20 splits.

The study repeats section 4.2, Tables 1 and 2, of Pourzanjani, Jiang and Petzold 2017, "Improving the identifiability of
neural networks for Bayesian inference".
"""

from ..lab.study import Study
from .design import cells, configure, target
from .measures import TABLES, measure

STUDY = Study(configure, cells, target, measure, TABLES)
