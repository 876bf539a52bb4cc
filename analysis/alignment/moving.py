"""Moving a chunk of draws by some blocks of a symmetry, on some variables only.

`Group.act` moves everything; here a block sees its variables as all *other* blocks
have moved them. Blocks that permute act on different axes, so they commute, and each block's part of an
element can be replaced without regard to the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from onebasin.models.symmetry.blocks import Symmetry
from onebasin.models.symmetry.elements import Part

from .parts import Parts


def move(
    values: Mapping[str, np.ndarray],
    symmetry: Symmetry,
    parts: Sequence[Part],
    names: Iterable[str],
    *,
    without: int | None = None,
) -> dict[str, np.ndarray]:
    """Move draws (draw, *event) by every block, or by all but one.

    Parameters
    ----------
    values : mapping of str to array
        Draws.
    symmetry : Symmetry
        `Exchangeable` and `Complement` blocks.
    parts : sequence of Part
        One element a draw.
    names : iterable of str
        The variables to return.
    without : int, optional
        Number of the block that stays out.

    Returns
    -------
    dict
        The moved variables; one that no block moved is the array that was given.
    """
    moved = {name: values[name] for name in names}
    for place, (block, part) in enumerate(zip(symmetry, parts, strict=True)):
        if place != without:
            moved = block.act(moved, *part)
    return moved


def bare(symmetry: Symmetry, parts: Sequence[Part]) -> tuple[Symmetry, Parts]:
    """Return how variances move, which have no sign and no complement."""
    kept = [
        moving
        for block, part in zip(symmetry, parts, strict=True)
        if (moving := block.of_variances(part)) is not None
    ]
    return tuple(block for block, _ in kept), tuple(part for _, part in kept)
