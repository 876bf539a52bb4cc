"""One Gaussian for a network's posterior, after its draws were brought into one basin.

Xiao, Liu and Bamler 2023, "A compact representation for Bayesian neural networks by removing permutation symmetry":
Table 1 and Figures 2, 3 and 5, with other recipes and the baselines on the same draws. The paper's size is `--full`; by
default the network is 196-32-10 on 2,000 images of MNIST, and `--quick` takes 64-8-10 on 500 digits.
"""

from ..lab.study import Study
from .design import cells, configure, target
from .figures import draw_figures
from .making import make
from .measures import TABLES, measure

STUDY = Study(configure, cells, target, measure, TABLES, draw_figures, make)
