"""Moving a chunk of draws by some blocks of a symmetry, on some variables only.

`models.group.Group.act` moves everything; here a block sees its variables as all *other* blocks
have moved them. Blocks that permute act on different axes, so they commute, and each block's part of an
element can be replaced without regard to the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from onebasin.models.symmetry.blocks import Block, Complement, Exchangeable, Symmetry, axes_of
from onebasin.models.symmetry.group import Part, Permuted

from .parts import Parts

_LONG = 256
"""From so many entries a draw on, one `take` a draw is faster than one for all."""


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
        if place == without:
            continue
        if isinstance(block, Exchangeable) and isinstance(part, Permuted):
            _permute(moved, block, part)
        else:
            _complement(moved, block, part[0])
    return moved


def bare(symmetry: Symmetry, parts: Sequence[Part]) -> tuple[Symmetry, Parts]:
    """Return the permutations alone: how variances move, which have no sign and no complement."""
    kept = [
        (Exchangeable(block.axes), Permuted(part.permutation))
        for block, part in zip(symmetry, parts, strict=True)
        if isinstance(block, Exchangeable) and isinstance(part, Permuted)
    ]
    return tuple(block for block, _ in kept), tuple(part for _, part in kept)


def restrict(block: Block, names: Iterable[str]) -> Block | None:
    """Return the block as it acts on some variables, or None where it does not."""
    kept = [name for name in block.variables if name in set(names)]
    if not kept:
        return None
    if isinstance(block, Complement):
        return Complement(tuple(kept))
    if isinstance(block, Exchangeable):
        return Exchangeable(
            {name: places for name, places in block.axes.items() if name in kept},
            flips=tuple(name for name in block.flipped if name in kept),
            complements=tuple(name for name in block.complements if name in kept),
        )
    return replace(block)


def _permute(moved: dict[str, np.ndarray], block: Exchangeable, part: Permuted) -> None:
    for name in block.variables:
        if name not in moved:
            continue
        for axis in axes_of(block.axes.get(name, ())):
            moved[name] = gather(moved[name], part.permutation, axis)
            if part.signs is not None and name in block.flipped:
                moved[name] = moved[name] * _spread(part.signs, moved[name], axis)
        if name in block.complements:
            swapped = part.permutation[:, :1] == 1
            moved[name] = np.where(_rows(swapped[:, 0], moved[name]), 1 - moved[name], moved[name])


def _complement(moved: dict[str, np.ndarray], block: Block, swapped: np.ndarray) -> None:
    for name in block.variables:
        if name in moved:
            moved[name] = np.where(_rows(swapped, moved[name]), 1 - moved[name], moved[name])


def gather(values: np.ndarray, permutation: np.ndarray, axis: int) -> np.ndarray:
    """Reorder axis `axis` of each draw (draw, *event) by its own permutation (draw, part)."""
    if axis == 0:  # whole rows, of all draws at once
        starts = np.arange(len(permutation))[:, None] * permutation.shape[1]
        rows = values.reshape(permutation.size, -1)
        return np.take(rows, (permutation + starts).ravel(), axis=0).reshape(values.shape)
    if values[0].size < _LONG:
        shape = [len(permutation)] + [1] * (values.ndim - 1)
        shape[axis + 1] = -1
        return np.take_along_axis(values, permutation.reshape(shape), axis=axis + 1)
    out = np.empty_like(values)
    for row, order in enumerate(permutation):
        # mode="clip" writes into `out` directly; the indices are known to be good.
        np.take(values[row], order, axis=axis, out=out[row], mode="clip")
    return out


def _spread(factors: np.ndarray, values: np.ndarray, axis: int) -> np.ndarray:
    shape = [len(factors)] + [1] * (values.ndim - 1)
    shape[axis + 1] = -1
    return factors.astype(values.dtype).reshape(shape)


def _rows(mask: np.ndarray, values: np.ndarray) -> np.ndarray:
    return mask.reshape(-1, *[1] * (values.ndim - 1))
