"""Complements of binary weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .arrays import complement
from .base import Axes, Block, Values, check_names
from .elements import Shapes, Swapped


@dataclass(frozen=True)
class Complement(Block[Swapped]):
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
    """

    kind = "complement"
    turn = 2

    names: str | tuple[str, ...]

    def __post_init__(self) -> None:
        """Refuse what is no name of a variable, or none at all."""
        check_names("names", self.complemented if isinstance(self.names, str) else self.names)
        if not self.names:
            raise ValueError("`names` is empty; name at least one variable.")

    @property
    def axes(self) -> Mapping[str, Axes]:
        """None: it moves whole variables."""
        return {}

    @property
    def complemented(self) -> tuple[str, ...]:
        """Its variables."""
        return (self.names,) if isinstance(self.names, str) else tuple(self.names)

    def act(self, values: Values, swapped: Any) -> dict[str, Any]:
        """Complement the draws (*lead, *event) for which `swapped` (*lead) is true."""
        out = dict(values)
        for name in (name for name in self.complemented if name in out):
            out[name] = complement(out[name], np.asarray(swapped))
        return out

    def describe(self) -> str:
        """Say in plain words what it moves."""
        return f"complements of {', '.join(self.variables)}"

    def restricted(self, names: Iterable[str]) -> Complement | None:
        """The block as it acts on some variables alone; None where it does not."""
        among = set(names)
        kept = tuple(name for name in self.complemented if name in among)
        return Complement(kept) if kept else None

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
        """Of two."""
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
