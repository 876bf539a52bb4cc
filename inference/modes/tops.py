"""Many optima of a log density, and the distinct ones among them modulo its symmetry.

Two optima are one where they are as high and nearer than a third of a standard deviation, by the curvature of the
higher. Optima are where modes are looked for, and no modes yet: a density may rise without bound at a point that holds
nothing, and several optima may lie in one basin (`basins`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np

from onebasin.base.errors import InferenceError
from onebasin.base.seeds import Purpose, keys_for
from onebasin.models.target import Target

from ..density.network import density_of
from ..mcmc.optimum import BestOptimum, Optimum
from .folding import Folding, Vector

ITERATIONS = 2000
NEAR = 0.3
"""Standard deviations within which optima are one."""
LEVEL = 0.01
"""Nats by which they may differ."""
CURVED = 1000
"""Coordinates up to which the curvature is computed."""


@dataclass(frozen=True, eq=False)
class Top:
    """A distinct optimum.

    Attributes
    ----------
    vector : array (param,)
        Its place.
    height : float
        Log density there, in nats.
    starts : int
        Starting points that led to it.
    log_evidence : float
        Laplace's estimate of the log integral over it and all its copies; NaN where it is no peak, or not known.
    weight : array (param,)
        Curvature along each coordinate, by which distances to it are measured.
    """

    vector: Vector
    height: float
    starts: int
    log_evidence: float
    weight: Vector


@dataclass(frozen=True, eq=False)
class Tops:
    """Distinct optima, highest first; how many starts there were, and how many led to none."""

    tops: tuple[Top, ...]
    starts: int
    failed: int


def find_tops(
    target: Target,
    folding: Folding,
    *,
    starts: int,
    init_radius: float,
    seed: int,
    done: Callable[[int], None] = lambda _: None,
) -> Tops:
    """Climb from random points, uniform within +-`init_radius` in the unconstrained space.

    Parameters
    ----------
    target : Target
        Whose log density it is.
    folding : Folding
        The same in charts in which its symmetry moves coordinates.
    starts, init_radius, seed : int, float, int
        Of the random points.
    done : callable
        Called after each start, with how many there were.

    Raises
    ------
    InferenceError
        If no start leads to an optimum with a finite log density.
    """
    plain = density_of(target)  # in whose own charts points are drawn
    points = plain.random_starts(keys_for(Purpose.MODE_START, seed, starts), init_radius)
    vectors = jax.vmap(lambda v: folding.density.unconstrain(plain.constrain(v)))(points)
    search = BestOptimum(folding.density.log_density, maxiter=ITERATIONS)
    found = [end for end in search.every(vectors, done) if np.isfinite(end.potential)]
    if not found:
        raise InferenceError(
            f"No optimum with a finite log density was found from {starts} starting points; raise `starts`, or make "
            "`init_radius` smaller."
        )
    tops: list[Top] = []
    curvature = _Curvature(folding)
    for end in sorted(found, key=lambda end: end.potential):
        same = next((n for n, top in enumerate(tops) if _is_one(folding, top, end)), None)
        if same is None:
            tops.append(curvature.top(end))
        else:
            tops[same] = replace(tops[same], starts=tops[same].starts + 1)
    return Tops(tuple(tops), starts, starts - len(found))


def _is_one(folding: Folding, top: Top, end: Optimum) -> bool:
    if abs(top.height + end.potential) > LEVEL + 1e-6 * abs(top.height):
        return False
    near, _ = folding.fold(end.vector[None], top.vector, top.weight)
    return float(((near[0] - top.vector) ** 2) @ top.weight) < NEAR**2


class _Curvature:
    """What an optimum's surroundings are like; compiled once."""

    def __init__(self, folding: Folding) -> None:
        self._folding = folding
        self._hessian = jax.jit(jax.hessian(lambda v: -folding.density.log_density(v)))

    def top(self, end: Optimum) -> Top:
        size, height = len(end.vector), -end.potential
        if size > CURVED:
            return Top(end.vector, height, 1, math.nan, np.ones(size))
        hessian = np.asarray(self._hessian(jnp.asarray(end.vector)))
        weight = np.abs(np.diag(hessian))
        sign, log_det = np.linalg.slogdet(hessian) if np.isfinite(hessian).all() else (0, math.nan)
        evidence = math.nan
        if end.is_flat and sign > 0 and np.linalg.eigvalsh(hessian)[0] > 0:
            evidence = height + 0.5 * (size * math.log(2 * math.pi) - log_det)
            evidence += self._folding.log_copies(end.vector)
        return Top(end.vector, height, 1, evidence, np.where(np.isfinite(weight), weight, 1.0))


def highest_evidence(tops: Sequence[Top]) -> float:
    """The largest of Laplace's log evidences that are known; NaN where none is."""
    return max((t.log_evidence for t in tops if np.isfinite(t.log_evidence)), default=math.nan)


def unseen(counts: Sequence[int], starts: int) -> float:
    """Probability that a next start leads to a mode that none has led to: the share of those met once.

    Good and Turing's estimate (Good 1953, Biometrika 40).
    """
    return sum(count == 1 for count in counts) / starts
