"""The parts of a page, as frozen data; no HTML here.

Convention: all text is plain, in paragraphs separated by an empty line; `backticks` set a name in
code type. Whatever looks like HTML is shown, not obeyed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from .numbers import EMPTY, format_number, is_number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Flag = Literal["", "good", "warn", "bad"]
Value = str | bool | int | float | np.integer | np.floating | None


@dataclass(frozen=True)
class TableCell:
    """A table's cell that is flagged or annotated.

    Attributes
    ----------
    value
        What is shown; None and NaN are shown as a dash.
    flag
        Verdict, shown by a mark as well as a colour.
    note
        Small print after the value, such as the parameter that has it.
    """

    value: Value
    flag: Flag = ""
    note: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether nothing but a dash is shown."""
        return self.value is None or self.value == "" or bool(self.value != self.value)  # NaN


@dataclass(frozen=True)
class Column:
    """How a column is headed and its numbers are written.

    Attributes
    ----------
    name
        Heading.
    digits
        Significant digits of its numbers.
    decimals
        Decimals instead, where all numbers should have the same.
    unit
        Shown small under the heading.
    """

    name: str
    digits: int = 3
    decimals: int | None = None
    unit: str = ""

    def write(self, value: Value) -> str:
        """Write one of the column's values, as plain text."""
        if isinstance(value, bool):
            return "yes" if value else "no"
        if value is None or value == "":
            return EMPTY
        if isinstance(value, str):
            return value
        return format_number(value, digits=self.digits, decimals=self.decimals)


@dataclass(frozen=True)
class Table:
    """A table; the first cell of a row is its heading.

    Attributes
    ----------
    columns
        Headings, as text or as `Column`.
    rows
        Cells, as plain values or as `TableCell`; every row as long as `columns`.
    caption
        What the table shows.
    """

    columns: tuple[Column | str, ...]
    rows: tuple[tuple[TableCell | Value, ...], ...]
    caption: str = ""

    def __post_init__(self) -> None:
        """Refuse rows that do not fit the heading."""
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(
                    f"`rows` has a row of {len(row)} cells ({row[:1]!r} ...), and there are "
                    f"{len(self.columns)} `columns`: give one cell per column, None where empty."
                )

    @property
    def headings(self) -> tuple[Column, ...]:
        """The columns, each as a `Column`."""
        return tuple(c if isinstance(c, Column) else Column(c) for c in self.columns)

    @property
    def cells(self) -> tuple[tuple[TableCell, ...], ...]:
        """The rows, each entry as a `TableCell`."""
        return tuple(
            tuple(c if isinstance(c, TableCell) else TableCell(c) for c in row) for row in self.rows
        )

    @property
    def numeric(self) -> tuple[bool, ...]:
        """Whether a column holds numbers, and besides them nothing but empty cells."""
        filled = [[c.value for c in column if not c.is_empty] for column in self._by_column()]
        return tuple(bool(values) and all(map(is_number, values)) for values in filled)

    def without_empty_columns(self) -> Table:
        """Return the table without the columns in which every cell is empty."""
        filled = [
            place
            for place, column in enumerate(self._by_column())
            if not all(cell.is_empty for cell in column)
        ]
        columns = tuple(self.columns[place] for place in filled)
        rows = tuple(tuple(row[place] for place in filled) for row in self.rows)
        return Table(columns, rows, self.caption)

    def _by_column(self) -> list[list[TableCell]]:
        cells = self.cells
        return [[row[place] for row in cells] for place in range(len(self.columns))]


@dataclass(frozen=True, eq=False)
class FigureItem:
    """A figure with its caption, and the text that stands for it where it cannot be seen."""

    figure: Figure
    caption: str
    alt: str


@dataclass(frozen=True)
class Note:
    """A remark in a box, of one paragraph or more, flagged or not, with a heading or without."""

    text: str
    flag: Flag = ""
    title: str = ""


@dataclass(frozen=True, eq=False)
class Section:
    """A section: text, then notes, tables and figures in this order."""

    title: str
    text: str = ""
    notes: tuple[Note, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[FigureItem, ...] = ()


@dataclass(frozen=True)
class Provenance:
    """How one posterior was made: pairs of a fact's name and its value."""

    name: str
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, eq=False)
class Report:
    """A page.

    Attributes
    ----------
    title, lede
        Heading, and what the page says in a few sentences.
    sections
        The body.
    provenance
        How the numbers were made, run by run.
    definitions
        Terms and their definitions, shown with the provenance.
    """

    title: str
    lede: str = ""
    sections: tuple[Section, ...] = ()
    provenance: tuple[Provenance, ...] = ()
    definitions: tuple[tuple[str, str], ...] = ()
