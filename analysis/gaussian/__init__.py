"""One Gaussian for a posterior, usually an aligned one: fit, sample, evaluate, save.

- `fit_gaussian` matches moments of the draws, with one of four structures of the covariance;
- `GaussianFit` is the result: it samples posteriors and gives log densities;
- `save_gaussian` writes it to a file, `load_gaussian` reads it.
"""

from .files import GaussianFileError, load_gaussian, save_gaussian
from .fit import COVARIANCES, fit_gaussian
from .gaussian import GaussianFit

__all__ = [
    "COVARIANCES",
    "GaussianFileError",
    "GaussianFit",
    "fit_gaussian",
    "load_gaussian",
    "save_gaussian",
]
