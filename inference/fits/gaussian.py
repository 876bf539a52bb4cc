"""A Gaussian of the unconstrained space, by its mean and a square root of its covariance."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.linalg import solve_triangular
from scipy.optimize import minimize
from scipy.special import gammaln

from ..density.network import CountedDensity
from ..density.start import TRIES, no_start
from ..mcmc.optimum import BestOptimum

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
    """Return the Gaussian with the moments of weighted points; None if they have no covariance.

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
    """Return the lower factor of a covariance; None if it has none."""
    if not (np.isfinite(covariance).all() and (np.diag(covariance) > 0).all()):
        return None
    sds = np.sqrt(np.diag(covariance))
    try:
        factor = np.linalg.cholesky(covariance / np.outer(sds, sds))
    except np.linalg.LinAlgError:
        return None
    return sds[:, None] * factor


FULL = 200  # Coordinates up to which the whole curvature is computed.
APART = 1.5
"""Standard deviations, by the curvature of either, above which two optima are distinct."""
REACHES = (4.0, 8.0, 12.0, 24.0)
"""Standard deviations of an optimum, a coordinate, at which other optima are sought."""
DIRECTIONS, ALIKE = 64, 0.5
"""Directions in which they are sought, and the cosine above which two of them lead to the same place."""
BELOW = 25.0  # Nats below the highest Laplace evidence above which an optimum is left out.
MOST = 8  # Optima that are kept.
ITERATIONS = {"maxiter": 200, "maxfun": 400}
GIVEN_UP = 4  # Climbs after which no further one is tried where none has ended at a peak.
NEAR = 0.5  # Standard deviations within which a climb has to end.
ROUGH, ROUGH_SD, ROUGH_STEPS = 10, 0.1, 200
"""Fixed draws of a rough fit, its standard deviations at the start, and its most evaluations."""
WALL = 1e100
FLOOR = 1e-10  # Minimum ratio of the smallest to the largest curvature at a peak.
BENT = 1e-2
"""The curvature that is taken instead, in units of the diagonal, where it is none of a peak."""


@dataclass(frozen=True, eq=False)
class Peak:
    """An optimum."""

    vector: Vector  # its place
    height: float  # log density there, in nats
    # A square root of the covariance that the curvature gives; standard deviations above `FULL`
    # coordinates.
    root: Float[np.ndarray, ...]
    # Whether the curvature is that of a peak, which lies within half a standard deviation.
    is_peak: bool

    @property
    def evidence(self) -> float:
        """Laplace's log evidence, up to a constant that all peaks share."""
        if self.root.ndim == 1:
            return self.height + float(np.log(self.root).sum())
        return self.height + float(np.linalg.slogdet(self.root)[1])

    def distance(self, vector: Vector) -> float:
        """Standard deviations from here to a point."""
        apart = vector - self.vector
        z = apart / self.root if self.root.ndim == 1 else np.linalg.solve(self.root, apart)
        return float(np.linalg.norm(z))


def find_peaks(
    counted: CountedDensity,
    *,
    starts: int,
    radius: float,
    rng: np.random.Generator,
    done: Callable[[int], None] = lambda _: None,
) -> list[Peak]:
    """Climb from random points; the distinct ends, the largest evidence first.

    One half of the starts are uniform, every other one three times as far out. The others lie around the best end so
    far, many of its standard deviations away (what is far depends on the units of the data), where the log density is
    the highest of many directions. Once a peak is known, its
    curvature whitens the coordinates of all further climbs.
    """
    climber, peaks, number = _Climber(counted), list[Peak](), 0
    points = list(_starts(counted, -(-starts // 2), radius, rng))
    while points:
        climber.climb(points.pop(0), peaks)
        number += 1
        done(number)
        best = max(peaks, key=lambda peak: (peak.is_peak, peak.height), default=None)
        if number == GIVEN_UP and not (best and best.is_peak):
            break
        if not points and number < starts and best is not None:
            points = list(_around(counted, best, starts - number, rng))
    peaks.sort(key=lambda peak: (peak.is_peak, peak.evidence), reverse=True)
    return [p for p in peaks if p.evidence > peaks[0].evidence - BELOW][:MOST]


class _Climber:
    """L-BFGS from points, in coordinates that the first peak's curvature whitens."""

    def __init__(self, counted: CountedDensity) -> None:
        self.counted = counted
        self.centre, self.root = np.zeros(counted.size), np.ones(counted.size)
        self.whitened = False

        def height(u: jax.Array, centre: jax.Array, root: jax.Array) -> jax.Array:
            return counted.density.log_density(centre + (root @ u if root.ndim == 2 else root * u))

        self._search = BestOptimum(height, **ITERATIONS)

    def climb(self, start: Vector, peaks: list[Peak]) -> None:
        """Climb from a point, and add where that ends to the peaks unless it is one of them."""
        apart = start - self.centre
        whole = self.root.ndim == 2
        u = np.linalg.solve(self.root, apart) if whole else apart / self.root
        frame = (jnp.asarray(self.centre), jnp.asarray(self.root))
        (end,) = self._search.every(jnp.asarray(u)[None], given=frame)
        self.counted.gradients += end.evaluations
        vector = self.centre + (self.root @ end.vector if whole else self.root * end.vector)
        if not np.isfinite(end.potential) or any(p.distance(vector) < APART for p in peaks):
            return
        height, slope = self.counted.gradient(vector[None])
        if not np.isfinite(height[0]):  # the log density has no gradient there
            return
        root, definite = _root(self.counted, vector)
        left = slope[0] @ root if root.ndim == 2 else slope[0] * root
        near = bool(np.linalg.norm(left) < NEAR)
        peak = Peak(vector, float(height[0]), root, definite and near)
        if any(peak.distance(other.vector) < APART for other in peaks):
            return
        peaks.append(peak)
        if peak.is_peak and not self.whitened:
            self.centre, self.root, self.whitened = peak.vector, peak.root, True


def smoothed_peak(counted: CountedDensity, rng: np.random.Generator, radius: float) -> Peak:
    """Return the place and the mean curvature of a rough fit with independent coordinates.

    Where a log density rises without bound, as that of effects around their mean does where their scale falls to zero,
    no climb ends at what holds the probability. The ELBO of a few fixed draws has its optimum there.
    """
    (start,) = _starts(counted, 1, radius, rng)
    half = rng.standard_normal((ROUGH // 2, counted.size))
    half /= np.sqrt((half**2).mean(axis=0))
    draws = np.concatenate([half, -half])
    size = counted.size

    def fall(packed: Vector) -> tuple[float, Vector]:
        scale = np.exp(np.clip(packed[size:], -50, 50))
        heights, slopes = counted.gradient(packed[:size] + draws * scale)
        elbo = heights.mean() + packed[size:].sum()
        if not np.isfinite(elbo):
            return WALL, np.zeros(2 * size)
        along = (slopes * draws).mean(axis=0) * scale + 1
        return -float(elbo), -np.concatenate([slopes.mean(axis=0), along])

    first = np.append(start, np.full(size, np.log(ROUGH_SD)))
    end = minimize(fall, first, jac=True, method="L-BFGS-B", options={"maxfun": ROUGH_STEPS}).x
    loc, scale = end[:size], np.exp(np.clip(end[size:], -50, 50))
    height = float(counted.log_density(loc[None])[0])
    if size > FULL:
        return Peak(loc, height, scale, False)
    mean = np.mean([counted.hessian(loc + scale * z) for z in draws], axis=0)
    return Peak(loc, height, square_root(-mean)[0], False)


def _starts(
    counted: CountedDensity, starts: int, radius: float, rng: np.random.Generator
) -> Points:
    """Points with a finite log density and gradient."""
    found: list[Vector] = []
    for _ in range(TRIES):
        reach = np.where(np.arange(counted.BLOCK) % 2, 3 * radius, radius)[:, None]
        points = rng.uniform(-reach, reach, (counted.BLOCK, counted.size))
        found += list(points[np.isfinite(counted.gradient(points)[0])])
        if len(found) >= starts:
            return np.stack(found[:starts])
    if not found:
        tried = TRIES * counted.BLOCK
        raise no_start(counted.density.target.name, f"{tried:,} points were tried")
    return np.stack(found)


def _root(counted: CountedDensity, vector: Vector) -> tuple[Float[np.ndarray, ...], bool]:
    """A square root of the inverse curvature, and whether that is a peak's."""
    if counted.size <= FULL:
        return square_root(-counted.hessian(vector))
    # The diagonal of the Hessian: exact by a product a coordinate up to 1,000 of them, else by random signs.
    size = counted.size
    if size <= 1000:
        curvature = -np.diag(counted.hessian(vector))
    else:
        signs = np.random.default_rng(size).choice([-1.0, 1.0], (counted.BLOCK, size))
        products = counted.products(np.tile(vector, (len(signs), 1)), signs)
        curvature = -(signs * products).mean(axis=0)
    fine = np.isfinite(curvature) & (curvature > 0)
    usual = np.median(curvature[fine]) if fine.any() else 1.0
    return 1 / np.sqrt(np.where(fine, curvature, usual)), bool(fine.all())


def square_root(precision: Matrix) -> tuple[Matrix, bool]:
    """Return R with R R' the inverse of a precision matrix, and whether it is positive definite.

    Where it is not, curvatures that are none of a peak are replaced, in units of the diagonal.
    """
    if not np.isfinite(precision).all():
        return np.eye(len(precision)), False
    diagonal = np.abs(np.diag(precision))
    sds = 1 / np.sqrt(np.where(diagonal > 1e-12, diagonal, 1.0))
    values, vectors = np.linalg.eigh(sds[:, None] * precision * sds)
    least = FLOOR * values[-1]
    safe = np.where(values > least, values, np.maximum(np.abs(values), BENT))
    root = sds[:, None] * vectors / np.sqrt(safe)
    if not np.isfinite(root).all():
        return np.eye(len(precision)), False
    return root, bool(values[0] > least > 0)


def _around(counted: CountedDensity, peak: Peak, count: int, rng: np.random.Generator) -> Points:
    """Points at some distances in standard deviations of the curvature: the highest of many directions.

    A log density that is higher in one direction than in others, at the same distance, may belong to another optimum.
    """
    half = rng.standard_normal((DIRECTIONS // 2, counted.size))
    half *= counted.size**0.5 / np.linalg.norm(half, axis=1)[:, None]
    standard = np.concatenate([half, -half])
    ways = standard * peak.root if peak.root.ndim == 1 else standard @ peak.root.T
    cosines = standard @ standard.T / counted.size
    chosen: list[Points] = []
    for reach in REACHES:
        points = peak.vector + reach * ways
        heights = counted.log_density(points)
        for _ in range(-(-count // len(REACHES))):
            best = int(heights.argmax())
            if np.isfinite(heights[best]):
                chosen.append(points[best][None])
            heights[cosines[best] > ALIKE] = -np.inf
    if not chosen:  # the log density is finite nowhere there
        return np.empty((0, counted.size))
    points = np.concatenate(chosen)
    return points[np.isfinite(counted.gradient(points)[0])][:count]
