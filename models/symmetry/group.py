"""The group that a symmetry generates on variables of given shapes: elements, products, inverses, orders.

An element has one part for each block, in the symmetry's order: `Permuted`, `Scaled` or `Swapped`. Its arrays
have the leading axes of the draws that it moves, so that one element is as many group elements as there are
draws. Convention: `act` gives part i the place of part ``permutation[i]``, then multiplies by the signs, then by
the factors; ``compose(first, then)`` acts like `first` followed by `then`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations, product
from typing import Any, NamedTuple

import numpy as np

from .blocks import Complement, Exchangeable, Rescalable, Symmetry, axes_of

Shapes = Mapping[str, tuple[int, ...]]


class Permuted(NamedTuple):
    """Of an `Exchangeable` block: `permutation` (*lead, part), `signs` (*lead, part) or None."""

    permutation: np.ndarray
    signs: np.ndarray | None = None


class Scaled(NamedTuple):
    """Of a `Rescalable` block: `factors` (*lead, part), positive."""

    factors: np.ndarray


class Swapped(NamedTuple):
    """Of a `Complement` block: `swapped` (*lead), boolean."""

    swapped: np.ndarray


Part = Permuted | Scaled | Swapped
Element = tuple[Part, ...]


@dataclass(frozen=True)
class Group:
    """The group of a symmetry.

    Parameters
    ----------
    symmetry : Symmetry
        Its blocks.
    shapes : mapping of str to tuple of int
        The shape of each variable in one draw; variables that no block moves may be there too.

    Raises
    ------
    ValueError
        If a block names a variable that is not there, an axis that the variable does not have, axes
        of unequal length, or an axis that another block of its kind already moves; or if
        `complements` stands with other than two parts.
    """

    symmetry: Symmetry
    shapes: Shapes

    def __post_init__(self) -> None:
        """Check the symmetry against the shapes."""
        for block in self.symmetry:
            _check(block, self.shapes)
        for kind in (Exchangeable, Rescalable):
            _check_axes_are_free([b for b in self.symmetry if isinstance(b, kind)])

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many parts each block has (1 for a `Complement`)."""
        return tuple(_size(block, self.shapes) for block in self.symmetry)

    @property
    def log_order(self) -> float:
        """Natural logarithm of the number of elements, infinite with a `Rescalable` block."""
        return sum(
            _log_order(block, size) for block, size in zip(self.symmetry, self.sizes, strict=True)
        )

    def identity(self, lead: tuple[int, ...] = ()) -> Element:
        """Give the element that moves nothing."""
        return tuple(
            _identity(block, lead, size)
            for block, size in zip(self.symmetry, self.sizes, strict=True)
        )

    def random(self, rng: np.random.Generator, lead: tuple[int, ...] = ()) -> Element:
        """Draw elements evenly; factors of a `Rescalable` block are standard log-normal."""
        return tuple(
            _random(block, rng, lead, size)
            for block, size in zip(self.symmetry, self.sizes, strict=True)
        )

    def act(self, element: Element, values: Mapping[str, Any]) -> dict[str, Any]:
        """Move draws (*lead, *event), each by its own element."""
        out = dict(values)
        for kind in (Exchangeable, Rescalable, Complement):
            for block, part in zip(self.symmetry, element, strict=True):
                if isinstance(block, kind):
                    out = block.act(out, *part)
        return out

    def compose(self, first: Element, then: Element) -> Element:
        """Give the element that acts like `first` followed by `then`."""
        parts: list[Part] = []
        for block, a, b in zip(self.symmetry, first, then, strict=True):
            if isinstance(a, Permuted) and isinstance(b, Permuted):
                parts.append(_compose_permuted(a, b))
            elif isinstance(a, Scaled) and isinstance(b, Scaled):
                moved = _along(a.factors, self._permutation_beside(block, then))
                parts.append(Scaled(moved * b.factors))
            else:
                parts.append(Swapped(np.logical_xor(a[0], b[0])))
        return tuple(parts)

    def inverse(self, element: Element) -> Element:
        """Give the element that undoes this one."""
        inverted: list[Part] = [
            _invert_permuted(part) if isinstance(part, Permuted) else part for part in element
        ]
        for place, (block, part) in enumerate(zip(self.symmetry, element, strict=True)):
            if isinstance(part, Scaled):
                back = self._permutation_beside(block, tuple(inverted))
                inverted[place] = Scaled(1 / _along(part.factors, back))
        return tuple(inverted)

    def elements(self) -> Iterator[Element]:
        """Go through every element, the identity first.

        Raises
        ------
        ValueError
            If there are infinitely many, or more than 10 million.
        """
        if self.log_order > math.log(1e7):
            raise ValueError(
                f"The group has exp({self.log_order:.4g}) elements, too many to go through; "
                "draw some with `random`."
            )
        yield from product(
            *(_elements(b, size) for b, size in zip(self.symmetry, self.sizes, strict=True))
        )

    def _permutation_beside(self, block: Any, element: Element) -> np.ndarray | None:
        """The permutation, if any, of the parts that a `Rescalable` block scales."""
        for other, part in zip(self.symmetry, element, strict=True):
            if isinstance(other, Exchangeable) and isinstance(part, Permuted):
                moved = {(n, axis) for n, places in other.axes.items() for axis in axes_of(places)}
                if moved & set(block.axes.items()):
                    return part.permutation
        return None


def _along(values: np.ndarray, permutation: np.ndarray | None) -> np.ndarray:
    return values if permutation is None else np.take_along_axis(values, permutation, axis=-1)


def _compose_permuted(first: Permuted, then: Permuted) -> Permuted:
    permutation = _along(first.permutation, then.permutation)
    if first.signs is None or then.signs is None:
        return Permuted(permutation)
    return Permuted(permutation, _along(first.signs, then.permutation) * then.signs)


def _invert_permuted(part: Permuted) -> Permuted:
    back = np.argsort(part.permutation, axis=-1)
    return Permuted(back, None if part.signs is None else _along(part.signs, back))


def _identity(block: Any, lead: tuple[int, ...], size: int) -> Part:
    if isinstance(block, Exchangeable):
        order = np.broadcast_to(np.arange(size), (*lead, size)).copy()
        return Permuted(order, np.ones((*lead, size)) if block.flipped else None)
    if isinstance(block, Rescalable):
        return Scaled(np.ones((*lead, size)))
    return Swapped(np.zeros(lead, bool))


def _random(block: Any, rng: np.random.Generator, lead: tuple[int, ...], size: int) -> Part:
    if isinstance(block, Exchangeable):
        order = rng.permuted(np.broadcast_to(np.arange(size), (*lead, size)), axis=-1)
        signs = rng.choice([-1.0, 1.0], size=(*lead, size)) if block.flipped else None
        return Permuted(order, signs)
    if isinstance(block, Rescalable):
        return Scaled(np.exp(rng.normal(size=(*lead, size))))
    return Swapped(rng.integers(0, 2, size=lead).astype(bool))


def _elements(block: Any, size: int) -> list[Part]:
    if isinstance(block, Exchangeable):
        orders = [np.array(order) for order in permutations(range(size))]
        if not block.flipped:
            return [Permuted(order) for order in orders]
        signs = [np.array(choice) for choice in product([1.0, -1.0], repeat=size)]
        return [Permuted(order, choice) for order in orders for choice in signs]
    return [Swapped(np.array(False)), Swapped(np.array(True))]


def _log_order(block: Any, size: int) -> float:
    if isinstance(block, Exchangeable):
        return math.lgamma(size + 1) + (size * math.log(2) if block.flipped else 0.0)
    return math.inf if isinstance(block, Rescalable) else math.log(2)


def _size(block: Any, shapes: Shapes) -> int:
    if isinstance(block, Complement):
        return 1
    name, places = next(iter(block.axes.items()))
    return shapes[name][axes_of(places)[0]]


def _check(block: Any, shapes: Shapes) -> None:
    for name in block.variables:
        if name not in shapes:
            raise ValueError(
                f"`symmetry` names {name}, which is not there; there are {', '.join(shapes)}."
            )
    if isinstance(block, Complement):
        return
    if not block.axes:
        raise ValueError("`symmetry` has a block that names no axis.")
    lengths = {}
    for name, places in block.axes.items():
        for axis in axes_of(places):
            if not 0 <= axis < len(shapes[name]):
                raise ValueError(
                    f"`symmetry` moves axis {axis} of {name}, which has the shape {tuple(shapes[name])}."
                )
            lengths[f"axis {axis} of {name}"] = shapes[name][axis]
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{place} has {length}" for place, length in lengths.items())
        raise ValueError(f"`symmetry` moves axes of unequal length together: {said}.")
    if isinstance(block, Exchangeable) and block.complements and _size(block, shapes) != 2:
        raise ValueError(
            f"`complements` belongs to two parts that change places; there are {_size(block, shapes)}."
        )


def _check_axes_are_free(blocks: list[Any]) -> None:
    taken: set[tuple[str, int]] = set()
    for block in blocks:
        moved = {(name, axis) for name, places in block.axes.items() for axis in axes_of(places)}
        for name, axis in sorted(moved & taken):
            raise ValueError(f"`symmetry` has two blocks that move axis {axis} of {name}.")
        taken |= moved
