"""One Gaussian for a posterior, usually an aligned one: fit, sample, evaluate, save.

- `fit_gaussian` matches moments of the draws, with one of four structures of the covariance;
- `GaussianFit` is the result: it samples posteriors, gives log densities, and saves itself;
- `load_gaussian` reads a saved one.
"""

from .files import GaussianFileError, load_gaussian
from .fit import COVARIANCES, fit_gaussian
from .gaussian import GaussianFit

__all__ = ["COVARIANCES", "GaussianFileError", "GaussianFit", "fit_gaussian", "load_gaussian"]
