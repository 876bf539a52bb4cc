"""Parts of elements, one for each draw: taking some draws' parts, replacing them, moving draws by them.

`Group.act` moves everything; with `move` a block sees its variables as all *other* blocks have moved them. Blocks that
permute act on different axes, so they commute, and each block's part of an element can be replaced without regard to
the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Int

from onebasin.models.symmetry.blocks import Symmetry
from onebasin.models.symmetry.elements import Element, Part, Permuted, on_arrays

Parts = tuple[Part, ...]


def take(parts: Parts, rows: Any) -> Parts:
    """The parts of some draws."""
    return tuple(on_arrays(part, lambda a: a[rows]) for part in parts)


def put(parts: Parts, rows: Any, new: Parts) -> None:
    """Overwrite the parts of some draws."""
    for part, other in zip(parts, new, strict=True):
        for array, values in zip(part, other, strict=True):
            if array is not None and values is not None:
                array[rows] = values


def stack(parts: Sequence[Part]) -> Part:
    """Put single elements' parts one below the other."""
    return on_arrays(parts[0], lambda *arrays: np.stack(arrays), *parts[1:])


def copy(parts: Parts) -> Parts:
    """Parts whose arrays can be overwritten."""
    return tuple(on_arrays(part, np.array) for part in parts)


def flatten(element: Element) -> Parts:
    """Put chains one after the other: (chain, draw, ...) becomes (draw, ...)."""
    return tuple(on_arrays(part, lambda a: a.reshape(-1, *a.shape[2:])) for part in element)


def move(
    values: Mapping[str, np.ndarray],
    symmetry: Symmetry,
    parts: Sequence[Part],
    names: Iterable[str],
    *,
    without: int | None = None,
) -> dict[str, np.ndarray]:
    """Move draws (draw, *event) by every permuting or complementing block, or by all but number `without`.

    A variable that no block moved is the array that was given.
    """
    moved = {name: values[name] for name in names}
    for place, (block, part) in enumerate(zip(symmetry, parts, strict=True)):
        if place != without and not _moves_nothing(part):
            moved = block.act(moved, *part)
    return moved


def _moves_nothing(part: Part) -> bool:
    """Tell whether all draws' permutations are the identity: to find that out takes less than to copy draws."""
    if not isinstance(part, Permuted):
        return False
    order, signs = part
    in_order = (order == np.arange(order.shape[-1])).all()
    return bool(in_order and (signs is None or (signs == 1).all()))


def bare(symmetry: Symmetry, parts: Sequence[Part]) -> tuple[Symmetry, Parts]:
    """Return how variances move, which have no sign and no complement."""
    kept = [
        moving
        for block, part in zip(symmetry, parts, strict=True)
        if (moving := block.of_variances(part)) is not None
    ]
    return tuple(block for block, _ in kept), tuple(part for _, part in kept)


def count_transpositions(
    permutation: Int[np.ndarray, "*lead component"],
) -> Int[np.ndarray, "*lead"]:
    """Count the transpositions of permutations of 0, 1, ..., n - 1: n less the number of cycles."""
    size = permutation.shape[-1]
    # Each component learns the smallest number in its cycle: after k rounds, among the next 2^k components.
    smallest, ahead = np.broadcast_to(np.arange(size), permutation.shape), permutation
    for _ in range(max(size - 1, 0).bit_length()):
        smallest = np.minimum(smallest, np.take_along_axis(smallest, ahead, axis=-1))
        ahead = np.take_along_axis(ahead, ahead, axis=-1)
    cycles = (smallest == np.arange(size)).sum(axis=-1)
    return np.asarray(size - cycles)
