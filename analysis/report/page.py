"""The parts of a page, as frozen data; no HTML here.

Convention: all text is plain, in paragraphs separated by an empty line; `backticks` set a name in
code type. Whatever looks like HTML is shown, not obeyed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Flag = Literal["", "good", "warn", "bad"]
Value = str | bool | int | float | np.integer | np.floating | None


@dataclass(frozen=True)
class Cell:
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


@dataclass(frozen=True)
class Table:
    """A table; the first cell of a row is its heading.

    Attributes
    ----------
    columns
        Headings, as text or as `Column`.
    rows
        Cells, as plain values or as `Cell`; every row as long as `columns`.
    caption
        What the table shows.
    """

    columns: tuple[Column | str, ...]
    rows: tuple[tuple[Cell | Value, ...], ...]
    caption: str = ""

    def __post_init__(self) -> None:
        """Refuse rows that do not fit the heading."""
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(
                    f"`rows` has a row of {len(row)} cells ({row[:1]!r} ...), and there are "
                    f"{len(self.columns)} `columns`: give one cell per column, None where empty."
                )

    def without_empty_columns(self) -> Table:
        """Return the table without the columns in which every cell is empty."""
        filled = [
            place
            for place in range(len(self.columns))
            if any(not is_empty(row[place]) for row in self.rows)
        ]
        columns = tuple(self.columns[place] for place in filled)
        rows = tuple(tuple(row[place] for place in filled) for row in self.rows)
        return Table(columns, rows, self.caption)


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
class Run:
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
    provenance: tuple[Run, ...] = ()
    definitions: tuple[tuple[str, str], ...] = ()


def is_empty(cell: Cell | Value) -> bool:
    """Tell whether a cell shows nothing but a dash."""
    value = cell.value if isinstance(cell, Cell) else cell
    return value is None or value == "" or bool(value != value)  # a NaN is not itself
