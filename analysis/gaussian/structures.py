"""Centred Gaussians with many parameters, of which the covariance is never formed.

Convention: u (sample, param) is standardised, of about unit variance each. `Spectral` has covariance
U diag(values) U' + rest (I - U U'), with orthonormal U: its inverse has the same form, so that it serves
a diagonal (no vectors), a shrunk full covariance and a precision of low rank. `Factors` has covariance
L L' + diag(unique). Log densities are normalised and exact in float64: the former by its spectrum, the
latter by Woodbury's formula and the determinant lemma.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float
from scipy.linalg import solve_triangular

Samples = Float[np.ndarray, "sample param"]
LOG_2PI = math.log(2 * math.pi)


@dataclass(frozen=True, eq=False)
class Spectral:
    """A covariance by its spectrum."""

    vectors: Float[np.ndarray, "param rank"]  # Orthonormal directions U.
    values: Float[np.ndarray, " rank"]  # Their variances, positive.
    rest: float  # Variance of every direction that is orthogonal to them, positive.

    @property
    def size(self) -> int:
        """Number of parameters."""
        return self.vectors.shape[0]

    @property
    def variance(self) -> Float[np.ndarray, " param"]:
        """Marginal variances."""
        explained = np.square(self.vectors)
        return explained @ self.values + self.rest * (1 - explained.sum(axis=1))

    @property
    def matrix(self) -> Float[np.ndarray, "param param_bis"]:
        """The covariance itself; param^2 numbers."""
        rest = self.rest * np.eye(self.size)
        return rest + (self.vectors * (self.values - self.rest)) @ self.vectors.T

    def draw(self, rng: np.random.Generator, num: int) -> Samples:
        """Independent samples: standard normal ones times the symmetric root of the covariance."""
        normal = rng.standard_normal((num, self.size))
        root = math.sqrt(self.rest)
        stretch = np.sqrt(self.values) - root
        return root * normal + ((normal @ self.vectors) * stretch) @ self.vectors.T

    def log_density(self, u: Samples) -> Float[np.ndarray, " sample"]:
        """Log densities."""
        along = u @ self.vectors
        squares = (np.square(along) / self.values).sum(axis=1)
        log_det = float(np.log(self.values).sum())
        if self.values.size < self.size:
            across = u - along @ self.vectors.T  # not |u|^2 - |along|^2, which cancels
            squares = squares + np.square(across).sum(axis=1) / self.rest
            log_det += (self.size - self.values.size) * math.log(self.rest)
        return -0.5 * (squares + log_det + self.size * LOG_2PI)


@dataclass(frozen=True, eq=False)
class Factors:
    """A covariance of low rank plus a diagonal."""

    loadings: Float[np.ndarray, "param rank"]  # L.
    unique: Float[np.ndarray, " param"]  # The diagonal, positive.

    @property
    def size(self) -> int:
        """Number of parameters."""
        return self.unique.size

    @property
    def variance(self) -> Float[np.ndarray, " param"]:
        """Marginal variances."""
        return np.square(self.loadings).sum(axis=1) + self.unique

    @property
    def matrix(self) -> Float[np.ndarray, "param param_bis"]:
        """The covariance itself; param^2 numbers."""
        return self.loadings @ self.loadings.T + np.diag(self.unique)

    @cached_property
    def _inner(self) -> Float[np.ndarray, "rank rank_bis"]:
        """Cholesky factor of I + L' diag(unique)^-1 L."""
        weighted = self.loadings / np.sqrt(self.unique)[:, None]
        return np.linalg.cholesky(np.eye(weighted.shape[1]) + weighted.T @ weighted)

    def draw(self, rng: np.random.Generator, num: int) -> Samples:
        """Independent samples: loadings times factors, and what is each parameter's own."""
        own = rng.standard_normal((num, self.size)) * np.sqrt(self.unique)
        return own + rng.standard_normal((num, self.loadings.shape[1])) @ self.loadings.T

    def log_density(self, u: Samples) -> Float[np.ndarray, " sample"]:
        """Log densities."""
        weighted = u / self.unique
        inner = solve_triangular(
            self._inner, (weighted @ self.loadings).T, lower=True, check_finite=False
        )
        squares = (u * weighted).sum(axis=1) - np.square(inner).sum(axis=0)
        log_det = np.log(self.unique).sum() + 2 * np.log(np.diagonal(self._inner)).sum()
        return -0.5 * (squares + log_det + self.size * LOG_2PI)


Structure = Spectral | Factors
