"""Distinct optima of a log density from many starts, with the curvature there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..density.counted import CountedDensity
from ..density.start import TRIES, no_start
from ..mcmc.optimum import BestOptimum, Optimum
from .gaussian import Matrix, Points, Vector

FULL = 200
"""Coordinates up to which the whole curvature is computed."""
APART = 1.5
"""Standard deviations, by the curvature of either, from which on two optima are distinct."""
REACHES = (4.0, 12.0)
"""Standard deviations of an optimum, a coordinate, from which other optima are sought."""
BELOW = 25.0
"""Nats below the highest Laplace evidence from which on an optimum is left out."""
MOST = 8
"""Optima that are kept."""
ITERATIONS = {"maxiter": 200, "maxfun": 400}
TRIES_OF_CURVATURE = 3
"""Ends whose curvature may whiten the coordinates."""
FLOOR = 1e-10
"""Share of the largest curvature that the smallest of a peak has at least."""
BENT = 1e-2
"""The curvature that is taken instead, in units of the diagonal, where it is none of a peak."""


@dataclass(frozen=True, eq=False)
class Peak:
    """An optimum.

    Attributes
    ----------
    vector : array (param,)
        Its place.
    height : float
        Log density there, in nats.
    root : array (param, param) or (param,)
        A square root of the covariance that the curvature gives; standard deviations above `FULL` coordinates.
    is_peak : bool
        Whether the gradient vanishes, and the curvature is that of a peak.
    """

    vector: Vector
    height: float
    root: Float[np.ndarray, ...]
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
    far, many of its standard deviations away: what is far depends on the units of the data. Once a peak is known, its
    curvature whitens the coordinates of all further climbs.

    Raises
    ------
    InferenceError
        If no point with a finite log density is found.
    """
    climber, ends = _Climber(counted), []
    points = list(_starts(counted, -(-starts // 2), radius, rng))
    while points:
        ends.append(climber.climb(points.pop(0)))
        done(len(ends))
        if not points and len(ends) < starts:
            best = min(ends, key=lambda end: end.potential)
            points = list(_around(counted, best.vector, starts - len(ends), rng))
    peaks: list[Peak] = []
    for end in sorted(ends, key=lambda end: end.potential):
        if not np.isfinite(end.potential) or any(p.distance(end.vector) < APART for p in peaks):
            continue
        root, definite = _root(counted, end.vector)
        peak = Peak(end.vector, -end.potential, root, definite and end.is_flat)
        if all(peak.distance(other.vector) >= APART for other in peaks):
            peaks.append(peak)
        if len(peaks) == 2 * MOST:
            break
    peaks.sort(key=lambda peak: (peak.is_peak, peak.evidence), reverse=True)
    return [p for p in peaks if p.evidence > peaks[0].evidence - BELOW][:MOST]


class _Climber:
    """L-BFGS from points, in coordinates that the first peak's curvature whitens."""

    def __init__(self, counted: CountedDensity) -> None:
        self.counted = counted
        self.centre, self.root = np.zeros(counted.size), np.ones(counted.size)
        self.tries = TRIES_OF_CURVATURE

        def height(u: jax.Array, centre: jax.Array, root: jax.Array) -> jax.Array:
            return counted.density.log_density(centre + (root @ u if root.ndim == 2 else root * u))

        self._search = BestOptimum(height, **ITERATIONS)

    def climb(self, start: Vector) -> Optimum:
        """Where the climb from a point ends, with the gradient in the coordinates of the climb."""
        apart = start - self.centre
        whole = self.root.ndim == 2
        u = np.linalg.solve(self.root, apart) if whole else apart / self.root
        frame = (jnp.asarray(self.centre), jnp.asarray(self.root))
        (end,) = self._search.every(jnp.asarray(u)[None], given=frame)
        self.counted.gradients += end.evaluations
        moved = self.root @ end.vector if whole else self.root * end.vector
        end = replace(end, vector=self.centre + moved)
        if self.tries and np.isfinite(end.potential):
            self.tries -= 1
            root, definite = _root(self.counted, end.vector)
            if definite:
                self.centre, self.root, self.tries = end.vector, root, 0
        return end


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
    curvature = -_diagonal(counted, vector)
    fine = np.isfinite(curvature) & (curvature > 0)
    usual = np.median(curvature[fine]) if fine.any() else 1.0
    return 1 / np.sqrt(np.where(fine, curvature, usual)), bool(fine.all())


def _diagonal(counted: CountedDensity, vector: Vector) -> Vector:
    """The diagonal of the Hessian: exact by a product a coordinate up to 1,000 of them, else by random signs."""
    size = counted.size
    if size <= 1000:
        return np.diag(counted.hessian(vector))
    signs = np.random.default_rng(size).choice([-1.0, 1.0], (counted.BLOCK, size))
    return (signs * counted.products(np.tile(vector, (len(signs), 1)), signs)).mean(axis=0)


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
    return sds[:, None] * vectors / np.sqrt(safe), bool(values[0] > least > 0)


def _around(
    counted: CountedDensity, vector: Vector, count: int, rng: np.random.Generator
) -> Points:
    """Points with a finite log density, by some distances in standard deviations of the curvature."""
    root, _ = _root(counted, vector)
    standard = rng.standard_normal((counted.BLOCK, counted.size))
    standard *= np.resize(REACHES, counted.BLOCK)[:, None]
    points = vector + (standard * root if root.ndim == 1 else standard @ root.T)
    with np.errstate(all="ignore"):
        there = points[np.isfinite(counted.gradient(points)[0])]
    return there[:count]
