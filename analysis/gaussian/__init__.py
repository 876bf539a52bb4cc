"""One Gaussian for a posterior, usually an aligned one: fit, sample, evaluate.

- `fit_gaussian` matches moments of the draws, with one of four structures of the covariance;
- `GaussianFit` is the result: it samples posteriors and gives log densities.
"""

from .fit import COVARIANCES, fit_gaussian
from .gaussian import GaussianFit

__all__ = ["COVARIANCES", "GaussianFit", "fit_gaussian"]
