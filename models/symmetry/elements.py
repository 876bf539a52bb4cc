"""Elements of a symmetry's group: one part for each block, in the symmetry's order.

A part's arrays have the leading axes of the draws that it moves, so that one element is as many group elements as
there are draws. Convention: component i of the result is component ``permutation[i]``, times ``signs[i]``, times
``factors[i]``. A matrix gives component i of the result the sum over j of ``matrix[i, j]`` times component j.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool

Shapes = Mapping[str, tuple[int, ...]]
"""The shape of each variable in one draw."""


class Permuted(NamedTuple):
    """The part of an `Exchangeable` block: `permutation` (*lead, component), `signs` (*lead, component) or None."""

    permutation: np.ndarray
    signs: np.ndarray | None = None


class Scaled(NamedTuple):
    """The part of a `Rescalable` block: `factors` (*lead, component), positive."""

    factors: np.ndarray


class Swapped(NamedTuple):
    """The part of a `Complement` block: `swapped` (*lead), boolean."""

    swapped: np.ndarray


class Rotated(NamedTuple):
    """The part of a `Rotation` block: `matrix` (*lead, component, component), orthogonal."""

    matrix: np.ndarray


Part = Permuted | Scaled | Swapped | Rotated
Element = tuple[Part, ...]


def permuted_parts(element: Element) -> tuple[Permuted, ...]:
    """Those parts of an element that permute."""
    return tuple(part for part in element if isinstance(part, Permuted))


def labels_of(part: Part) -> np.ndarray:
    """Return each component's labels (*lead, component, label): its place and sign; none for scales and rotations."""
    if isinstance(part, Permuted):
        signs = () if part.signs is None else (part.signs,)
        return np.stack([part.permutation.astype(float), *signs], axis=-1)
    if isinstance(part, Swapped):
        return part.swapped[..., None, None].astype(float)
    lead = part.matrix.shape[:-2] if isinstance(part, Rotated) else part.factors.shape[:-1]
    return np.zeros((*lead, 0, 1))


def on_arrays[P: Part](part: P, function: Callable[..., np.ndarray], *others: Part) -> P:
    """Apply a function to every array of a part (and the same arrays of others); signs that are None stay so."""
    arrays = zip(part, *others, strict=True)
    made: Any = [None if group[0] is None else function(*group) for group in arrays]
    return type(part)(*made)


def in_order(rotation: Rotated, part: Permuted) -> Rotated:
    """A rotation after which components are ordered, and change their signs, as a part does."""
    matrix = np.take_along_axis(rotation.matrix, part.permutation[..., None], -2)
    return Rotated(matrix if part.signs is None else matrix * part.signs[..., None])


def choose[P: Part](mask: Bool[np.ndarray, " draw"], first: P, second: P) -> P:
    """Take `first` for the draws where the mask is true, `second` for the others."""
    return on_arrays(
        first, lambda a, b: np.where(mask.reshape(-1, *[1] * (a.ndim - 1)), a, b), second
    )


def differ(first: Element, second: Element) -> Bool[np.ndarray, " draw"]:
    """Find the draws that have another permutation, other signs or another complement."""
    differs: Any = False
    for part, other in zip(first, second, strict=True):
        for a, b in zip(part, other, strict=True):
            if a is not None:
                differs = differs | (a != b).reshape(len(a), -1).any(axis=1)
    return np.asarray(differs)
