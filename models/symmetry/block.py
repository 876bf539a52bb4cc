"""The interface of all blocks of a symmetry, and parts of an axis as places of components.

Flattening merges several axes into one, and concatenation joins them in order. So the components may be the third
factor of (2, 2, 16), or the positions 4 to 8. A permutation of the components moves positions of the axis.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, astuple, dataclass, fields
from functools import cached_property
from math import prod
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Int

from onebasin.base.errors import ArgumentError, ArgumentTypeError

from .elements import Part, Shapes

SYNTAX = (
    "[4:8] for a slice, [2,2,*16] for the factor of 16, or [start=4,count=2,repeats=3,period=8]"
)


@dataclass(frozen=True)
class AxisPart:
    """Components along a part of an axis; `Exchangeable` accepts it instead of an axis.

    Component i has the positions ``start + r * period + i * stride + j``, for r < `repeats` and j < `stride`.

    Parameters
    ----------
    axis : int
        Axis of one draw.
    start : int
        First position.
    count : int
        Number of components.
    stride : int
        Adjacent positions of a component.
    repeats : int
        Number of repeats of all components.
    period : int
        Positions from one repeat to the next; 0 if there is only one.

    Raises
    ------
    TypeError
        If an argument is not an integer.
    ValueError
        If a number is too small, or repeats overlap.

    Examples
    --------
    >>> ob.networks.AxisPart.factor(0, (2, 2, 16), 2)  # 16 channels in an axis that was flattened from 2 x 2 x 16
    AxisPart(axis=0, start=0, count=16, stride=1, repeats=4, period=16)
    >>> block = ob.Exchangeable({"kernel": ob.networks.AxisPart.between(0, 2, 4)})
    >>> block.act({"kernel": np.arange(5)}, np.array([1, 0]))["kernel"].tolist()
    [0, 1, 3, 2, 4]
    """

    axis: int
    start: int
    count: int
    stride: int = 1
    repeats: int = 1
    period: int = 0

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name, value in asdict(self).items():
            least = int(name in ("count", "stride", "repeats"))
            if not isinstance(value, Integral) or isinstance(value, bool):
                raise ArgumentTypeError(f"`{name}` must be an integer; got {value!r}.")
            object.__setattr__(self, name, int(value))
            if value < least:
                raise ArgumentError(f"`{name}` must be at least {least}; got {value}.")
        shortest = self.count * self.stride if self.repeats > 1 else 0
        if self.period < shortest or (self.period and not shortest):
            raise ArgumentError(
                f"With repeats={self.repeats}, `period` must be {f'at least {shortest}' if shortest else 0}; got "
                f"{self.period}."
            )

    @classmethod
    def factor(cls, axis: int, shape: tuple[int, ...], which: int) -> AxisPart:
        """Return one factor of an axis that was merged from several.

        Parameters
        ----------
        axis : int
            The merged axis.
        shape : tuple of int
            Sizes of the factors, in order.
        which : int
            Index of the factor in `shape`.

        Returns
        -------
        AxisPart
            The part with the components of the factor.
        """
        stride, repeats = prod(shape[which + 1 :]), prod(shape[:which])
        period = shape[which] * stride if repeats > 1 else 0
        return cls(axis, 0, shape[which], stride, repeats, period)

    @classmethod
    def between(cls, axis: int, first: int, last: int) -> AxisPart:
        """Return the positions from `first` to before `last`, one component each.

        Parameters
        ----------
        axis : int
            The axis.
        first, last : int
            First position, and the one after the last.

        Returns
        -------
        AxisPart
            The part with ``last - first`` components.
        """
        return cls(axis, first, last - first)

    @cached_property
    def positions(self) -> Int[np.ndarray, "repeat component within"]:
        """The positions of every component."""
        repeat, component, within = np.ogrid[: self.repeats, : self.count, : self.stride]
        return self.start + repeat * self.period + component * self.stride + within

    def components(self, length: int) -> Int[np.ndarray, " position"]:
        """Return the component at every position of an axis.

        Parameters
        ----------
        length : int
            The length of the axis.

        Returns
        -------
        ndarray
            Component at each position, (position); -1 if there is none.
        """
        out = np.full(length, -1)
        out[self.positions] = np.arange(self.count)[:, None]
        return out

    def commutes(self, other: AxisPart) -> bool:
        """Check whether permutations of both commute: they do not overlap, or are factors of the same positions.

        Parameters
        ----------
        other : AxisPart
            A part of the same axis.

        Returns
        -------
        bool
            Whether the order does not matter.
        """
        length = 1 + max(int(part.positions.max()) for part in (self, other))
        for part, beside in ((self, other), (other, self)):
            found = beside.components(length)[part.positions]
            if (found != found[:, :1]).any():
                return False
        return True

    def widened(
        self, permutation: Int[np.ndarray, "*lead component"], length: int
    ) -> Int[np.ndarray, "*lead position"]:
        """Return the permutation of all positions of an axis under a permutation of the components.

        Parameters
        ----------
        permutation : ndarray
            Array over components, (*lead, component).
        length : int
            The length of the axis.

        Returns
        -------
        ndarray
            Array over positions, (*lead, position).
        """
        at = self.positions
        out = np.broadcast_to(np.arange(length), (*permutation.shape[:-1], length)).copy()
        out[..., at] = at[:, :1] + permutation[..., None, :, None] * self.stride
        return out

    def spread(self, signs: Any, length: int) -> np.ndarray:
        """Return the sign of the component at every position of an axis, 1 if there is none.

        Parameters
        ----------
        signs : array
            Array over components, (*lead, component).
        length : int
            The length of the axis.

        Returns
        -------
        ndarray
            Signs (*lead, position).
        """
        signs = np.asarray(signs)
        out = np.ones((*signs.shape[:-1], length), signs.dtype)
        out[..., self.positions] = signs[..., None, :, None]
        return out

    @property
    def word(self) -> str:
        """The part in the notation of the command line, such as ``1[4:8]`` or ``0[2,2,*16]``."""
        axis, start, count, stride, repeats, period = astuple(self)
        if (stride, repeats) == (1, 1):
            return f"{axis}[{start}:{start + count}]"
        if start == 0 and (repeats == 1 or period == count * stride):
            sizes = [str(repeats)] * (repeats > 1) + [f"*{count}"] + [str(stride)] * (stride > 1)
            return f"{axis}[{','.join(sizes)}]"
        left = {"axis": axis, "stride": 1, "repeats": 1, "period": 0}
        numbers = (f"{n}={v}" for n, v in asdict(self).items() if v != left.get(n))
        return f"{axis}[{','.join(numbers)}]"

    @classmethod
    def read(cls, axis: int, text: str) -> AxisPart:
        """Parse the text between the brackets of that notation.

        Parameters
        ----------
        axis : int
            The axis.
        text : str
            Such as ``4:8`` or ``2,2,*16``.

        Returns
        -------
        AxisPart
            The part.

        Raises
        ------
        ValueError
            If the text has another form.
        """
        if found := re.fullmatch(r"(\d+):(\d+)", text):
            return cls.between(axis, int(found[1]), int(found[2]))
        sizes = text.replace(" ", "").split(",")
        moved = [place for place, size in enumerate(sizes) if size.startswith("*")]
        if len(moved) == 1 and all(size.lstrip("*").isdigit() for size in sizes):
            return cls.factor(axis, tuple(int(size.lstrip("*")) for size in sizes), moved[0])
        pairs = dict(size.partition("=")[::2] for size in sizes)
        known = {field.name for field in fields(cls)} - {"axis"}
        if {"start", "count"} <= pairs.keys() <= known and all(map(str.isdigit, pairs.values())):
            return cls(axis, **{name: int(value) for name, value in pairs.items()})
        raise ArgumentError(
            f"`exchangeable` contains {text!r}, which is not a valid part of an axis. Write {SYNTAX}."
        )


Place = int | AxisPart
Axes = Place | tuple[Place, ...]
Values = Mapping[str, Any]


def check_axes(argument: str, axes: Any, *, several: bool, parts: bool = False) -> None:
    """Check that names of variables map to an axis, to several, or to parts of axes."""
    allowed = "an axis, or a tuple of axes" if several else "an axis"
    allowed = "an axis, an `AxisPart`, or a tuple of these" if parts else allowed
    if not isinstance(axes, Mapping):
        raise ArgumentTypeError(
            f"`{argument}` must map each variable name to {allowed}, as in {{'mu': 0}}; got {axes!r}."
        )
    for name, places in axes.items():
        held = places if several and isinstance(places, tuple) else (places,)
        integral = all(
            (isinstance(axis, Integral) and not isinstance(axis, bool))
            or (parts and isinstance(axis, AxisPart))
            for axis in held
        )
        if not isinstance(name, str) or not integral or not held:
            whole = (
                " A whole variable that changes sign belongs to a `Flip`." if places == () else ""
            )
            raise ArgumentTypeError(
                f"`{argument}` must map each variable name to {allowed} (axes are counted from 0 within a draw); got "
                f"{places!r} for {name!r}.{whole}"
            )


def check_names(argument: str, names: Any) -> None:
    """Check that an argument is a tuple of variable names."""
    if not isinstance(names, tuple | list) or not all(isinstance(name, str) for name in names):
        raise ArgumentTypeError(
            f"`{argument}` must be a tuple of variable names, such as ('theta',); got {names!r}."
        )


def places_of(places: Axes) -> tuple[Place, ...]:
    """Return the axes of one variable, and parts of axes, as a tuple."""
    return (places,) if isinstance(places, int | AxisPart) else tuple(places)


def axes_of(places: Axes) -> tuple[int, ...]:
    """Return the whole axes of one variable as a tuple, for blocks of a `plain_view`, which have no parts."""
    whole = places_of(places)
    assert not any(isinstance(place, AxisPart) for place in whole), places
    return whole  # type: ignore[return-value]


def place_in_words(place: Place, name: str) -> str:
    """Name a place in a message."""
    if isinstance(place, AxisPart):
        return f"the part {place.word} of {name}"
    return f"axis {place} of {name}"


def on_axis(place: Place, shape: tuple[int, ...]) -> AxisPart:
    """Convert a place in a variable of the given shape to a part of an axis."""
    return place if isinstance(place, AxisPart) else AxisPart(place, 0, max(shape[place], 1))


@dataclass(frozen=True)
class Block[P: Part](ABC):
    """Variables that move together, and how.

    Attributes
    ----------
    kind : str
        Its name in JSON.
    turn : int
        Blocks of a lower turn act first.
    keeps_density : bool
        Whether it keeps the posterior's density and so makes equal modes; otherwise it keeps only the likelihood.
    """

    kind: ClassVar[str]
    turn: ClassVar[int]
    keeps_density: ClassVar[bool] = True
    act: ClassVar[Callable[..., dict[str, Any]]]
    """Moves those of its variables that are among the values: ``act(values, *part)``."""

    if TYPE_CHECKING:  # A field in some subclasses, a property in others.

        @property
        def axes(self) -> Mapping[str, Axes]:
            """The axes whose components it moves."""
            ...

    @property
    def complemented(self) -> tuple[str, ...]:
        """The variables theta that become 1 - theta."""
        return tuple(getattr(self, "complements", ()))

    @property
    def flipped(self) -> tuple[str, ...]:
        """The variables that change sign."""
        return ()

    @property
    def variables(self) -> tuple[str, ...]:
        """Every variable that the block changes."""
        return (*self.axes, *self.complemented)

    @property
    def moved(self) -> set[tuple[str, Place]]:
        """Every axis that it moves, or part of one, with its variable."""
        return {(name, place) for name, places in self.axes.items() for place in places_of(places)}

    @property
    def stacked(self) -> Block[P]:
        """The block on the stacked view of `Counterparts`, or itself."""
        return self

    @property
    def discrete(self) -> Block[Any]:
        """The block with finitely many elements: itself, or the permutations and signs of a `Rotation`."""
        return self

    def entries(self, shapes: Shapes) -> dict[str, np.ndarray]:
        """Mark the entries that it moves: name to a boolean array of the variable's shape."""
        return {name: np.ones(shapes[name], bool) for name in self.variables}

    def turned(self, shapes: Shapes) -> tuple[str, ...]:
        """Name the variables in which all components change sign together; empty if parts of axes move."""
        names = []
        for name in (name for name in self.flipped if name in shapes):
            places = places_of(self.axes.get(name, ()))
            parts = [on_axis(place, shapes[name]) for place in places]
            if any((part.components(shapes[name][part.axis]) < 0).any() for part in parts):
                return ()
            names += [name] * (len(parts) % 2)
        return tuple(names)

    @property
    def reflected(self) -> Mapping[str, str]:
        """The variables that change sign when two components change places, by name in the stacked view."""
        return {}

    def sources(self, name: str) -> tuple[str, ...]:
        """Return the variables of a name in the stacked view."""
        return (name,)

    def stack(self, values: Values, lead: int) -> dict[str, Any]:
        """Add the arrays of the stacked view to values (*lead, *event)."""
        return dict(values)

    def unstack(self, values: Values, lead: int) -> dict[str, Any]:
        """Write the arrays of the stacked view back to the variables."""
        return dict(values)

    @abstractmethod
    def describe(self) -> str:
        """Describe the moved variables in plain words."""

    @abstractmethod
    def restricted(self, names: Iterable[str]) -> Block[P] | None:
        """Return the block restricted to some variables; None if it moves none of them."""

    @abstractmethod
    def identity(self, lead: tuple[int, ...], size: int) -> P:
        """Return the identity."""

    @abstractmethod
    def random(self, rng: np.random.Generator, lead: tuple[int, ...], size: int) -> P:
        """Draw parts uniformly; factors are standard log-normal."""

    def elements(self, size: int) -> list[P]:
        """Return every part, beginning with the identity, if there are finitely many."""
        raise ArgumentError(
            f"A block of type {type(self).__name__} has infinitely many elements, so they cannot be listed. Draw "
            "some of the elements with `random`."
        )

    def log_order(self, size: int) -> float:
        """Return the natural logarithm of the number of parts."""
        return math.inf

    @abstractmethod
    def compose(self, first: P, then: P, beside: np.ndarray | None) -> P:
        """Return the element that acts like `first` followed by `then`.

        `beside` is the permutation, if any, by which another block moves the same components in `then`.
        """

    @abstractmethod
    def inverse(self, part: P, beside: np.ndarray | None) -> P:
        """Return the inverse of a part; `beside` is that of `compose` for the inverse."""

    def of_variances(self, part: P) -> tuple[Block[Any], Part] | None:
        """Return a block and a part that move variances, without signs and complements; None if they stay."""
        return None

    def size(self, shapes: Shapes) -> int:
        """Return the number of components that it moves; 1 for whole variables."""
        for name, places in self.axes.items():
            place = places_of(places)[0]
            return place.count if isinstance(place, AxisPart) else shapes[name][place]
        return 1

    def check(self, shapes: Shapes) -> None:
        """Reject shapes with a missing variable or axis, or axes of unequal lengths."""
        self.check_names(shapes)
        if not self.axes:
            raise ArgumentError(
                "`symmetry` has a block that moves no axis. Name at least one axis in this block."
            )
        lengths = {}
        for name, places in self.axes.items():
            own: list[AxisPart] = []
            for place in places_of(places):
                axis, shape = place.axis if isinstance(place, AxisPart) else place, shapes[name]
                inside = 0 <= axis < len(shape)
                part = on_axis(place, shape) if inside else None
                said = place_in_words(place, name)
                if part is None or int(part.positions.max()) >= max(shape[axis], 1):
                    raise ArgumentError(
                        f"`symmetry` moves {said}, but the shape of {name} is {tuple(shape)}. Choose an axis and "
                        "positions that exist."
                    )
                if any(other.axis == axis and not part.commutes(other) for other in own):
                    raise ArgumentError(
                        f"`symmetry` has a block that moves the same positions of axis {axis} of {name} twice. Name "
                        "each position once."
                    )
                own.append(part)
                lengths[said] = shape[axis] if place == axis else part.count
        if len(set(lengths.values())) > 1:
            each = ", ".join(f"{place} has length {length}" for place, length in lengths.items())
            raise ArgumentError(
                f"`symmetry` moves axes of different lengths together ({each}). Name axes of equal length."
            )

    def check_names(self, shapes: Shapes) -> None:
        """Reject shapes that lack one of its variables."""
        for name in self.variables:
            if name not in shapes:
                raise ArgumentError(
                    f"`symmetry` names {name}, which does not exist. The variables are {', '.join(shapes)}."
                )
