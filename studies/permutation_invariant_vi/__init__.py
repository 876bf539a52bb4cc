"""A Gaussian averaged over a network's permutations, trained through the ELBO of the average.

Gelberg, van der Ouderaa, van der Wilk and Gal 2024, "Variational inference failures under model symmetries: permutation
invariant posteriors for Bayesian neural networks": Figures 3 to 5 and Tables 1 to 3, with the mutual information by
its permanent next to the paper's InfoNCE, and HMC as the truth. Classifiers are of all of MNIST and of the paper's
widths with `--full`; by default of 2,000 of its images, averaged to 14 x 14, and `--quick` takes 1,000 digits.
"""

from .. import lab
from .design import cells, configure, target
from .making import make, measures
from .tables import TABLES, draw_figures

STUDY = lab.Study(configure, cells, target, measures, TABLES, draw_figures, make)
