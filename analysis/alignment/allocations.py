"""Integers that are numbers of components, as allocations are: alignment gives them the numbers of the new places.

No block names them: they take values, not places. Which variables they are is read from the draws: their values are
numbers of components, counted from 0 or 1, and relabelled draws agree with one another more than draws as they came.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Int, Num

from onebasin.models.symmetry.elements import Element, Permuted
from onebasin.posteriors import schema
from onebasin.posteriors.view import View

LOOKED_AT = 200
"""Draws of each chain that are looked at."""
GAIN = 0.02
"""By how much the share of pairs of draws that agree has to rise."""


class Allocation(NamedTuple):
    """The place of the block whose components an integer numbers, and the number of the first."""

    block: int
    first: int


def allocations_in(view: View, element: Element, moved: set[str]) -> dict[str, Allocation]:
    """Find integer variables that number the components of a block, among those that no block moves."""
    rows = np.arange(0, view.num_draws, -(-view.num_draws // LOOKED_AT))
    found: dict[str, Allocation] = {}
    for name, variable in view.arrays.items():
        timed = set(schema.SAMPLE_DIMS) <= set(variable.dims)
        if name in moved or not timed or variable.dtype.kind not in "iuf":
            continue
        drawn = variable.isel(draw=rows).transpose(*schema.SAMPLE_DIMS, ...).values
        if not np.isfinite(drawn).all() or (drawn != np.rint(drawn)).any():
            continue
        permuted = [(n, p.permutation) for n, p in enumerate(element) if isinstance(p, Permuted)]
        for block, permutation in permuted:
            for first in (1, 0):
                beyond = first + permutation.shape[-1]
                if not drawn.size or drawn.min() < first or drawn.max() >= beyond:
                    continue
                agree = _agreement(_renumbered(drawn, permutation[:, rows], first))
                if agree > _agreement(drawn) + GAIN:
                    found.setdefault(str(name), Allocation(block, first))
    return found


def renumbered(
    dataset: xr.Dataset, allocations: Mapping[str, Allocation], element: Element
) -> dict[str, xr.DataArray]:
    """Give allocations the numbers that components have after alignment."""
    out = {}
    for name, (block, first) in allocations.items():
        drawn = dataset[name].transpose(*schema.SAMPLE_DIMS, ...)
        part = element[block]
        assert isinstance(part, Permuted)
        values = _renumbered(drawn.values, part.permutation, first)
        out[name] = drawn.copy(data=values).transpose(*dataset[name].dims)
    return out


def _renumbered(
    drawn: Num[np.ndarray, "chain draw *event"],
    permutation: Int[np.ndarray, "chain draw component"],
    first: int,
) -> Num[np.ndarray, "chain draw *event"]:
    """Component `permutation[i]` becomes component i."""
    flat = drawn.reshape(*drawn.shape[:2], -1).astype(np.intp) - first
    moved = np.take_along_axis(np.argsort(permutation, axis=-1), flat, axis=-1) + first
    return moved.reshape(drawn.shape).astype(drawn.dtype)


def _agreement(drawn: Num[np.ndarray, "chain draw *event"]) -> float:
    """Mean over entries of the share of pairs of draws that have the same number."""
    flat = drawn.reshape(drawn.shape[0] * drawn.shape[1], -1)
    numbers = range(int(flat.min()), int(flat.max()) + 1)
    return float(sum(((flat == k).mean(axis=0) ** 2).mean() for k in numbers))
