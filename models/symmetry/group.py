"""The group that a symmetry generates on variables of given shapes: elements, products, inverses, orders, and words.

Convention: `act` gives component i the place of component ``permutation[i]``, then multiplies by the signs, then by
the factors; ``compose(first, then)`` acts like `first` followed by `then`.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np

from onebasin.base.errors import ArgumentError

from .block import Block, Place, on_axis, place_in_words, places_of
from .blocks import Symmetry, equal_modes
from .elements import Element, Part, Permuted, Shapes


@dataclass(frozen=True)
class Group:
    """The group of a symmetry.

    It rejects blocks that name a missing variable or axis, axes of unequal length, or an axis that another block
    already moves in the same turn. It also rejects `complements` unless there are two components.
    """

    symmetry: Symmetry  # Its blocks.
    shapes: Shapes
    """Shape of each variable in one draw, perhaps with variables that no block moves."""

    def __post_init__(self) -> None:
        """Check the symmetry against the shapes."""
        for block in self.symmetry:
            block.check(self.shapes)
        taken: dict[tuple[int, str], list[Place]] = {}
        for block in self.symmetry:
            for name, places in block.axes.items():
                others = taken.setdefault((block.turn, name), [])
                for other, place in product(others, places_of(places)):
                    old, new = (on_axis(p, self.shapes[name]) for p in (other, place))
                    if old.axis == new.axis and not old.commutes(new):
                        both = place_in_words(place, name)
                        if other != place:
                            both = f"{place_in_words(other, name)} and {both}, which overlap"
                        raise ArgumentError(
                            f"`symmetry` has two blocks that move {both}. Let only one block move each position."
                        )
                others += places_of(places)
        # One of two blocks has counterparts, and both move the same entries.
        for first, second in combinations(self.symmetry, 2):
            if first.stacked is first and second.stacked is second:
                continue
            marks, more = first.entries(self.shapes), second.entries(self.shapes)
            for name in (n for n in marks if n in more and (marks[n] & more[n]).any()):
                raise ArgumentError(
                    f"Two blocks of `symmetry` move {name}: one by {first.describe()}, the other by "
                    f"{second.describe()}. Combine these blocks into one."
                )

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of components of each block (1 for a `Complement`)."""
        return tuple(block.size(self.shapes) for block in self.symmetry)

    @property
    def log_order(self) -> float:
        """Natural logarithm of the number of elements, infinite with a `Rescalable` or a `Rotation`."""
        return sum(block.log_order(size) for block, size in self._sized())

    def identity(self, lead: tuple[int, ...] = ()) -> Element:
        """Return the element that moves nothing."""
        return tuple(block.identity(lead, size) for block, size in self._sized())

    def random(self, rng: np.random.Generator, lead: tuple[int, ...] = ()) -> Element:
        """Draw elements uniformly; factors of a `Rescalable` block are standard log-normal."""
        return tuple(block.random(rng, lead, size) for block, size in self._sized())

    def act(self, element: Element, values: Mapping[str, Any]) -> dict[str, Any]:
        """Move draws (*lead, *event), each by its own element; reject draws that lack a variable of a block."""
        absent = [n for block in self.symmetry for n in block.variables if n not in values]
        if absent:
            raise ArgumentError(
                f"The symmetry moves {', '.join(absent)}, which `values` does not contain; got "
                f"{', '.join(values) or 'no variables'}. Give all variables that move."
            )
        out = dict(values)
        for place in self._in_turn():
            out = self.symmetry[place].act(out, *element[place])
        return out

    def compose(self, first: Element, then: Element) -> Element:
        """Return the element that acts like `first` followed by `then`."""
        return tuple(
            block.compose(a, b, self._permutation_beside(block, then))
            for block, a, b in zip(self.symmetry, first, then, strict=True)
        )

    def inverse(self, element: Element) -> Element:
        """Return the element that undoes this one."""
        inverted: list[Part] = list(element)
        # Scaling is undone at the places after the inverse permutation.
        for place in self._in_turn():
            block = self.symmetry[place]
            other = self._permutation_beside(block, tuple(inverted))
            inverted[place] = block.inverse(element[place], other)
        return tuple(inverted)

    def elements(self) -> Iterator[Element]:
        """Yield every element, beginning with the identity; reject groups of more than 10 million elements."""
        if self.log_order > math.log(1e7):
            raise ArgumentError(
                f"The group has too many elements to list (logarithm of the number of elements: {self.log_order}). "
                "Draw some of the elements with `random`."
            )
        yield from product(*(block.elements(size) for block, size in self._sized()))

    def _sized(self) -> Iterator[tuple[Block[Any], int]]:
        return zip(self.symmetry, self.sizes, strict=True)

    def _in_turn(self) -> list[int]:
        """Return the indices of the blocks in the order in which they act."""
        return sorted(range(len(self.symmetry)), key=lambda place: self.symmetry[place].turn)

    def _permutation_beside(self, block: Block[Any], element: Element) -> np.ndarray | None:
        """Return the permutation, if any, by which another block moves the same components."""
        for other, part in zip(self.symmetry, element, strict=True):
            if other is not block and other.moved & block.moved and isinstance(part, Permuted):
                return part.permutation
        return None


EXACT = 1e6  # Maximum number of copies that is printed exactly.


def in_words(symmetry: Symmetry) -> str:
    """Describe the moves of a symmetry; empty if it moves nothing."""
    return "; ".join(block.describe() for block in symmetry)


def copies(symmetry: Symmetry, shapes: Shapes) -> str:
    """Report the number of copies that a symmetry makes of every mode; empty if it makes none."""
    moving = equal_modes(symmetry)
    if not moving:
        return ""
    names = {name for block in moving for name in block.variables}
    order = Group(moving, {name: shapes[name] for name in names}).log_order
    if math.isinf(order):
        return (
            "a continuum of equal points in place of every mode, because rotations are continuous"
        )
    if order <= math.log(EXACT):
        return f"{round(math.exp(order)):,} equal copies of every mode"
    exponent, rest = divmod(order / math.log(10), 1)
    return f"about {10**rest:.1f} × 10^{exponent:.0f} equal copies of every mode"
