"""Trying the group on the log density of a symmetrised fit: where it is no symmetry, its ELBO is no bound."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import jax
import numpy as np
import xarray as xr

from onebasin.models.symmetry.blocks import equal_modes
from onebasin.models.symmetry.changes import Changes, changes
from onebasin.models.symmetry.evidence import Evidence
from onebasin.models.target import Target

from ..density.changes import spread_draws
from ..density.symmetry import ELEMENTS_A_DRAW, SymmetryError
from .layout import SymmetryLayout

POINTS = 2
DRAWS = 6
TOLERANCE = 1e-8
"""Nats; what rounding does comes on top."""

Density = Callable[[jax.Array], jax.Array]


def check_start(target: Target, layout: SymmetryLayout, density: Density) -> Evidence:
    """Try random elements at random points before anything is fitted."""
    keys = jax.random.split(jax.random.key(0), POINTS)
    found = _try(layout, density, [jax.random.normal(k, (layout.density.size,)) for k in keys])
    if found.real.any():
        raise SymmetryError(
            f"`symmetry` of {target.name!r} does not hold: a random element changes the log density by "
            f"{found.largest:.3g} nats. Declare what moves together completely; `check_symmetry` says which "
            "block it is.",
            found.largest,
        )
    return Evidence(points=POINTS, unresolved=_unresolved(target, found))


def check_fit(
    target: Target, layout: SymmetryLayout, density: Density, tree: xr.DataTree, start: Evidence
) -> Evidence:
    """Try random elements at draws of the fit too, warn where one changes the log density, and say what was found."""
    moved = [name for block in target.symmetry for name in block.variables]
    draws = spread_draws(tree, layout.density.names, DRAWS, moved)
    count = len(next(iter(draws.values())))
    vectors = [
        layout.density.unconstrain({n: v[i] for n, v in draws.items()}) for i in range(count)
    ]
    found = _try(layout, density, vectors * ELEMENTS_A_DRAW)
    if not found.real.any():
        return start.joined(Evidence(draws=count, unresolved=_unresolved(target, found)))
    evidence = replace(
        start,
        refuted=f"a random element changes the log density by {found.largest:.3g} nats at draws",
    )
    warnings.warn(
        f"`symmetry` of {target.name!r} does not hold where the fit lies: {evidence.refuted}, so that its symmetrised "
        "ELBO is no bound. Declare what moves together completely.",
        RuntimeWarning,
        stacklevel=3,
    )
    return evidence


def _try(layout: SymmetryLayout, density: Density, vectors: list[jax.Array]) -> Changes:
    """Move each point by its own random element."""
    keys = jax.random.split(jax.random.key(1), len(vectors))
    moved = [layout.act(layout.random(k), v) for k, v in zip(keys, vectors, strict=True)]

    def measure(points: Mapping[str, Any]) -> np.ndarray:
        # One after another: data may be large.
        return np.array([float(density(jax.numpy.asarray(v))) for v in points["vector"]])

    points = {"vector": np.asarray(jax.numpy.stack(vectors))}
    there = measure({"vector": np.asarray(jax.numpy.stack(moved))})
    return changes(measure, points, measure(points), there, TOLERANCE)


def _unresolved(target: Target, found: Changes) -> tuple[str, ...]:
    blocks = equal_modes(target.symmetry)
    return () if found.telling.any() else tuple(", ".join(block.variables) for block in blocks)
