"""Positive scalings of incoming weights, undone in the outgoing ones; signs and complements of whole variables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onebasin.base.errors import ArgumentError

from .block import Axes, Block, Values, check_axes, check_names
from .elements import Scaled, Shapes, Swapped, along, complement, negate, scale


@dataclass(frozen=True)
class Rescalable(Block[Scaled]):
    """Positive scaling: incoming axes times a, outgoing axes divided by a.

    This is a symmetry of only the likelihood. An example is the scaling of weights into and out of a unit with a
    positively homogeneous activation, such as ReLU. Alignment divides it out; posteriors are not invariant under it.

    Parameters
    ----------
    incoming, outgoing : mapping of str to int
        Variable name to axis within a draw.

    Raises
    ------
    TypeError
        If an argument does not map names to axes.

    Examples
    --------
    >>> block = ob.networks.Rescalable({"W1": 1, "b1": 0}, {"W2": 0})
    >>> moved = block.act({"W1": np.ones((1, 2)), "W2": np.ones((2, 1))}, np.array([2.0, 4.0]))
    >>> moved["W1"].tolist(), moved["W2"].tolist()
    ([[2.0, 4.0]], [[0.5], [0.25]])
    """

    kind = "rescalable"
    turn = 1
    keeps_density = False

    incoming: Mapping[str, int]
    outgoing: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the names and axes."""
        check_axes("incoming", self.incoming, several=False)
        check_axes("outgoing", self.outgoing, several=False)
        if not self.axes:
            raise ArgumentError(
                "`incoming` is empty. Map each scaled variable to its axis, as in {'W1': 1}."
            )

    @property
    def axes(self) -> Mapping[str, Axes]:
        """Every variable that is scaled, with its axis."""
        return {**self.incoming, **self.outgoing}

    def act(self, values: Values, factors: Any) -> dict[str, Any]:
        """Scale draws (*lead, *event) by `factors` (*lead, component), all positive, with NumPy or JAX.

        Variables of the block that are present are scaled; all values are returned.
        """
        out = dict(values)
        for name, axis in self.incoming.items():
            if name in out:
                out[name] = scale(out[name], factors, axis)
        for name, axis in self.outgoing.items():
            if name in out:  # A variable in both takes both factors.
                out[name] = scale(out[name], 1 / factors, axis)
        return out

    def describe(self) -> str:
        """Describe the moved variables in plain words."""
        return f"positive scalings of {', '.join(self.variables)}"

    def restricted(self, names: Iterable[str]) -> Rescalable | None:
        """Return the block restricted to some variables; None if it moves none of them."""
        kept = set(names) & set(self.variables)
        incoming = {name: axis for name, axis in self.incoming.items() if name in kept}
        outgoing = {name: axis for name, axis in self.outgoing.items() if name in kept}
        return Rescalable(incoming, outgoing) if kept else None

    def identity(self, lead: tuple[int, ...], size: int) -> Scaled:
        """Return the identity."""
        return Scaled(np.ones((*lead, size)))

    def random(self, rng: np.random.Generator, lead: tuple[int, ...], size: int) -> Scaled:
        """Draw standard log-normal factors."""
        return Scaled(np.exp(rng.normal(size=(*lead, size))))

    def compose(self, first: Scaled, then: Scaled, beside: np.ndarray | None) -> Scaled:
        """Return the element that acts like `first` followed by `then`."""
        return Scaled(along(first.factors, beside) * then.factors)

    def inverse(self, part: Scaled, beside: np.ndarray | None) -> Scaled:
        """Return the inverse of an element."""
        return Scaled(1 / along(part.factors, beside))


@dataclass(frozen=True)
class Whole(Block[Swapped]):
    """A group of two elements: the identity, and a change of all variables."""

    turn = 2

    names: str | tuple[str, ...]

    def __post_init__(self) -> None:
        """Check the names."""
        check_names("names", self._names)
        if not self.names:
            raise ArgumentError("`names` is empty. Name at least one variable.")

    @property
    def _names(self) -> tuple[str, ...]:
        return (self.names,) if isinstance(self.names, str) else self.names

    @property
    def axes(self) -> Mapping[str, Axes]:
        """No axes, because whole variables change."""
        return {}

    @property
    def variables(self) -> tuple[str, ...]:
        """Every variable that the block touches."""
        return (*self.flipped, *self.complemented)

    def restricted(self, names: Iterable[str]) -> Flip | Complement | None:
        """Return the block restricted to some variables; None if it moves none of them."""
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
        """Return the identity."""
        return Swapped(np.zeros(lead, bool))

    def random(self, rng: np.random.Generator, lead: tuple[int, ...], size: int) -> Swapped:
        """Draw uniformly."""
        return Swapped(rng.integers(0, 2, size=lead).astype(bool))

    def elements(self, size: int) -> list[Swapped]:
        """Return both elements."""
        return [Swapped(np.array(False)), Swapped(np.array(True))]

    def log_order(self, size: int) -> float:
        """Return log 2: the group has two elements."""
        return math.log(2)

    def compose(self, first: Swapped, then: Swapped, beside: object) -> Swapped:
        """Return the element that acts like `first` followed by `then`."""
        return Swapped(np.logical_xor(first.swapped, then.swapped))

    def inverse(self, part: Swapped, beside: object) -> Swapped:
        """Return the inverse of a part, which is the part itself."""
        return part

    def check(self, shapes: Shapes) -> None:
        """Reject shapes that lack one of its variables."""
        self.check_names(shapes)


@dataclass(frozen=True)
class Complement(Whole):
    """Binary weights: all entries theta of all variables become 1 - theta at the same time.

    If the complement comes with an exchange of two components, it is part of their block:
    ``Exchangeable({"mu": 0}, complements=("theta",))``.

    Parameters
    ----------
    names : str or tuple of str
        The variables.

    Raises
    ------
    TypeError
        If a name is not a string.
    ValueError
        If there are no names.

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
        """Describe the moved variables in plain words."""
        return f"complements of {', '.join(self.variables)}"


@dataclass(frozen=True)
class Flip(Whole):
    """Whole variables of any shapes that change sign together.

    Abilities and discriminations of an item-response model: ``Flip(("theta", "a"))``. If each component has its own
    sign, as factors do, use ``Exchangeable({"L": 1}, flips=True)``.

    Parameters
    ----------
    names : str or tuple of str
        The variables that change sign.
    complements : tuple of str
        Variables theta that become 1 - theta at the same time.

    Raises
    ------
    TypeError
        If a name is not a string.
    ValueError
        If there are no names, or a variable is in both tuples.

    Examples
    --------
    >>> ob.Flip(("theta", "a")).flipped  # abilities and discriminations of an item-response model
    ('theta', 'a')
    """

    kind = "flip"

    complements: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the names; no variable may be in both lists."""
        super().__post_init__()
        check_names("complements", self.complements)
        both = [name for name in self.complements if name in self.flipped]
        if both:
            raise ArgumentError(
                f"`complements` names {', '.join(both)}, which `names` already flips. Name every variable only once."
            )

    @property
    def flipped(self) -> tuple[str, ...]:
        """The variables that change sign."""
        return tuple(self._names)

    def describe(self) -> str:
        """Describe the moved variables in plain words."""
        complements = (
            f", with complements of {', '.join(self.complements)}" if self.complements else ""
        )
        return f"changes of sign of {', '.join(self.flipped)} as a whole{complements}"
