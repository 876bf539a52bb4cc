"""A Gaussian of the unconstrained space, by its mean and a square root of its covariance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float
from scipy.linalg import solve_triangular
from scipy.special import gammaln

Vector = Float[np.ndarray, " param"]
Matrix = Float[np.ndarray, "param param"]
Points = Float[np.ndarray, "point param"]

LOG_2PI = math.log(2 * math.pi)
AT_ONCE, MANY = 2**20, 200
"""Standard coordinates that are held at a time, and coordinates above which fits are taken one after the other."""


@dataclass(frozen=True, eq=False)
class NormalFit:
    """A normal distribution."""

    loc: Vector  # its mean
    # Lower Cholesky factor of its covariance; or standard deviations, where coordinates are
    # independent.
    scale: Float[np.ndarray, ...]
    # Of a fit, in nats up to the constant that the log density lacks; else NaN.
    elbo: float = math.nan
    converged: bool = True  # whether a fit's optimiser met its criterion
    trace: tuple[float, ...] = ()  # the ELBO at each evaluation

    @property
    def variances(self) -> Vector:
        """The variance of every coordinate."""
        return np.sum(self.scale**2, axis=1) if self.scale.ndim == 2 else self.scale**2

    @property
    def root(self) -> Matrix:
        """A square root of the covariance."""
        return self.scale if self.scale.ndim == 2 else np.diag(self.scale)

    @property
    def entropy(self) -> float:
        """In nats."""
        return self.log_determinant + 0.5 * len(self.loc) * (LOG_2PI + 1)

    @property
    def log_determinant(self) -> float:
        """Log determinant of the scale."""
        diagonal = self.scale if self.scale.ndim == 1 else np.diag(self.scale)
        return float(np.log(diagonal).sum())

    @cached_property
    def sds(self) -> Vector:
        """Standard deviations."""
        return self.scale if self.scale.ndim == 1 else np.linalg.norm(self.scale, axis=1)

    def points(self, standard: Points) -> Points:
        """Points from standard normal ones."""
        spread = standard * self.scale if self.scale.ndim == 1 else standard @ self.scale.T
        return self.loc + spread

    def standard(self, points: Points) -> Points:
        """Standard normal coordinates of points."""
        if self.scale.ndim == 1:
            return (points - self.loc) / self.scale
        found: Points = solve_triangular(self.scale, (points - self.loc).T, lower=True).T
        return found

    def log_density(self, points: Points) -> Float[np.ndarray, " point"]:
        """Log densities in nats."""
        square = (self.standard(points) ** 2).sum(axis=1)
        return -0.5 * (square + len(self.loc) * LOG_2PI) - self.log_determinant

    def t_points(
        self, count: int, freedom: float, rng: np.random.Generator
    ) -> Float[np.ndarray, "point param"]:
        """Draws from the multivariate t with this mean and scale."""
        ratio = np.sqrt(freedom / rng.chisquare(freedom, size=count))
        return self.points(rng.standard_normal((count, len(self.loc))) * ratio[:, None])


def t_log_densities(
    proposals: Sequence[tuple[NormalFit, float]], points: Points
) -> Float[np.ndarray, "fit point"]:
    """Log densities of multivariate t distributions, by the means and scales of fits and by degrees of freedom."""
    fits = [fit for fit, _ in proposals]
    size, freedom = points.shape[1], np.array([freedom for _, freedom in proposals])[:, None]
    if size > MANY or any(fit.scale.ndim == 1 for fit in fits):
        squares = np.stack([np.square(fit.standard(points)).sum(axis=1) for fit in fits])
    else:  # hundreds of small ones are one product of matrices
        inverses = np.linalg.inv(np.stack([fit.scale for fit in fits]))
        shifts = np.einsum("fij,fj->fi", inverses, np.stack([fit.loc for fit in fits]))
        stacked, parts = inverses.reshape(-1, size).T, []
        for some in np.array_split(points, 1 + points.size * len(fits) // AT_ONCE):
            standard = (some @ stacked).reshape(len(some), len(fits), size) - shifts
            parts.append(np.einsum("pfi,pfi->fp", standard, standard))
        squares = np.hstack(parts)
    constant = gammaln((freedom + size) / 2) - gammaln(freedom / 2)
    constant -= size / 2 * np.log(freedom * np.pi)
    constant -= np.array([fit.log_determinant for fit in fits])[:, None]
    found: Float[np.ndarray, "fit point"]
    found = constant - (freedom + size) / 2 * np.log1p(squares / freedom)
    return found


def moments(
    points: Points,
    weights: Float[np.ndarray, " point"],
    before: NormalFit | None = None,
    trust: float = 0.0,
) -> NormalFit | None:
    """Return the Gaussian with the moments of weighted points; None where they have no covariance.

    Weights need not sum to one. The covariance of a Gaussian `before` counts as `trust` points.
    """
    weights = weights / weights.sum()
    loc = weights @ points
    centred = points - loc
    covariance = (centred * weights[:, None]).T @ centred
    if before is not None and trust > 0:
        share = trust / (trust + 1 / (weights**2).sum())
        covariance = (1 - share) * covariance + share * before.root @ before.root.T
    scale = cholesky(covariance)
    return None if scale is None else NormalFit(loc, scale)


def cholesky(covariance: Matrix) -> Matrix | None:
    """Return the lower factor of a covariance; None where it has none."""
    if not (np.isfinite(covariance).all() and (np.diag(covariance) > 0).all()):
        return None
    sds = np.sqrt(np.diag(covariance))
    try:
        factor = np.linalg.cholesky(covariance / np.outer(sds, sds))
    except np.linalg.LinAlgError:
        return None
    return sds[:, None] * factor
