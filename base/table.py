"""Tables with columns, cells and rows that fold, and their form in Markdown.

Text is plain; names in `backticks` are shown as code. A column determines how its numbers are written: with few digits,
grouped thousands and a real minus sign. Cards, pages, studies and the terminal show these tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral, Real
from typing import Any

import numpy as np

from .errors import ArgumentError
from .text import MARKS, Flag

Number = int | float | np.integer | np.floating
EMPTY = "–"
MOST = 12
"""Maximum number of decimal places."""
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def format_number(value: Number | None, *, digits: int = 3, decimals: int | None = None) -> str:
    """Write a number with the given significant digits or decimals, an integer exactly, and None and NaN as a dash."""
    if isinstance(value, Integral):
        return with_minus(f"{int(value):,d}")
    value = math.nan if value is None else float(value)
    if math.isnan(value):
        return EMPTY
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if decimals is not None and abs(value) < 1e6:
        return with_minus(f"{value:,.{decimals}f}")
    if value != 0 and not 1e-4 <= abs(value) < 1e6:
        mantissa, exponent = f"{value:.{max(digits - 1, 0)}e}".split("e")
        return with_minus(f"{mantissa}·10{str(int(exponent)).translate(_SUPERSCRIPT)}")
    rounded = float(f"{value:.{digits - 1}e}")
    places = max(0, digits - 1 - (math.floor(math.log10(abs(rounded))) if rounded else 0))
    return with_minus(f"{rounded if places else value:,.{places}f}")


def decimals_beside(value: float, limits: Iterable[float], decimals: int) -> int:
    """Return how many decimals are needed to distinguish a number from its limits, at least `decimals`.

    For example, an R-hat of 1.0102 is not written as 1.010 if the limit is 1.01.
    """
    apart = [limit for limit in limits if value != limit]
    while decimals < MOST and any(
        f"{value:.{decimals}f}" == f"{limit:.{decimals}f}" for limit in apart
    ):
        decimals += 1
    return decimals


def with_minus(text: str) -> str:
    """Write a number's hyphens as minus signs."""
    return text.replace("-", "−")


Value = str | bool | int | float | np.integer | np.floating | None


@dataclass(frozen=True)
class TableCell:
    """A cell of a table, with a flag or a note."""

    value: Value  # None and NaN are shown as a dash.
    flag: Flag = ""  # Verdict, shown by a mark and a colour.
    note: str = ""  # Small print after the value, such as the name of a parameter.

    @property
    def is_empty(self) -> bool:
        """Check whether the cell shows only a dash."""
        return self.value is None or self.value == "" or bool(self.value != self.value)  # NaN


@dataclass(frozen=True)
class Column:
    """A column's heading and the format of its numbers."""

    name: str
    digits: int = 3  # Significant digits of its numbers.
    decimals: int | None = None  # Decimal places, instead of `digits`.
    unit: str = ""  # Shown small under the heading.
    limits: tuple[float, ...] = ()  # Limits from which the decimals must distinguish a number.

    def write(self, value: Value) -> str:
        """Write one of the column's values as plain text."""
        if isinstance(value, bool):
            return "yes" if value else "no"
        if value is None or value == "":
            return EMPTY
        if isinstance(value, str):
            return value
        decimals = self.decimals
        if decimals is not None and self.limits:
            decimals = decimals_beside(float(value), self.limits, decimals)
        return format_number(value, digits=self.digits, decimals=decimals)


Row = tuple[TableCell | Value, ...]


@dataclass(frozen=True)
class RowGroup:
    """Rows that fold under a heading, such as the entries of a variable."""

    heading: Row  # The row that is always shown: a name, and a summary such as the worst R-hat.
    rows: tuple[Row, ...] = ()
    open: bool = False  # Whether the rows are shown from the start.


@dataclass(frozen=True)
class Table:
    """A table; the first cell of a row is its name. On a page, a click on a column's heading sorts the rows."""

    columns: tuple[Column | str, ...]
    rows: tuple[Row, ...] = ()
    caption: str = ""
    groups: tuple[RowGroup, ...] = ()  # Groups of rows that fold, after the other rows.
    sortable: bool = True

    def __post_init__(self) -> None:
        """Reject rows of the wrong length."""
        for row in self.all_rows:
            if len(row) != len(self.columns):
                raise ArgumentError(
                    f"`rows` has a row of {len(row)} cell(s) (first cell: {next(iter(row), None)!r}), but `columns` "
                    f"has {len(self.columns)} column(s). Give one cell per column, and None for an empty cell."
                )

    @property
    def all_rows(self) -> tuple[Row, ...]:
        """All rows, including the headings and rows of groups, in the order of the page."""
        grouped = (row for group in self.groups for row in (group.heading, *group.rows))
        return (*self.rows, *grouped)

    @property
    def headings(self) -> tuple[Column, ...]:
        """All columns as `Column`."""
        return tuple(c if isinstance(c, Column) else Column(c) for c in self.columns)

    @property
    def cells(self) -> tuple[tuple[TableCell, ...], ...]:
        """All rows with every value as a `TableCell`."""
        return tuple(
            tuple(c if isinstance(c, TableCell) else TableCell(c) for c in row)
            for row in self.all_rows
        )

    @cached_property
    def numeric(self) -> tuple[bool, ...]:
        """True for each column that holds only numbers and empty cells."""
        filled = [[c.value for c in column if not c.is_empty] for column in self._by_column()]
        return tuple(
            bool(values) and all(isinstance(v, Real) and not isinstance(v, bool) for v in values)
            for values in filled
        )

    @cached_property
    def texts(self) -> list[list[str]]:
        """The cells as text with their marks; if a cell has a mark, all cells of its column leave room for one."""
        columns = [
            [(column.write(cell.value), MARKS[cell.flag]) for cell in cells]
            for column, cells in zip(self.headings, self._by_column(), strict=True)
        ]
        padded = (
            [f"{text} {mark:1}" for text, mark in cells]
            if any(mark for _, mark in cells)
            else [text for text, _ in cells]
            for cells in columns
        )
        return [list(row) for row in zip(*padded, strict=True)]

    def without_empty_columns(self) -> Table:
        """Leave out the columns in which every cell is empty."""
        columns = enumerate(self._by_column())
        return self.narrowed([k for k, cells in columns if not all(c.is_empty for c in cells)])

    def narrowed(self, places: Sequence[int]) -> Table:
        """Keep only the columns at these positions."""

        def kept(row: tuple) -> tuple:
            return tuple(row[place] for place in places)

        return replace(
            self,
            columns=kept(self.columns),
            rows=tuple(map(kept, self.rows)),
            groups=tuple(
                replace(group, heading=kept(group.heading), rows=tuple(map(kept, group.rows)))
                for group in self.groups
            ),
        )

    def _by_column(self) -> list[list[TableCell]]:
        cells = self.cells
        return [[row[place] for row in cells] for place in range(len(self.columns))]


def frame_table(frame: Any, caption: str, names: Sequence[str] | None = None) -> Table:
    """Make a table from a pandas frame: its index, and all its columns of numbers or those that are named."""
    columns = [str(name) for name in frame.columns] if names is None else list(names)
    rows: tuple[Row, ...] = tuple(
        (str(name), *map(float, row)) for name, *row in frame[columns].itertuples(name=None)
    )
    return Table(("", *map(Column, columns)), rows, caption)


def table_to_markdown(table: Table) -> str:
    """Write a table as Markdown, with its caption above it."""
    columns = table.headings
    lines = [
        [f"{c.name} ({c.unit})" if c.unit else c.name for c in columns],
        ["---"] * len(columns),
    ]
    for row in table.cells:
        lines.append([])
        for cell, column in zip(row, columns, strict=True):
            mark = f" {MARKS[cell.flag]}" if cell.flag else ""
            note = f" ({cell.note})" if cell.note else ""
            lines[-1].append(f"{column.write(cell.value)}{mark}{note}")
    caption = [f"**{table.caption}**", ""] if table.caption else []
    rows = ("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
    return "\n".join([*caption, *rows])
