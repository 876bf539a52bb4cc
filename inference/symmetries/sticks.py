"""Components that are nearly exchangeable: a mixture whose weights are broken off a stick.

The likelihood has no labels there, and the prior of the weights may prefer an order. Exchanging the two heaviest
components changes the log density by far less than moving one of their parameters alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np
from jaxtyping import Float

from .measuring import Compared
from .moves import act, swaps
from .result import FoundBlock
from .search import Axes, Search, random_probes

NEARLY = 0.2
"""Change of the log density by an exchange over that by one of the variables alone, up to which it is nearly kept."""
APART, POINTS, SETS = 5.0, 5, 6
"""Nats by which one of the variables alone has to change it, at how many random points at least, of so many sets."""
TINY = 1e-300


def nearly(s: Search) -> Iterator[FoundBlock]:
    """Yield axes of components that change places with the weights of a stick, where hardly anything changes."""
    taken = {name for found in s.found if found.block is not None for name in found.block.variables}
    for name in (g.name for g in s.shares if g.name not in taken):
        shape = s.measured.density.shapes[name]
        # The first axis of each variable that has as many components.
        first = {n: (n, axis) for n, axis in reversed(s.lengths.get(sum(shape) + 1, []))}
        axes = [first[n] for n in s.order if n in first and n not in taken]
        if len(shape) != 1 or not axes:
            continue
        more = (random_probes(s.measured, s.seed + place) for place in range(1, SETS))
        at = s.at([*s.probes, *chain.from_iterable(more)])
        kept = _changes(at, name, axes)
        for axis in list(axes):
            others = [each for each in axes if each != axis]
            if others and np.median(without := _changes(at, name, others)) <= np.median(kept):
                axes, kept = others, without
        alone = np.max([_changes(at, name, [axis], alone=True) for axis in axes], axis=0)
        told = np.isfinite(alone) & (alone > APART)
        if told.sum() < POINTS or np.median(kept[told] / alone[told]) > NEARLY:
            continue
        moves = f"{', '.join(f'{variable}:{axis}' for variable, axis in axes)} and {name}"
        said = (
            f"Exchanging the two heaviest components of {moves}, whose sticks are the weights, changes the log density "
            f"by {np.median(kept):.2g} nats (median of {len(kept)} random points), and one variable alone by up to "
            f"{alone[told].max():.2g}. No declaration moves a stick, whose pieces have an order."
        )
        yield FoundBlock(None, moves, shape[0] + 1, "near", (said,))


def _changes(
    at: Compared, name: str, axes: Axes, *, alone: bool = False
) -> Float[np.ndarray, " point"]:
    """The changes by an exchange of the two heaviest components at random points, in nats.

    The density is that of the weights: in lengths of a stick, which others were broken off before, exchanging weights
    does not keep volumes.
    """
    points, volumes = [], np.zeros(len(at.probes))
    for row, probe in enumerate(at.probes):
        lengths = probe.point[name]
        weights = np.append(lengths, 1.0) * np.append(1.0, np.cumprod(1.0 - lengths))
        pair = tuple(int(k) for k in np.argsort(weights)[-2:])
        moved = act((g for axis in axes for g in swaps([axis], *pair)), probe.point)
        if not alone:
            before = np.append(1.0, 1.0 - np.cumsum(weights)[:-2])
            weights[[*pair]] = weights[[*pair[::-1]]]
            left = np.maximum(np.append(1.0, 1.0 - np.cumsum(weights)[:-2]), TINY)
            moved[name] = np.clip(weights[:-1] / left, TINY, 1.0 - 1e-12)
            volumes[row] = np.log(np.maximum(before, TINY) / left).sum()
        points.append(moved)
    with np.errstate(invalid="ignore"):
        return np.abs(at.measured(points) - at.values + volumes)
