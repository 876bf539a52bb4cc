"""A first element for every draw that does not depend on how the draw's components are numbered.

Blocks are solved one after the other, each only on variables whose other axes are settled: the first
hidden layer of a network by its incoming weights, the second by weights from units that are matched by
then, and so on. Where a block has no such variable, components are compared by their sorted entries. Descent
from here gives the same result for every labelling of the input, which a start at the labels as they
came (Ainsworth, Hayase and Srinivasa 2023, algorithm 1) does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from onebasin.models.symmetry.blocks import Block, Exchangeable, Symmetry, axes_of
from onebasin.models.symmetry.elements import Part, Permuted
from onebasin.models.symmetry.group import Group

from .costs import Reference
from .improvement import solve_among
from .parts import Parts
from .solving import method, solve

Values = Mapping[str, np.ndarray]


def first_parts(
    values: Values, symmetry: Symmetry, reference: Reference
) -> tuple[Parts, list[bool]]:
    """Match draws (draw, *event) with a reference, block after block; say which blocks that settles."""
    num = len(next(iter(values.values())))
    shapes = {name: array.shape[1:] for name, array in values.items()}
    parts = list(Group(symmetry, shapes).identity((num,)))
    waiting = list(range(len(symmetry)))
    settled = [False] * len(symmetry)
    while waiting:
        place = next((p for p in waiting if _settled(symmetry, p, waiting, shapes)), waiting[0])
        free = _settled(symmetry, place, waiting, shapes)
        block = symmetry[place].restricted(free)
        if block is not None:
            beside = [*parts[:place], _without_signs(parts[place], block), *parts[place + 1 :]]
            solved = solve_among(symmetry, place, block, values, tuple(beside), reference)
        else:
            solved = _by_signature(values, symmetry[place], reference, parts[place])
        parts[place] = _with_signs(solved, parts[place])
        settled[place] = len(free) == len(symmetry[place].variables)
        waiting.remove(place)
    return tuple(parts), settled


def _settled(
    symmetry: Symmetry, place: int, waiting: list[int], shapes: Mapping[str, tuple[int, ...]]
) -> list[str]:
    """Variables of a block that no waiting block moves, and that make it an easy problem."""
    block = symmetry[place]
    others = {n for p in waiting if p != place for n in symmetry[p].variables}
    free = [name for name in block.variables if name not in others]
    if block.axes:
        if method(block, shapes) == "exchange":
            free = [n for n in free if n in block.axes and len(axes_of(block.axes[n])) == 1]
        if not any(name in block.axes for name in free):
            return []
    return free


def _by_signature(values: Values, block: Block, reference: Reference, part: Part) -> Part:
    """Match components by their entries in order of size, which no other block changes."""
    if not block.axes:
        return part
    seen, means, weights = {}, {}, {}
    for name, places in block.axes.items():
        for axis in axes_of(places):
            key = f"{name}, axis {axis}"
            seen[key] = _signature(values[name], axis)
            means[key] = _signature(reference.mean[name][None], axis)[0]
            weights[key] = np.asarray(np.mean(reference.weight[name]))
    bare = Exchangeable(dict.fromkeys(seen, 0))
    return solve(seen, bare, Permuted(part[0]), Reference(means, weights))


def _signature(values: np.ndarray, axis: int) -> np.ndarray:
    front = np.moveaxis(values, axis + 1, 1)
    return np.sort(np.abs(front.reshape(*front.shape[:2], -1)), axis=-1)


def _without_signs(part: Part, block: Block) -> Part:
    return part if block.flipped or not block.axes else Permuted(part[0])


def _with_signs(solved: Part, before: Part) -> Part:
    """A block that was solved without its flipped variables keeps the signs it had."""
    arrays: Any = [b if a is None else a for a, b in zip(solved, before, strict=True)]
    return type(solved)(*arrays)
