"""Elements of a symmetry's group: one part for each block, in the symmetry's order; and linear algebra over GF(2).

A part's arrays have the leading axes of the draws that it moves, so one element holds a group element for each draw.
Convention: component i of the result is component ``permutation[i]``, times ``signs[i]``, times ``factors[i]``. A
matrix gives component i of the result the sum over j of ``matrix[i, j]`` times component j.

Sets of commuting swaps and signs are vectors over GF(2): integers with one bit per entry.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool

_LONG = 256  # With at least this many entries per draw, one `take` per draw is faster than one for all draws.


def take(values: Any, permutation: np.ndarray, axis: int) -> Any:
    """Reorder an axis of the event by permutations (*lead, component)."""
    lead = permutation.ndim - 1
    if lead == 0:
        return values.take(permutation, axis=axis)
    if not isinstance(values, np.ndarray):
        order = _beside(permutation, values, axis)
        return module_of(values).take_along_axis(values, order, axis=lead + axis)
    rows = values.reshape(-1, *values.shape[lead:])
    return gather(rows, permutation.reshape(len(rows), -1), axis).reshape(values.shape)


def gather(values: np.ndarray, permutation: np.ndarray, axis: int) -> np.ndarray:
    """Reorder axis `axis` of each draw (draw, *event) by its own permutation (draw, component)."""
    if axis == 0:  # Take whole rows of all draws at once.
        starts = np.arange(len(permutation))[:, None] * permutation.shape[1]
        rows = values.reshape(permutation.size, -1)
        return np.take(rows, (permutation + starts).ravel(), axis=0).reshape(values.shape)
    if values[0].size < _LONG:
        return np.take_along_axis(values, _beside(permutation, values, axis), axis=axis + 1)
    out = np.empty_like(values)
    for row, order in enumerate(permutation):
        # mode="clip" writes into `out` directly; the indices are known to be good.
        np.take(values[row], order, axis=axis, out=out[row], mode="clip")
    return out


def scale(values: Any, factors: Any, axis: int) -> Any:
    """Multiply an axis of the event by factors (*lead, component)."""
    factors = module_of(values).asarray(factors, values.dtype)
    return values * _beside(factors, values, axis)


def rotate(values: Any, matrix: Any, axis: int) -> Any:
    """Replace the components along an axis of the event by sums of them, by matrices (*lead, component, component)."""
    module, lead = module_of(values), matrix.ndim - 2
    # With components last, as in loadings, rows times the transposed matrix need no copies.
    last = module.moveaxis(values, lead + axis, -1)
    rows = last.reshape(*last.shape[:lead], -1, last.shape[-1])
    turned = module.matmul(rows, module.asarray(np.swapaxes(matrix, -1, -2), values.dtype))
    return module.moveaxis(turned.reshape(last.shape), -1, lead + axis)


def complement(values: Any, swapped: np.ndarray) -> Any:
    """Turn theta into 1 - theta in those draws where `swapped` (*lead) is true."""
    return module_of(values).where(_by_draw(swapped, values), 1 - values, values)


def negate(values: Any, swapped: np.ndarray) -> Any:
    """Change the sign of everything in those draws where `swapped` (*lead) is true."""
    return module_of(values).where(_by_draw(swapped, values), -values, values)


def along(values: np.ndarray, permutation: np.ndarray | None) -> np.ndarray:
    """Reorder components (*lead, component)."""
    return values if permutation is None else np.take_along_axis(values, permutation, axis=-1)


def module_of(values: Any) -> Any:
    """Return NumPy or `jax.numpy`, without loading JAX for NumPy arrays."""
    return values.__array_namespace__() if hasattr(values, "__array_namespace__") else np


def _by_draw(swapped: np.ndarray, values: Any) -> np.ndarray:
    return swapped.reshape((*swapped.shape, *[1] * (np.ndim(values) - swapped.ndim)))


def _beside(components: Any, values: Any, axis: int) -> Any:
    """Reshape components (*lead, component) to broadcast against values, with the components along `axis`."""
    lead = components.ndim - 1
    shape = [*components.shape[:-1], *[1] * (values.ndim - lead)]
    shape[lead + axis] = components.shape[-1]
    return components.reshape(shape)


Shapes = Mapping[str, tuple[int, ...]]  # The shape of each variable in one draw.


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
    """Return the parts of an element that permute."""
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
    """Return a rotation, followed by the order and the signs of a part."""
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


MOST_SPANNED = 16  # Maximum dimension of a space whose elements are all used.


def parity(vector: int) -> int:
    """Check whether an odd number of bits is set."""
    return vector.bit_count() & 1


def bits(vector: int) -> list[int]:
    """Return the positions of the bits that are set."""
    return [place for place in range(vector.bit_length()) if vector >> place & 1]


def reduce(vector: int, echelon: Sequence[int]) -> int:
    """Return the remainder of a vector modulo a basis in echelon form; 0 if it lies in its span."""
    for row in echelon:
        vector = min(vector, vector ^ row)
    return vector


def echelon(vectors: Iterable[int]) -> list[int]:
    """Return a basis of the span in which all vectors have different leading bits, the highest first."""
    rows: list[int] = []
    for vector in vectors:
        left = reduce(vector, rows)
        if left:
            rows = sorted((*rows, left), reverse=True)
    return rows


def span(basis: Sequence[int]) -> list[int]:
    """Return every element of the space that a basis spans, 0 first."""
    found = [0]
    for vector in basis:
        found += [each ^ vector for each in found]
    return found


def orthogonal(vectors: Iterable[int], size: int) -> list[int]:
    """Return a basis of all vectors that have an even overlap with every given one."""
    space = [1 << place for place in range(size)]
    for vector in vectors:
        space = kept_by(space, vector)
    return space


def kept_by(space: Sequence[int], check: int) -> list[int]:
    """Return a basis of the elements of a space that have an even overlap with a vector."""
    even = [vector for vector in space if not parity(vector & check)]
    odd = [vector for vector in space if parity(vector & check)]
    return even + [odd[0] ^ vector for vector in odd[1:]]


def least_basis(basis: Sequence[int], weight: Callable[[int], float]) -> list[int]:
    """Return the basis of least total weight, chosen greedily from all elements, as in a matroid.

    Above `MOST_SPANNED` dimensions, it is chosen only from the given vectors and sums of two.
    """
    rows = echelon(basis)
    if len(rows) <= MOST_SPANNED:
        elements = span(rows)[1:]
    else:
        elements = [*rows, *(a ^ b for place, a in enumerate(rows) for b in rows[:place])]
    chosen: list[int] = []
    kept: list[int] = []
    for element in sorted(elements, key=lambda each: (weight(each), each)):
        left = reduce(element, kept)
        if left:
            kept = sorted((*kept, left), reverse=True)
            chosen.append(element)
        if len(chosen) == len(rows):
            break
    return chosen
