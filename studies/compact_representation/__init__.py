"""One Gaussian for the posterior of a network, after alignment of its draws.

The study repeats Table 1 and Figures 2, 3 and 5 of Xiao, Liu and Bamler 2023, "A compact representation for Bayesian
neural networks by removing permutation symmetry". It adds other recipes and baselines on the same draws. `--full` has
the paper's size. By default the network is 196-32-10 on 2,000 images of MNIST; with `--quick`, 64-8-10 on 500 digits.
"""

from ..lab.study import Study
from .design import cells, configure, target
from .figures import draw_figures
from .making import make
from .measures import TABLES, measure

STUDY = Study(configure, cells, target, measure, TABLES, draw_figures, make)
