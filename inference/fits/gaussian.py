"""Gaussians in the unconstrained space, with a mean and a square root of the covariance, and searches for optima."""

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
ByFit = Float[np.ndarray, "fit point"]

LOG_2PI = math.log(2 * math.pi)
AT_ONCE, MANY = 2**20, 200
"""Maximum number of standard coordinates in memory, and of coordinates of fits that one matrix product evaluates."""


@dataclass(frozen=True, eq=False)
class NormalFit:
    """A normal distribution, for example the result of a fit."""

    loc: Vector  # Mean.
    scale: Float[np.ndarray, ...]  # lower Cholesky factor of the covariance, or standard deviations
    elbo: float = math.nan  # ELBO of a fit, in nats, up to the log density's constant.
    converged: bool = True  # Whether a fit's optimiser met its criterion.
    trace: tuple[float, ...] = ()  # ELBO at each evaluation.

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
        """The entropy in nats."""
        return self.log_determinant + 0.5 * len(self.loc) * (LOG_2PI + 1)

    @property
    def log_determinant(self) -> float:
        """The log determinant of the scale."""
        diagonal = self.scale if self.scale.ndim == 1 else np.diag(self.scale)
        return float(np.log(diagonal).sum())

    @cached_property
    def sds(self) -> Vector:
        """Standard deviations."""
        return self.scale if self.scale.ndim == 1 else np.linalg.norm(self.scale, axis=1)

    def points(self, standard: Points) -> Points:
        """Convert standard normal points to points of this distribution."""
        spread = standard * self.scale if self.scale.ndim == 1 else standard @ self.scale.T
        return self.loc + spread

    def standard(self, points: Points) -> Points:
        """Convert points to standard normal coordinates."""
        if self.scale.ndim == 1:
            return (points - self.loc) / self.scale
        found: Points = solve_triangular(self.scale, (points - self.loc).T, lower=True).T
        return found

    def log_density(self, points: Points) -> Float[np.ndarray, " point"]:
        """Return log densities in nats."""
        square = (self.standard(points) ** 2).sum(axis=1)
        return -0.5 * (square + len(self.loc) * LOG_2PI) - self.log_determinant

    def t_points(self, count: int, freedom: float, rng: np.random.Generator) -> Points:
        """Draw from the multivariate t distribution with this mean and scale."""
        ratio = np.sqrt(freedom / rng.chisquare(freedom, size=count))
        return self.points(rng.standard_normal((count, len(self.loc))) * ratio[:, None])


def t_log_densities(proposals: Sequence[tuple[NormalFit, float]], points: Points) -> ByFit:
    """Return log densities of multivariate t distributions from pairs of a fit and its degrees of freedom."""
    fits = [fit for fit, _ in proposals]
    size, freedom = points.shape[1], np.array([freedom for _, freedom in proposals])[:, None]
    if size > MANY or any(fit.scale.ndim == 1 for fit in fits):
        squares = np.stack([np.square(fit.standard(points)).sum(axis=1) for fit in fits])
    else:  # Evaluate hundreds of small fits in one matrix product.
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
    found: ByFit = constant - (freedom + size) / 2 * np.log1p(squares / freedom)
    return found


def moments(
    points: Points,
    weights: Float[np.ndarray, " point"],
    before: NormalFit | None = None,
    trust: float = 0.0,
) -> NormalFit | None:
    """Return the Gaussian with the moments of weighted points; None if their covariance is singular.

    Weights need not sum to one. The covariance of the earlier Gaussian `before` counts as `trust` points.
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
    """Return the lower Cholesky factor of a covariance; None if it is not positive definite."""
    if not (np.isfinite(covariance).all() and (np.diag(covariance) > 0).all()):
        return None
    sds = np.sqrt(np.diag(covariance))
    try:
        factor = np.linalg.cholesky(covariance / np.outer(sds, sds))
    except np.linalg.LinAlgError:
        return None
    return sds[:, None] * factor


FULL = 200  # Maximum number of coordinates for which the whole curvature is computed.
APART = 1.5  # Minimum distance of distinct optima, in sds from the curvature at either.
REACHES = (4.0, 8.0, 12.0, 24.0)
"""Distances from an optimum at which other optima are searched, in standard deviations per coordinate."""
DIRECTIONS, ALIKE = 64, 0.5
"""Number of directions of this search, and the cosine above which two directions count as the same."""
BELOW = 25.0  # Optima this far below the highest Laplace evidence, in nats, are left out.
MOST = 8  # Maximum number of optima.
ITERATIONS = {"maxiter": 200, "maxfun": 400}
GIVEN_UP = 4  # Number of climbs without a peak after which the search ends.
NEAR = 0.5  # Maximum distance in standard deviations between the end of a climb and its peak.
ROUGH, ROUGH_SD, ROUGH_STEPS = 10, 0.1, 200
"""Number of fixed draws of a rough fit, its initial standard deviation, and its maximum number of evaluations."""
WALL = 1e100
FLOOR = 1e-10  # Minimum ratio of a peak's smallest curvature to its largest.
BENT = 1e-2  # Replacement for smaller or negative curvatures, in units of the diagonal.


@dataclass(frozen=True, eq=False)
class Peak:
    """An optimum of the log density with its curvature."""

    vector: Vector
    height: float  # Log density at the optimum, in nats.
    root: Float[np.ndarray, ...]
    """Square root of the inverse curvature; above `FULL` coordinates, sds."""
    is_peak: bool  # Whether the curvature is positive and the peak lies within `NEAR`.

    @property
    def evidence(self) -> float:
        """The Laplace approximation of the log evidence, up to a common constant."""
        if self.root.ndim == 1:
            return self.height + float(np.log(self.root).sum())
        return self.height + float(np.linalg.slogdet(self.root)[1])

    def distance(self, vector: Vector) -> float:
        """Return the distance to a point in standard deviations."""
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
    """Climb from random points, and return the distinct optima, sorted by evidence.

    Half of the starts are uniform, every second one within three times the radius. The other half lie around the best
    optimum so far, many standard deviations away, in the directions with the highest log density. Once a peak is
    known, its curvature whitens the coordinates of all further climbs.
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
    """Climbs by L-BFGS, in coordinates whitened by the first peak's curvature."""

    def __init__(self, counted: CountedDensity) -> None:
        self.counted = counted
        self.centre, self.root = np.zeros(counted.size), np.ones(counted.size)
        self.whitened = False

        def height(u: jax.Array, centre: jax.Array, root: jax.Array) -> jax.Array:
            return counted.density.log_density(centre + (root @ u if root.ndim == 2 else root * u))

        self._search = BestOptimum(height, **ITERATIONS)

    def climb(self, start: Vector, peaks: list[Peak]) -> None:
        """Climb from a point, and add the optimum to the peaks unless it is already known."""
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
        if not np.isfinite(height[0]):  # The log density has no gradient there.
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
    """Return a rough fit with independent coordinates as a peak: its mean and its mean curvature.

    If a log density is unbounded, for example if the scale of effects can fall to zero, climbs do not end in the bulk
    of the probability. The optimum of the ELBO of a few fixed draws does lie there.
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
    """Draw points with a finite log density and gradient."""
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
    """Return a square root of the inverse curvature, and whether the curvature is positive."""
    if counted.size <= FULL:
        return square_root(-counted.hessian(vector))
    # The diagonal of the Hessian is exact up to 1,000 coordinates, and beyond is estimated with random signs.
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
    """Return R such that R R' is the inverse of a precision matrix, and whether the matrix is positive definite.

    Eigenvalues that are too small or negative are replaced.
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
    """Return points at some distances from a peak, in the directions with the highest log density.

    If the log density is higher in one direction than in others at the same distance, there may be another optimum.
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
    if not chosen:  # The log density is not finite at any of these points.
        return np.empty((0, counted.size))
    points = np.concatenate(chosen)
    return points[np.isfinite(counted.gradient(points)[0])][:count]
