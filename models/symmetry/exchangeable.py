"""Interchangeable components: permutations, with changes of sign and complements where they belong to them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import permutations, product
from typing import Any

import numpy as np

from onebasin.base.errors import ArgumentError

from .axis_part import AxisPart
from .block import Axes, Block, Place, Values, check_axes, check_names, on_axis, places_of
from .elements import Permuted, Shapes, along, complement, scale, take


class Permuting(Block[Permuted]):
    """A block whose group permutes components, each perhaps with its own sign."""

    turn = 0

    def identity(self, lead: tuple[int, ...], size: int) -> Permuted:
        """The part that moves nothing."""
        order = np.broadcast_to(np.arange(size), (*lead, size)).copy()
        return Permuted(order, np.ones((*lead, size)) if self.flipped else None)

    def random(self, rng: np.random.Generator, lead: tuple[int, ...], size: int) -> Permuted:
        """Draw permutations evenly, and signs with flips."""
        order = rng.permuted(np.broadcast_to(np.arange(size), (*lead, size)), axis=-1)
        signs = rng.choice([-1.0, 1.0], size=(*lead, size)) if self.flipped else None
        return Permuted(order, signs)

    def elements(self, size: int) -> list[Permuted]:
        """Every permutation, with all signs where there are flips."""
        orders = [np.array(order) for order in permutations(range(size))]
        if not self.flipped:
            return [Permuted(order) for order in orders]
        signs = [np.array(choice) for choice in product([1.0, -1.0], repeat=size)]
        return [Permuted(order, choice) for order in orders for choice in signs]

    def log_order(self, size: int) -> float:
        """Logarithm of the number of permutations, times that of signs."""
        return math.lgamma(size + 1) + (size * math.log(2) if self.flipped else 0.0)

    def compose(self, first: Permuted, then: Permuted, beside: object) -> Permuted:
        """The part that acts like `first` followed by `then`."""
        permutation = along(first.permutation, then.permutation)
        if first.signs is None or then.signs is None:
            return Permuted(permutation)
        return Permuted(permutation, along(first.signs, then.permutation) * then.signs)

    def inverse(self, part: Permuted, beside: object) -> Permuted:
        """The part that undoes one."""
        back = np.argsort(part.permutation, axis=-1)
        return Permuted(back, None if part.signs is None else along(part.signs, back))


@dataclass(frozen=True)
class Exchangeable(Permuting):
    """Interchangeable components: one permutation acts on the named axes of every variable.

    Parameters
    ----------
    axes : mapping of str to int, AxisPart, or tuple of these
        Variable name to axis; to several axes where one permutation acts on all of them (both axes
        of a hidden Markov model's transition matrix); to an `AxisPart` where components are a factor or a slice of an
        axis.
    flips : bool or tuple of str
        Whether a component may also change the sign of all its entries (odd activations, loadings of
        factors): in every variable, or in those named.
    complements : tuple of str
        Only of two components: variables theta that become 1 - theta where the two change places (the
        weight of the first component of a mixture of two).

    Raises
    ------
    TypeError
        If `axes` maps no names to axes, or `flips` or `complements` hold anything but names.
    ValueError
        If `flips` names a variable that has no axis, or `complements` one that has.

    Examples
    --------
    >>> block = ob.Exchangeable({"mu": 0, "sigma": 0}, complements=("theta",))  # of a mixture of two
    >>> moved = block.act({"mu": np.array([-1.0, 3.0]), "theta": np.array(0.25)}, np.array([1, 0]))
    >>> moved["mu"].tolist(), float(moved["theta"])
    ([3.0, -1.0], 0.75)
    """

    kind = "exchangeable"

    axes: Mapping[str, Axes]
    flips: bool | tuple[str, ...] = False
    complements: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the names, each kind alone and against one another."""
        check_axes("axes", self.axes, several=True, parts=True)
        if not isinstance(self.flips, bool):
            check_names("flips", self.flips)
        check_names("complements", self.complements)
        if not self.variables:
            raise ArgumentError(
                "`axes` is empty; name the variables whose components are interchangeable, such as {'mu': 0}."
            )
        unknown = [name for name in self.flipped if name not in self.axes]
        if unknown:
            raise ArgumentError(
                f"`flips` names {', '.join(unknown)}, but the block moves {', '.join(self.axes)}."
            )
        twice = [name for name in self.complements if name in self.axes]
        if twice:
            raise ArgumentError(
                f"`complements` names {', '.join(twice)}, which `axes` already moves."
            )

    @property
    def flipped(self) -> tuple[str, ...]:
        """The variables that change sign."""
        if isinstance(self.flips, bool):
            return tuple(self.axes) if self.flips else ()
        return tuple(self.flips)

    def act(self, values: Values, permutation: Any, signs: Any = None) -> dict[str, Any]:
        """Move draws (*lead, *event): component i of the result is component `permutation[i]`, times `signs[i]`.

        Permutations of 0, 1, ..., H - 1 and signs are of shape (*lead, component), with NumPy or JAX; signs only with
        `flips`. Those of the block's variables that are there are moved; all values are returned.
        """
        if signs is not None and not self.flipped:
            raise ArgumentError("`signs` were given, but this block has flips=False.")
        permutation = np.asarray(permutation)
        out = dict(values)
        for name in (name for name in self.axes if name in out):
            for place in places_of(self.axes[name]):
                order, factors = permutation, signs
                axis = place.axis if isinstance(place, AxisPart) else place
                if isinstance(place, AxisPart):
                    length = out[name].shape[permutation.ndim - 1 + axis]
                    order = place.widened(permutation, length)
                    factors = None if signs is None else place.spread(signs, length)
                out[name] = take(out[name], order, axis)
                if factors is not None and name in self.flipped:
                    out[name] = scale(out[name], factors, axis)
        swapped = np.asarray(permutation[..., 0] == 1)
        for name in (name for name in self.complements if name in out):
            out[name] = complement(out[name], swapped)
        return out

    def describe(self) -> str:
        """Say in plain words what it moves."""
        flips = f" with changes of sign of {', '.join(self.flipped)}" if self.flipped else ""
        moved = dict.fromkeys(self.variables, "")
        for name, place in sorted(self.moved, key=str):
            moved[name] += f":{place.word}" if isinstance(place, AxisPart) else ""
        return f"permutations of {', '.join(n + part for n, part in moved.items())}{flips}"

    def restricted(self, names: Iterable[str]) -> Exchangeable | None:
        """The block as it acts on some variables alone; None where it does not."""
        kept = set(names) & set(self.variables)
        if not kept:
            return None
        return Exchangeable(
            {name: places for name, places in self.axes.items() if name in kept},
            flips=tuple(name for name in self.flipped if name in kept),
            complements=tuple(name for name in self.complements if name in kept),
        )

    def of_variances(self, part: Permuted) -> tuple[Exchangeable, Permuted]:
        """Variances change places with the components, whatever the signs."""
        return Exchangeable(self.axes), Permuted(part.permutation)

    def entries(self, shapes: Shapes) -> dict[str, np.ndarray]:
        """Mark the entries that it moves: name to a boolean array of the variable's shape."""
        marks = super().entries(shapes)
        for name, places in self.axes.items():
            marks[name][...] = False
            for part in (on_axis(place, shapes[name]) for place in places_of(places)):
                np.moveaxis(marks[name], part.axis, 0)[part.positions] = True
        return marks

    def whole(self, shapes: Shapes) -> Exchangeable:
        """The same block, with an axis in the place of a part that is all of it."""

        def known(name: str, place: Place) -> Place:
            if not isinstance(place, AxisPart) or place.axis >= len(shapes[name]):
                return place
            return place.axis if place == on_axis(place.axis, shapes[name]) else place

        axes: dict[str, Axes] = dict(self.axes)
        for name in self.axes.keys() & shapes:
            own = tuple(known(name, place) for place in places_of(self.axes[name]))
            axes[name] = own if len(own) > 1 else own[0]
        return replace(self, axes=axes)

    def check(self, shapes: Shapes) -> None:
        """Reject shapes that it cannot move; `complements` belongs to two components."""
        super().check(shapes)
        if self.complements and self.size(shapes) != 2:
            raise ArgumentError(
                f"`complements` belongs to two components that change places; there are {self.size(shapes)}."
            )
