"""A single Gaussian that approximates a posterior, usually after alignment: fit, sample, evaluate.

- `fit_gaussian` matches the moments of the draws, with a diagonal or full covariance;
- `GaussianFit` is the result: it samples posteriors and gives log densities.
"""

from .gaussian import COVARIANCES, GaussianFit, fit_gaussian

__all__ = ["COVARIANCES", "GaussianFit", "fit_gaussian"]
