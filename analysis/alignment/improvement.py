"""One round over the blocks of a symmetry: each gets its best element, the others held.

Blocks that are settled are passed over, see `descent`. Where a variable's other axis is moved by one other block (a
network's weights between two hidden layers), the reference is moved back instead of the draws being moved: then
whole rows of one matrix are copied, and not columns of every draw.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np
from jaxtyping import Bool

from onebasin.models.symmetry.blocks import Block, Symmetry, axes_of
from onebasin.models.symmetry.elements import Part, Permuted

from .costs import Reference, Turn
from .moving import move
from .parts import Parts, copy, differ, put, take
from .solving import method, solve

Flags = Bool[np.ndarray, "draw block"]
Values = Mapping[str, np.ndarray]
_MOST = 0.75
"""With a larger share of draws to solve, all are, which saves a copy."""


def improve(
    symmetry: Symmetry, values: Values, reference: Reference, parts: Parts, settled: Flags
) -> Parts:
    """Solve every block that is not settled, one after the other.

    Parameters
    ----------
    symmetry : Symmetry
        The blocks.
    values : mapping of str to array (draw, *event)
        Draws as they came.
    reference : Reference
        What they are matched with.
    parts : Parts
        Where they are.
    settled : array (draw, block)
        What need not be solved; brought up to date in place.
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
    reference: Reference,
) -> Part:
    """Solve one block, the others where they are.

    Parameters
    ----------
    symmetry : Symmetry
        All blocks.
    place : int
        Which one.
    block : Block
        That block, or what it does to some of its variables.
    values : mapping of str to array (draw, *event)
        Draws as they came.
    parts : Parts
        Where they are.
    reference : Reference
        What they are matched with.
    """
    turns = _turns(symmetry, place, block, values, parts)
    moved = [name for name in block.variables if name not in turns]
    seen = dict(values) | move(values, symmetry, parts, moved, without=place)
    return solve(seen, block, parts[place], reference, turns)


def _turns(
    symmetry: Symmetry, place: int, block: Block, values: Values, parts: Parts
) -> dict[str, Turn]:
    """Those variables of a block whose other axis one other block moves."""
    if method(block, {name: values[name].shape[1:] for name in block.variables}) != "assignment":
        return {}
    turns = {}
    for name in block.variables:
        movers = [p for p, b in enumerate(symmetry) if p != place and name in b.variables]
        if values[name].ndim == 3 and len(movers) == 1:
            turn = _turn(symmetry[movers[0]], name, parts[movers[0]])
            if turn is not None:
                turns[name] = turn
    return turns


def _turn(block: Block, name: str, part: Part) -> Turn | None:
    if name not in block.axes or len(axes_of(block.axes[name])) != 1:
        return None
    permutation, signs = cast(Permuted, part)
    back = np.argsort(permutation, axis=1)
    if signs is None or name not in block.flipped:
        return Turn(back)
    return Turn(back, np.take_along_axis(signs, back, axis=1))
