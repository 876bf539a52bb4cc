"""Distinct optima of a log density from many starts, with the curvature there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize

from ..density.counted import CountedDensity
from ..density.start import TRIES, no_start
from ..mcmc.optimum import BestOptimum
from .gaussian import Matrix, Points, Vector

FULL = 200
"""Coordinates up to which the whole curvature is computed."""
APART = 1.5
"""Standard deviations, by the curvature of either, from which on two optima are distinct."""
REACHES = (4.0, 8.0, 12.0, 24.0)
"""Standard deviations of an optimum, a coordinate, at which other optima are sought."""
DIRECTIONS, ALIKE = 64, 0.5
"""Directions in which they are sought, and the cosine from which on two of them lead to the same place."""
BELOW = 25.0
"""Nats below the highest Laplace evidence from which on an optimum is left out."""
MOST = 8
"""Optima that are kept."""
ITERATIONS = {"maxiter": 200, "maxfun": 400}
GIVEN_UP = 4
"""Climbs after which no further one is tried where none has ended at a peak."""
NEAR = 0.5
"""Standard deviations within which a climb has to end."""
ROUGH, ROUGH_SD, ROUGH_STEPS = 10, 0.1, 200
"""Fixed draws of a rough fit, its standard deviations at the start, and its most evaluations."""
WALL = 1e100
FLOOR = 1e-10
"""Share of the largest curvature that the smallest of a peak has at least."""
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
