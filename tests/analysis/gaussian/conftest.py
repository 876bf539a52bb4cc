"""Draws with exactly known moments."""

from __future__ import annotations

import numpy as np
import xarray as xr


def with_moments(rng, num: int, covariance: np.ndarray) -> np.ndarray:
    """Return samples (num, param) whose mean is 0 and whose covariance is `covariance`, up to rounding."""
    raw = rng.standard_normal((num, len(covariance)))
    basis, _ = np.linalg.qr(raw - raw.mean(axis=0))
    return np.sqrt(num) * basis @ np.linalg.cholesky(covariance).T


def random_correlation(rng, size: int, rank: int = 3) -> np.ndarray:
    """Return a correlation matrix of factors with unequal unique variances."""
    loadings = rng.standard_normal((size, rank))
    covariance = loadings @ loadings.T + np.diag(rng.uniform(0.5, 3.0, size))
    scale = np.sqrt(np.diag(covariance))
    return covariance / np.outer(scale, scale)


def one_variable(rows: np.ndarray, chains: int = 2) -> xr.Dataset:
    """Return samples (num, param) as draws of a variable `theta`, chain after chain."""
    theta = rows.reshape(chains, -1, rows.shape[1])
    return xr.Dataset({"theta": (("chain", "draw", "place"), theta)})


def dense(fit) -> np.ndarray:
    """Return the covariance of a fit's rows on the log scale."""
    correlation = np.eye(len(fit.scale)) if fit.correlation is None else fit.correlation
    return correlation * np.outer(fit.scale, fit.scale)
