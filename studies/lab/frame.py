"""Tidy frames: what a study has measured, a row a cell, or a row a cell and something else.

The columns are factors (problem, method, engine, split, seed, ...) and measures. Values are those that JSON keeps
unchanged, and None for all that is missing or not finite. So a table, a verdict or a sentence is the same from the run
as from the record. (A pandas frame would turn a whole number next to a missing one into a float.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Frame:
    """Rows of plain values; every row has every column, None where it was given none."""

    rows: tuple[Row, ...] = ()  # In order; `of` makes them plain and whole.

    @classmethod
    def of(cls, rows: Iterable[Row]) -> Frame:
        """Gather rows, whose columns may differ; NumPy's numbers and arrays become plain numbers and lists."""
        rows = tuple(rows)
        columns = dict.fromkeys(column for row in rows for column in row)
        return cls(tuple({name: plain(row.get(name)) for name in columns} for row in rows))

    @classmethod
    def from_json(cls, kept: Any) -> Frame:
        """Read back what JSON kept: the rows, or the `table` of a record."""
        if isinstance(kept, Mapping):
            names = kept["columns"]
            kept = [dict(zip(names, values, strict=True)) for values in kept["rows"]]
        return cls.of(kept)

    @property
    def table(self) -> dict[str, Any]:
        """The names of the columns, once, and the values of every row."""
        names = list(self.rows[0]) if self.rows else []
        return {"columns": names, "rows": [list(row.values()) for row in self.rows]}

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def where(self, **wanted: Any) -> Frame:
        """Keep the rows with these values; a tuple, list or set of values allows each of them."""
        return Frame(tuple(row for row in self.rows if _fits(row, wanted)))

    def known(self, column: str) -> Frame:
        """Keep the rows that have a value in this column; none where there is no such column."""
        return Frame(tuple(row for row in self.rows if row.get(column) is not None))

    def find(self, **wanted: Any) -> Row | None:
        """Return the first row with these values; None where there is none."""
        return next((row for row in self.rows if _fits(row, wanted)), None)

    def row(self, **wanted: Any) -> Row:
        """Return the first row with these values, of which there must be one."""
        row = self.find(**wanted)
        if row is None:
            raise KeyError(
                f"`wanted` is {wanted}, which none of {len(self)} rows has; ask by `find` where there may be none."
            )
        return row

    def levels(self, column: str) -> tuple[Any, ...]:
        """List the values of a column once each, in order of appearance."""
        return tuple(dict.fromkeys(row[column] for row in self.rows))

    def column(self, column: str) -> list[Any]:
        """List a column's values, those that are not missing."""
        return [row[column] for row in self.known(column)]

    def groups(self, names: Sequence[str]) -> Iterator[Frame]:
        """Divide the rows into those that have the same values in these columns, in order of appearance."""
        for values in dict.fromkeys(tuple(row[name] for name in names) for row in self.rows):
            yield self.where(**dict(zip(names, values, strict=True)))


Frames = Mapping[str, Frame]
"""A study's frames by name; most studies have one, `cells`."""
Rows = str | Callable[[Frames], Iterable[Row]]
"""The source of rows: the name of a frame, or a function of all frames."""


def read(rows: Rows, frames: Frames) -> Frame:
    """Take rows from the frames; of a frame that is not there, none."""
    if isinstance(rows, str):
        return frames.get(rows, Frame())
    taken = rows(frames)
    return taken if isinstance(taken, Frame) else Frame.of(taken)


def select(name: str, **wanted: Any) -> Callable[[Frames], Frame]:
    """Select the rows of one frame that have these values, as `Frame.where` does."""
    return lambda frames: read(name, frames).where(**wanted)


def plain(value: Any) -> Any:
    """Turn a value into what JSON keeps unchanged."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _fits(row: Row, wanted: Mapping[str, Any]) -> bool:
    return all(
        row[name] in value
        if isinstance(value, tuple | list | set | frozenset)
        else row[name] == value
        for name, value in wanted.items()
    )
