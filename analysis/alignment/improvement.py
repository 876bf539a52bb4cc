"""Rounds over the blocks of a symmetry: each gets its best element, the others held; and the element to begin with.

Blocks that are settled are passed over, see `descent`. Where a variable's other axis is moved by one other block (a
network's weights between two hidden layers), the reference is moved back instead of the draws being moved: then
whole rows of one matrix are copied, and not columns of every draw.

The first element of a draw does not depend on how the draw's components are numbered. Blocks are solved one after the
other, each only on variables whose other axes are settled: the first hidden layer of a network by its incoming weights,
the second by weights from units that are matched by then, and so on. Where a block has no such variable, components
are compared by their sorted entries. Descent from here gives the same result for every labelling of the input, which a
start at the labels as they came (Ainsworth, Hayase and Srinivasa 2023, algorithm 1) does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from jaxtyping import Bool

from onebasin.models.symmetry.blocks import Block, Exchangeable, Symmetry, axes_of
from onebasin.models.symmetry.elements import Part, Permuted, differ
from onebasin.models.symmetry.group import Group

from .costs import AlignmentReference
from .parts import Parts, copy, move, put, take
from .solving import method, solve

Flags = Bool[np.ndarray, "draw block"]
Values = Mapping[str, np.ndarray]
_MOST = 0.75
"""With a larger share of draws to solve, all are, which saves a copy."""


def improve(
    symmetry: Symmetry, values: Values, reference: AlignmentReference, parts: Parts, settled: Flags
) -> Parts:
    """Solve every block that is not settled, one after the other, for draws (draw, *event) as they came.

    `settled` (draw, block) tells what need not be solved, and is brought up to date in place.
    """
    parts = copy(parts)
    for place, block in enumerate(symmetry):
        open_rows = np.flatnonzero(~settled[:, place])
        if len(open_rows) == 0:
            continue
        rows = slice(None) if len(open_rows) > _MOST * len(settled) else open_rows
        some, old = {n: values[n][rows] for n in block.variables}, take(parts, rows)
        new = solve_among(symmetry, place, block, some, old, reference)
        moved = np.zeros(len(settled), bool)
        moved[rows] = differ((old[place],), (new,))
        put((parts[place],), rows, (new,))
        settled[:, place] = True
        for other in neighbours(symmetry, place):
            settled[moved, other] = False
    return parts


def neighbours(symmetry: Symmetry, place: int) -> list[int]:
    """The blocks that share a variable with one of them."""
    own = set(symmetry[place].variables)
    return [p for p, block in enumerate(symmetry) if p != place and own & set(block.variables)]


def solve_among(
    symmetry: Symmetry,
    place: int,
    block: Block,
    values: Values,
    parts: Parts,
    reference: AlignmentReference,
) -> Part:
    """Solve one block, or what it does to some of its variables, the others where they are; draws are as they came."""
    turns = _turns(symmetry, place, block, values, parts)
    moved = [name for name in block.variables if name not in turns]
    seen = dict(values) | move(values, symmetry, parts, moved, without=place)
    return solve(seen, block, parts[place], reference, turns)


def _turns(
    symmetry: Symmetry, place: int, block: Block, values: Values, parts: Parts
) -> dict[str, Permuted]:
    """Undo how one other block moved the other axis of a block's variables."""
    if method(block, {name: values[name].shape[1:] for name in block.variables}) != "assignment":
        return {}
    turns = {}
    for name in block.variables:
        movers = [p for p, b in enumerate(symmetry) if p != place and name in b.variables]
        if values[name].ndim == 3 and len(movers) == 1:
            mover, part = symmetry[movers[0]], parts[movers[0]]
            if name in mover.axes and len(axes_of(mover.axes[name])) == 1:
                back = cast(Permuted, mover.inverse(part, None))
                turns[name] = back if name in mover.flipped else Permuted(back.permutation)
    return turns


def first_parts(
    values: Values, symmetry: Symmetry, reference: AlignmentReference
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
            beside = list(parts)
            if block.axes and not block.flipped:
                beside[place] = Permuted(parts[place][0])
            solved = solve_among(symmetry, place, block, values, tuple(beside), reference)
        else:
            solved = _by_signature(values, symmetry[place], reference, parts[place])
        # A block that was solved without its flipped variables keeps the signs it had.
        arrays: Any = [b if a is None else a for a, b in zip(solved, parts[place], strict=True)]
        parts[place] = type(solved)(*arrays)
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


def _by_signature(values: Values, block: Block, reference: AlignmentReference, part: Part) -> Part:
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
    return solve(seen, bare, Permuted(part[0]), AlignmentReference(means, weights))


def _signature(values: np.ndarray, axis: int) -> np.ndarray:
    front = np.moveaxis(values, axis + 1, 1)
    return np.sort(np.abs(front.reshape(*front.shape[:2], -1)), axis=-1)
