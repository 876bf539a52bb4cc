"""The metric of an earlier chain at a start in another labelling of the components.

A metric belongs to the labelling of its chain. Where a chain starts in another labelling of a declared symmetry, its
metric M moves along: with g the element that brings the earlier chain's mean closest to the start, and T what g does
in the unconstrained space, the metric at the start is J M J' with J the Jacobian of T. In coordinates that g permutes
and whose signs it changes, that is M with its rows and columns moved.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from onebasin.models.symmetry.blocks import Symmetry, equal_modes
from onebasin.models.symmetry.closest import closest
from onebasin.models.symmetry.elements import Element
from onebasin.models.symmetry.group import Group
from onebasin.posteriors.view import View

if TYPE_CHECKING:
    from ..density.stan_vectors import Density

STEP, SLICE = 1e-4, 256
"""Of differences in the unconstrained space; and coordinates that are differentiated at once."""

Act = Callable[[jax.Array], jax.Array]
"""The action of a group element on vectors."""


def relabelling(
    view: View, number: int, density: Density, position: np.ndarray, symmetry: Symmetry
) -> tuple[Act, Act] | None:
    """Return what brings an earlier chain to the labelling of a start, and what undoes it; None if it is there."""
    blocks = equal_modes(symmetry)
    names = list(dict.fromkeys(name for block in blocks for name in block.variables))
    if not names or any(name not in view.variables for name in names):
        return None
    start = density.constrain(jnp.asarray(position))
    chain = {n: np.asarray(view.values(n)[number % view.num_chains], np.float64) for n in names}
    mean = {n: v.mean(axis=0) for n, v in chain.items()}
    scale = {n: np.where((sd := v.std(axis=0)) > 0, sd, 1.0) for n, v in chain.items()}
    element = closest(blocks, mean, {n: np.asarray(start[n]) for n in names}, scale)
    group = Group(blocks, {n: np.shape(v) for n, v in mean.items()})

    def acting(element: Element) -> Act:
        def act(vector: jax.Array) -> jax.Array:
            values = density.constrain(vector)
            return density.unconstrain({**values, **group.act(element, values)})

        return act

    pairs = zip(element, group.identity(), strict=True)
    if all(
        a is None or (b is not None and np.array_equal(a, b))
        for part in pairs
        for a, b in zip(*part, strict=True)
    ):
        return None
    return acting(element), acting(group.inverse(element))


def moved(
    metric: np.ndarray, act: Act, undo: Act, position: Float[np.ndarray, " param"]
) -> np.ndarray:
    """Return a metric, (param,) or (param, param), as a group element moves it to a position."""
    size = len(position)
    points = np.random.default_rng(0).normal(size=(2, size))
    images = np.stack([np.asarray(act(jnp.asarray(point))) for point in points])
    by_size = np.argsort(np.abs(points[0]))
    found = np.searchsorted(np.abs(points[0])[by_size], np.abs(images[0]) - 1e-9)
    source = by_size[np.minimum(found, size - 1)]
    sign = np.sign(images[0] * points[0][source])
    if np.allclose(images, sign * points[:, source], rtol=1e-6, atol=1e-8):
        if metric.ndim == 1:
            return metric[source]
        return metric[source][:, source] * sign * sign[:, None]
    # J M J', or its diagonal, with the Jacobian of the action by central differences.
    place, acted = np.asarray(undo(jnp.asarray(position))), jax.vmap(act)
    columns = []
    for first in range(0, size, SLICE):
        steps = STEP * np.eye(min(SLICE, size - first), size, first)
        ahead, behind = (acted(jnp.asarray(place + way * steps)) for way in (1, -1))
        slopes = np.asarray(ahead - behind) / (2 * STEP)
        columns.append(slopes if metric.ndim == 2 else metric[first : first + SLICE] @ slopes**2)
    if metric.ndim == 1:
        return np.sum(columns, axis=0)
    jacobian = np.concatenate(columns).T
    return jacobian @ metric @ jacobian.T
