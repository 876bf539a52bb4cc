"""Variables of a posterior moved by an element a draw, in memory where they are there, else a piece at a time.

And the elements, read back from a file. Integers that are numbers of components, as allocations are, get the numbers of
the new places. No block names them: they take values, not places. Which variables they are is read from the draws:
their values are numbers of components, counted from 0 or 1, and relabelled draws agree with one another more than draws
as they came.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import product
from math import prod
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Int, Num

from onebasin.base.errors import ArgumentError
from onebasin.base.files.pieces import PIECE, is_read_later
from onebasin.base.files.sizes import ClaimError
from onebasin.models.symmetry.blocks import Symmetry
from onebasin.models.symmetry.elements import Element, Permuted, on_arrays
from onebasin.models.symmetry.group import Group
from onebasin.posteriors import schema
from onebasin.posteriors.scratch import Scratch
from onebasin.posteriors.view import View

from .draws import workers


def moved(
    dataset: xr.Dataset, group: Group, element: Element, argument: str
) -> tuple[dict[str, xr.DataArray], xr.DataTree | None]:
    """Move every draw of the variables by its element (chain, draw); refuse what the disk has no room for.

    Also returns what holds the moved variables on disk, where they are there; it is removed when it is closed.
    """
    first = {str(n): v.transpose(*schema.SAMPLE_DIMS, ...) for n, v in dataset.data_vars.items()}
    filed = None
    if any(map(is_read_later, first.values())):
        try:
            with workers(1):
                filed = _filed(first, group, element)
        except ClaimError as error:
            raise ArgumentError(f"`{argument}` cannot be aligned: it {error}.") from error
        there = filed[schema.POSTERIOR].data_vars
        made = {}  # with the axes, labels and attributes of the original variables
        for name, like in first.items():
            bare = there[name].drop_vars(list(there[name].coords))
            bare = bare.rename(dict(zip(bare.dims, like.dims, strict=True)))
            made[name] = bare.assign_coords(like.coords).assign_attrs(like.attrs)
    else:
        whole = group.act(element, {n: v.values for n, v in first.items()})
        made = {n: variable.copy(data=whole[n]) for n, variable in first.items()}
    return {n: v.transpose(*dataset[n].dims) for n, v in made.items()}, filed


def _filed(variables: Mapping[str, xr.DataArray], group: Group, element: Element) -> xr.DataTree:
    """Move some draws of a chain at a time."""
    chains, draws = next(iter(variables.values())).shape[:2]
    rows = max(1, PIECE // sum(prod(v.shape[2:]) * v.dtype.itemsize for v in variables.values()))

    def piece(chain: int, first: int) -> dict[str, np.ndarray]:
        place = (chain, slice(first, first + rows))
        own = tuple(on_arrays(part, itemgetter(place)) for part in element)
        return group.act(own, {n: v[place].values for n, v in variables.items()})

    kinds = {n: (v.shape[1:], v.dtype) for n, v in piece(0, 0).items()}
    scratch = Scratch(chains, draws, {schema.POSTERIOR: kinds}, rows=rows)
    try:
        for chain, first in product(range(chains), range(0, draws, rows)):
            for name, array in piece(chain, first).items():
                scratch.put(schema.POSTERIOR, name, chain, first, array)
    except BaseException:
        scratch.remove()
        raise
    return scratch.tree({}, lazy=True)


def element_of(dataset: xr.Dataset, symmetry: Symmetry) -> Element:
    """Read the elements back from what `Alignment.to_dataset` made."""

    def array(place: int, word: str) -> np.ndarray:
        name = f"block{place}_{word}"
        if name not in dataset:
            raise ArgumentError(
                f"`dataset` lacks {name}; give the group `alignment` that was saved with this symmetry."
            )
        return dataset[name].values

    return tuple(block.read_part(partial(array, place)) for place, block in enumerate(symmetry))


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
