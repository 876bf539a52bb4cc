"""A part of an axis along which components stand: a factor of a merged axis, or a slice of a concatenated one.

Flattening makes one axis of several, and concatenation one of parts in order. So components may be the third factor of
(2, 2, 16), or the positions 4 to 8. A permutation of the components moves whole positions of the axis.
"""

from __future__ import annotations

import re
from dataclasses import asdict, astuple, dataclass, fields
from functools import cached_property
from math import prod
from numbers import Integral
from typing import Any

import numpy as np
from jaxtyping import Int

from onebasin.base.errors import ArgumentError, ArgumentTypeError

SYNTAX = (
    "[4:8] for a slice, [2,2,*16] for the factor of 16, or [start=4,count=2,repeats=3,period=8]"
)


@dataclass(frozen=True)
class AxisPart:
    """Components along a part of an axis, which `Exchangeable` takes in the place of the axis.

    Component i has the positions ``start + r * period + i * stride + j``, for r < `repeats` and j < `stride`.

    Parameters
    ----------
    axis : int
        Of one draw.
    start : int
        First position.
    count : int
        Number of components.
    stride : int
        Adjacent positions of a component.
    repeats : int
        Times that all components are repeated.
    period : int
        Positions from one repeat to the next; 0 where there is one.

    Raises
    ------
    TypeError
        If one of them is not an integer.
    ValueError
        If one is too small, or repeats overlap.

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
                f"`period` must be {f'at least {shortest}' if shortest else 0} with repeats={self.repeats}, so that "
                f"components do not overlap; got {self.period}."
            )

    @classmethod
    def factor(cls, axis: int, shape: tuple[int, ...], which: int) -> AxisPart:
        """Give one factor of an axis that was merged from several.

        Parameters
        ----------
        axis : int
            The merged axis.
        shape : tuple of int
            Sizes of the factors, in order.
        which : int
            The place of the factor in `shape`.

        Returns
        -------
        AxisPart
            With the components of the factor.
        """
        stride, repeats = prod(shape[which + 1 :]), prod(shape[:which])
        period = shape[which] * stride if repeats > 1 else 0
        return cls(axis, 0, shape[which], stride, repeats, period)

    @classmethod
    def between(cls, axis: int, first: int, last: int) -> AxisPart:
        """Give the positions from `first` to before `last`, a component each.

        Parameters
        ----------
        axis : int
            The axis.
        first, last : int
            First position, and the one after the last.

        Returns
        -------
        AxisPart
            With ``last - first`` components.
        """
        return cls(axis, first, last - first)

    @cached_property
    def positions(self) -> Int[np.ndarray, "repeat component within"]:
        """The positions of every component."""
        repeat, component, within = np.ogrid[: self.repeats, : self.count, : self.stride]
        return self.start + repeat * self.period + component * self.stride + within

    def components(self, length: int) -> Int[np.ndarray, " position"]:
        """Give the component at every position of an axis.

        Parameters
        ----------
        length : int
            The length of the axis.

        Returns
        -------
        ndarray
            Components (position); -1 where there is none.
        """
        out = np.full(length, -1)
        out[self.positions] = np.arange(self.count)[:, None]
        return out

    def commutes(self, other: AxisPart) -> bool:
        """Tell whether permutations of both can be exchanged: they are apart, or factors of the same positions.

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
        """Give the permutation of all positions of an axis that a permutation of the components makes.

        Parameters
        ----------
        permutation : ndarray
            Of the components, (*lead, component).
        length : int
            The length of the axis.

        Returns
        -------
        ndarray
            Of the positions, (*lead, position).
        """
        at = self.positions
        out = np.broadcast_to(np.arange(length), (*permutation.shape[:-1], length)).copy()
        out[..., at] = at[:, :1] + permutation[..., None, :, None] * self.stride
        return out

    def spread(self, signs: Any, length: int) -> np.ndarray:
        """Give every position of an axis the sign of its component, 1 where there is none.

        Parameters
        ----------
        signs : array
            Of the components, (*lead, component).
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
        """The part as the command line has it, such as ``1[4:8]`` or ``0[2,2,*16]``."""
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
        """Read what stands between the brackets of a word; rejects anything else.

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
            If the text is none of these.
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
        raise ArgumentError(f"`exchangeable` has the part [{text}] of an axis; write {SYNTAX}.")
