"""Candidates for a symmetry: involutions that each touch one variable, and sets of them.

Convention: values are one point, name to array of the variable's own shape. The generators of one search commute (all
swap the same two parts, or change signs, or take complements), so that a set of them acts in any order.

Such sets are vectors over GF(2), integers of which a bit is an entry: the set that does what two sets do after one
another is their sum ``a ^ b``.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from onebasin.models.symmetry.axis_part import AxisPart
from onebasin.models.symmetry.gf2 import bits

Point = Mapping[str, np.ndarray]
Place = int | AxisPart  # An axis along which parts lie, or a part of it.


@dataclass(frozen=True)
class Generator:
    """An involution on one variable: two parts change places, signs change, or theta becomes 1 - theta."""

    name: str
    kind: Literal["swap", "negate", "complement"]
    axis: Place | None = None  # along which the parts lie; None where the variable moves as a whole
    parts: tuple[int, ...] = ()  # the two that change places, or the one that changes its sign
    inside: tuple[int, int] | None = None  # axis and place within which alone parts change places

    def act(self, value: np.ndarray) -> np.ndarray:
        """Move one value."""
        if self.kind == "complement":
            return np.asarray(1.0 - value)
        if self.axis is None:
            return np.asarray(-value)
        moved = np.array(value)
        where: list[Any] = [slice(None)] * value.ndim
        if self.inside is not None:
            where[self.inside[0]] = self.inside[1]
        axis, *parts = axis_at(self.axis, self.parts)
        if self.kind == "negate":
            where[axis] = parts[0]
            moved[tuple(where)] *= -1.0
            return moved
        there = list(where)
        where[axis], there[axis] = parts
        moved[tuple(where)], moved[tuple(there)] = value[tuple(there)], value[tuple(where)]
        return moved


def axis_at(place: Place, parts: Iterable[int]) -> list[Any]:
    """An axis, and the index of each of some parts along it: positions, where they lie along a part of the axis."""
    if isinstance(place, int):
        return [place, *parts]
    return [place.axis, *(place.positions[:, part].ravel() for part in parts)]


Generators = Sequence[Generator]


def act(generators: Iterable[Generator], point: Point) -> dict[str, np.ndarray]:
    """Move a point by all of some generators."""
    moved = dict(point)
    for generator in generators:
        moved[generator.name] = generator.act(moved[generator.name])
    return moved


def by_name(generators: Iterable[Generator]) -> dict[str, tuple[Generator, ...]]:
    """Gather generators by their variable."""
    found: dict[str, tuple[Generator, ...]] = {}
    for generator in generators:
        found[generator.name] = (*found.get(generator.name, ()), generator)
    return found


def on_parts(generators: Iterable[Generator], parts: tuple[int, ...]) -> tuple[Generator, ...]:
    """The same generators on other parts; those that move whole variables as they are."""
    return tuple(g if g.axis is None else replace(g, parts=parts) for g in generators)


@dataclass(frozen=True)
class Moves:
    """The moves of one search; a set of them is an integer, a bit a move.

    A move is the generators of one variable that only together stay inside its support; mostly one.
    """

    each: tuple[tuple[Generator, ...], ...]

    def names(self, chosen: int | None = None) -> tuple[str, ...]:
        """The variables that a set moves, or that any move does."""
        places = range(len(self.each)) if chosen is None else bits(chosen)
        return tuple(dict.fromkeys(self.each[place][0].name for place in places))

    def of(self, name: str) -> int:
        """All moves of one variable."""
        return sum(1 << place for place, move in enumerate(self.each) if move[0].name == name)

    def generators(self, chosen: int) -> tuple[Generator, ...]:
        """Those of a set."""
        return tuple(g for place in bits(chosen) for g in self.each[place])

    def act(self, chosen: int, point: Point) -> dict[str, np.ndarray]:
        """Move a point by a set."""
        return act(self.generators(chosen), point)

    def weight(self, chosen: int) -> int:
        """Count the generators of a set."""
        return len(self.generators(chosen))


Shapes = Mapping[str, tuple[int, ...]]


def lengths(shapes: Shapes) -> dict[int, list[tuple[str, int]]]:
    """The axes by how many parts lie along them: those with several in common, and few parts, first."""
    found: dict[int, list[tuple[str, int]]] = {}
    for name, shape in shapes.items():
        for axis, length in enumerate(shape):
            if length > 1:
                found.setdefault(length, []).append((name, axis))
    return dict(sorted(found.items(), key=lambda item: (len(item[1]) == 1, item[0])))


def swaps(axes: Sequence[tuple[str, int]], first: int, second: int) -> list[Generator]:
    """Two parts change places, along each of some axes."""
    return [Generator(name, "swap", axis, (first, second)) for name, axis in axes]


def signs_of_part(axes: Sequence[tuple[str, int]], part: int) -> list[Generator]:
    """One part changes its sign, along each of some axes."""
    return [Generator(name, "negate", axis, (part,)) for name, axis in axes]
