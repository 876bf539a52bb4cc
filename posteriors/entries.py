"""Names of scalar columns and the arrays that they are entries of: `theta.1.2`, `theta[1,2]`, `t:1`.

Convention: places are counted from 1, as Stan does, or from 0 where one in brackets is 0, in any order of columns. A
tuple's part is a variable of its own
(`t:1`), an array of tuples an array for each part; `z.real` and `z.imag` of a complex variable are two variables.
Columns whose places leave gaps (`theta[2]` alone) stay scalars under their own names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

Index = tuple[int, ...]

_BRACKETS = re.compile(r"(?P<base>.*[^\]])\[(?P<index>\d+(?:\s*,\s*\d+)*)\]", re.DOTALL)
_TUPLE = re.compile(r"""\(['"](?P<base>[^'"]+)['"],\s*(?P<index>\d+(?:\s*,\s*\d+)*)\)""")
"""A column of a pandas table as ArviZ makes it: `('mu', 0)`."""
_DOTS = re.compile(r"(?P<base>.*?[^.\d].*?)(?P<index>(?:\.\d+)+)", re.DOTALL)


@dataclass(frozen=True)
class Entries:
    """A variable and the columns that hold its entries."""

    shape: Index  # Of one draw.
    columns: np.ndarray  # Places of its entries among all columns, in C order.

    def take(self, table: np.ndarray) -> np.ndarray:
        """Return the variable's draws (draw, ...) of a table (draw, column)."""
        return table[:, self.columns].reshape(len(table), *self.shape)


def gather(names: Sequence[str]) -> dict[str, Entries]:
    """Group columns by the variables that they are entries of, in the order of each one's first column."""
    groups: dict[str, dict[Index, int]] = {}
    for place, name in enumerate(names):
        base, index = split(name)
        groups.setdefault(base, {}).setdefault(index, place)
    out: dict[str, Entries] = {}
    for base, places in groups.items():
        bracketed = all(names[place].endswith(("]", ")")) for place in places.values())
        first = 0 if bracketed and any(0 in index for index in places) else 1
        shape: Index | None = None  # that these places fill; None where they leave gaps
        depths = {len(index) for index in places}
        if len(depths) == 1:
            axes = range(depths.pop())
            shape = tuple(max(index[axis] for index in places) + 1 - first for axis in axes)
            inside = all(min(index, default=1) >= first for index in places)
            shape = shape if inside and prod(shape) == len(places) else None
        if shape is None:
            for place in places.values():
                out[names[place]] = Entries((), np.array([place]))
        else:
            indices = product(*(range(first, first + size) for size in shape))
            out[base] = Entries(shape, np.array([places[index] for index in indices], int))
    return out


def split(name: str) -> tuple[str, Index]:
    """Take a column's name apart into its variable's name and its place in it.

    >>> split("theta.1.2"), split("theta[1,2]"), split("t.3:1.2"), split("lp__")
    (('theta', (1, 2)), ('theta', (1, 2)), ('t:1', (3, 2)), ('lp__', ()))
    """
    if found := _BRACKETS.fullmatch(name) or _TUPLE.fullmatch(name):
        return found["base"], tuple(map(int, found["index"].split(",")))
    head, *parts = name.split(":")
    found = _DOTS.fullmatch(head)
    base = found["base"] if found else head
    index = tuple(map(int, found["index"].split(".")[1:])) if found else ()
    for part in parts:
        number, *places = part.split(".")
        if not number.isdigit() or not all(place.isdigit() for place in places):
            return name, ()
        base, index = f"{base}:{number}", (*index, *map(int, places))
    return base, index


def dotted(name: str, shape: Index) -> Iterator[str]:
    """Name a variable's entries as CmdStan's CSV files do, in C order."""
    for index in np.ndindex(*shape):
        yield ".".join([name, *(str(place + 1) for place in index)])
