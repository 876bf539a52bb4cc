"""Whole variables that take one of two forms, all together: a change of sign, or the complement of binary weights."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from onebasin.base.errors import ArgumentError

from .arrays import complement, negate
from .block import Axes, Block, Values, check_names
from .elements import Shapes, Swapped


@dataclass(frozen=True)
class Whole(Block[Swapped]):
    """A group of two: nothing happens, or every variable changes, whatever its shape."""

    turn = 2

    @property
    def axes(self) -> Mapping[str, Axes]:
        """None: it moves whole variables."""
        return {}

    @abstractmethod
    def restricted(self, names: Iterable[str]) -> Whole | None:
        """The block as it acts on some variables alone; None where it does not."""

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

    def read_part(self, read: Callable[[str], np.ndarray]) -> Swapped:
        """Rebuild a part from its array."""
        return Swapped(read("swapped").astype(bool))

    def check(self, shapes: Shapes) -> None:
        """Refuse shapes that lack one of its variables."""
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

    names: str | tuple[str, ...]

    def __post_init__(self) -> None:
        """Refuse what is no name of a variable, or none at all."""
        _check_some(self.names)

    @property
    def complemented(self) -> tuple[str, ...]:
        """Its variables."""
        return _names(self.names)

    def describe(self) -> str:
        """Say in plain words what it moves."""
        return f"complements of {', '.join(self.variables)}"

    def restricted(self, names: Iterable[str]) -> Complement | None:
        """The block as it acts on some variables alone; None where it does not."""
        kept = _among(self.complemented, names)
        return Complement(kept) if kept else None


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

    names: str | tuple[str, ...]
    complements: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what is no name of a variable, none at all, or one that changes in two ways."""
        _check_some(self.names)
        check_names("complements", self.complements)
        both = [name for name in self.complements if name in self.flipped]
        if both:
            raise ArgumentError(
                f"`complements` names {', '.join(both)}, which `names` already flips."
            )

    @property
    def variables(self) -> tuple[str, ...]:
        """Every variable that the block touches."""
        return (*self.flipped, *self.complemented)

    @property
    def flipped(self) -> tuple[str, ...]:
        """The variables that change sign."""
        return _names(self.names)

    @property
    def complemented(self) -> tuple[str, ...]:
        """The variables theta that become 1 - theta."""
        return tuple(self.complements)

    def describe(self) -> str:
        """Say in plain words what it moves."""
        complements = (
            f", with complements of {', '.join(self.complements)}" if self.complements else ""
        )
        return f"changes of sign of {', '.join(self.flipped)} as a whole{complements}"

    def restricted(self, names: Iterable[str]) -> Flip | Complement | None:
        """The block as it acts on some variables alone; None where it does not."""
        among = set(names)
        kept, complemented = _among(self.flipped, among), _among(self.complemented, among)
        if kept:
            return Flip(kept, complemented)
        return Complement(complemented) if complemented else None


def _check_some(names: Any) -> None:
    check_names("names", (names,) if isinstance(names, str) else names)
    if not names:
        raise ArgumentError("`names` is empty; name at least one variable.")


def _names(names: str | tuple[str, ...]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _among(own: tuple[str, ...], names: Iterable[str]) -> tuple[str, ...]:
    among = set(names)
    return tuple(name for name in own if name in among)
