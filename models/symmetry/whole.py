"""Whole variables that take one of two forms, all together: a change of sign, or the complement of binary weights."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from onebasin.base.errors import ArgumentError

from .block import Axes, Block, Values, check_names
from .elements import Shapes, Swapped, complement, negate


@dataclass(frozen=True)
class Whole(Block[Swapped]):
    """A group of two: nothing happens, or every variable changes, whatever its shape."""

    turn = 2

    names: str | tuple[str, ...]

    def __post_init__(self) -> None:
        """Reject what is no name of a variable, or none at all."""
        check_names("names", self._names)
        if not self.names:
            raise ArgumentError("`names` is empty; name at least one variable.")

    @property
    def _names(self) -> tuple[str, ...]:
        return (self.names,) if isinstance(self.names, str) else self.names

    @property
    def axes(self) -> Mapping[str, Axes]:
        """None: it moves whole variables."""
        return {}

    @property
    def variables(self) -> tuple[str, ...]:
        """Every variable that the block touches."""
        return (*self.flipped, *self.complemented)

    def restricted(self, names: Iterable[str]) -> Flip | Complement | None:
        """The block as it acts on some variables alone; None where it does not."""
        among = set(names)
        flipped, complemented = (
            tuple(name for name in own if name in among)
            for own in (self.flipped, self.complemented)
        )
        if flipped:
            return Flip(flipped, complemented)
        return Complement(complemented) if complemented else None

    def act(self, values: Values, swapped: Any) -> dict[str, Any]:
        """Change the draws (*lead, *event) for which `swapped` (*lead) is true."""
        out = dict(values)
        for names, change in ((self.flipped, negate), (self.complemented, complement)):
            for name in (name for name in names if name in out):
                out[name] = change(out[name], np.asarray(swapped))
        return out

    def identity(self, lead: tuple[int, ...], size: int) -> Swapped:
        """The part that moves nothing."""
        return Swapped(np.zeros(lead, bool))

    def random(self, rng: np.random.Generator, lead: tuple[int, ...], size: int) -> Swapped:
        """Draw evenly."""
        return Swapped(rng.integers(0, 2, size=lead).astype(bool))

    def elements(self, size: int) -> list[Swapped]:
        """Both."""
        return [Swapped(np.array(False)), Swapped(np.array(True))]

    def log_order(self, size: int) -> float:
        """Return log 2: the group has two elements."""
        return math.log(2)

    def compose(self, first: Swapped, then: Swapped, beside: object) -> Swapped:
        """The part that acts like `first` followed by `then`."""
        return Swapped(np.logical_xor(first.swapped, then.swapped))

    def inverse(self, part: Swapped, beside: object) -> Swapped:
        """The part that undoes one: itself."""
        return part

    def check(self, shapes: Shapes) -> None:
        """Reject shapes that lack one of its variables."""
        self.check_names(shapes)


@dataclass(frozen=True)
class Complement(Whole):
    """Binary weights: every entry theta of every variable becomes 1 - theta, all together.

    Where the complement goes with exchanging two components, it is part of their block:
    ``Exchangeable({"mu": 0}, complements=("theta",))``.

    Parameters
    ----------
    names : str or tuple of str
        The variables.

    Raises
    ------
    TypeError
        If a name is no text.
    ValueError
        If there is none.

    Examples
    --------
    >>> ob.Complement("theta").complemented
    ('theta',)
    """

    kind = "complement"

    @property
    def complemented(self) -> tuple[str, ...]:
        """Its variables."""
        return tuple(self._names)

    def describe(self) -> str:
        """Say in plain words what it moves."""
        return f"complements of {', '.join(self.variables)}"


@dataclass(frozen=True)
class Flip(Whole):
    """Whole variables that change sign together, whatever their shapes.

    Abilities and discriminations of an item-response model: ``Flip(("theta", "a"))``. Where each part of a variable
    has a sign of its own, as factors do, it is ``Exchangeable({"L": 1}, flips=True)``.

    Parameters
    ----------
    names : str or tuple of str
        The variables that change sign.
    complements : tuple of str
        Variables theta that become 1 - theta at the same time.

    Raises
    ------
    TypeError
        If a name is no text.
    ValueError
        If there is none, or one is in both.

    Examples
    --------
    >>> ob.Flip(("theta", "a")).flipped  # abilities and discriminations of an item-response model
    ('theta', 'a')
    """

    kind = "flip"

    complements: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Reject what is no name of a variable, none at all, or one that changes in two ways."""
        super().__post_init__()
        check_names("complements", self.complements)
        both = [name for name in self.complements if name in self.flipped]
        if both:
            raise ArgumentError(
                f"`complements` names {', '.join(both)}, which `names` already flips."
            )

    @property
    def flipped(self) -> tuple[str, ...]:
        """The variables that change sign."""
        return tuple(self._names)

    def describe(self) -> str:
        """Say in plain words what it moves."""
        complements = (
            f", with complements of {', '.join(self.complements)}" if self.complements else ""
        )
        return f"changes of sign of {', '.join(self.flipped)} as a whole{complements}"
