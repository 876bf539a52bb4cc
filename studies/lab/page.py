"""The page of a study: tables of rows, chapters of text, tables and figures, and what all studies share of them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onebasin.analysis.page.page import FigureItem, Note
from onebasin.analysis.report import cost_table, health_table
from onebasin.base.table import Column, Flag, Table, TableCell

from .cells import Cell, Outcomes
from .claims import Verdict
from .frame import Frames, Row, Rows, read
from .pairs import Holds

Tabulate = Callable[[Frames], Table]
"""A function that gives a table: a `View`, or a function where columns follow from the numbers."""


@dataclass(frozen=True)
class Field:
    """One column of a view."""

    heading: str  # Its name.
    value: str | Callable[[Row], Any]
    """A column of the frame, or a function of the row; it may return a cell of a table with a flag or a note of its
    own."""
    digits: int = 3
    decimals: int | None = None
    """`digits`, `decimals`: how its numbers are written: significant digits, or decimals where these are given."""
    unit: str = ""  # Shown small under the heading.
    flag: Callable[[Any], Flag] | None = None
    """From a value that is there to its flag: `at_most(limit)`, `at_least(limit)`."""
    note: Callable[[Row], str] | None = None  # From the row to small print behind the value.

    @property
    def column(self) -> Column:
        """Heading, and how numbers are written."""
        return Column(self.heading, self.digits, self.decimals, self.unit)

    def cell(self, row: Row) -> TableCell:
        """Take this field's cell of a row."""
        value = row[self.value] if isinstance(self.value, str) else self.value(row)
        if isinstance(value, TableCell) or value is None:
            return value or TableCell(None)
        flag, note = self.flag and self.flag(value), self.note and self.note(row)
        return TableCell(value, flag or "", note or "")


@dataclass(frozen=True)
class RowTable:
    """A table of rows."""

    caption: str | Callable[[Frames], str]  # What the table shows.
    fields: tuple[Field, ...]  # Its columns; the first names the rows.
    over: Rows = "cells"  # The rows: the name of a frame, or a function of all frames.
    drop_empty: bool = False  # Whether columns without any value are left out.

    def __call__(self, frames: Frames) -> Table:
        """Make the table."""
        columns = tuple(field.column for field in self.fields)
        rows = tuple(tuple(f.cell(row) for f in self.fields) for row in read(self.over, frames))
        caption = self.caption if isinstance(self.caption, str) else self.caption(frames)
        table = Table(columns, rows, caption)
        return table.without_empty_columns() if self.drop_empty else table


def at_most(limit: float, *, otherwise: Flag = "bad") -> Callable[[float], Flag]:
    """Flag numbers up to a limit as good, and others as `otherwise`."""
    return lambda value: "good" if value <= limit else otherwise


def mean_of(measure: str) -> Callable[[Row], float | None]:
    """Take the mean of a row's list; None where there is none."""
    return lambda row: None if row[measure] is None else float(np.mean(row[measure]))


def mean_and_sd(values: Sequence[float], decimals: int) -> str:
    """Write mean and standard deviation."""
    sd = f" ± {np.std(values, ddof=1):.{decimals}f}" if len(values) > 1 else ""
    return f"{np.mean(values):.{decimals}f}{sd}"


_FLAGS: Mapping[Verdict, Flag] = {"reproduces": "good", "does not reproduce": "bad"}
"""Of verdicts that decide; any other is a warning."""
_VERDICT = Field("verdict", "verdict", flag=lambda verdict: _FLAGS.get(verdict, "warn"))


def yes_no(holds: Holds) -> TableCell:
    """Say whether something holds."""
    if holds is None or holds == "open":
        return TableCell(holds or "void", "warn")
    return TableCell("yes", "good") if holds else TableCell("no", "bad")


STATEMENTS = RowTable(
    "A statement reproduces if it holds in every comparison, and does not if all contradict it; where some do one of "
    "these and the others are open or cannot be judged, in part; unclear, or depending on what is compared, where some "
    "hold and others contradict it, and unclear where none decides",
    (
        Field("statement", "label"),
        Field("the paper's words", "quote"),
        Field("a comparison counts if", "rule"),
        Field("outcome", "outcome"),
        _VERDICT,
    ),
    over="statements",
)
"""A paper's statements next to their results."""

TRIALS = RowTable(
    "Every comparison behind the verdicts",
    (
        Field("statement", "label"),
        Field("compared", "where"),
        Field("measured", "measured"),
        Field("holds", lambda row: yes_no(row["holds"])),
    ),
    over="trials",
)

VERDICTS = RowTable(
    "",
    (Field("the paper's statement", "label"), Field("here", "outcome"), _VERDICT),
    over="statements",
)
"""The verdicts alone, for a terminal."""

FAILURES = RowTable(
    "Cells without a posterior",
    (Field("cell", "label"), Field("why it failed", "reason")),
    over="failures",
)


Extra = FigureItem | Table | Note | None
"""An item that a chapter shows besides its views; None where it could not be made."""


class Caution(str):
    """A sentence of the headline that warns, which a terminal marks so."""

    __slots__ = ()


@dataclass(frozen=True)
class Chapter:
    """A section of the page."""

    title: str  # Its heading.
    text: str = ""  # Paragraphs.
    views: tuple[Tabulate, ...] = ()
    """Its tables. A chapter whose views all have no rows is left out."""
    extras: Iterable[Extra] = ()
    """Shown after the tables: remarks in boxes, tables of the run, figures."""


def verdicts(frames: Frames) -> Iterator[Chapter | None]:
    """Close the page of a paper's study: its statements, every comparison, and which cells failed."""
    text = "A statement reproduces where it holds in every comparison; all are listed at the end."
    yield Chapter("What the paper says, and what was measured", text, (STATEMENTS,))
    yield Chapter("Every comparison", views=(TRIALS,))
    yield failed(frames)


def failed(
    frames: Frames, text: str = "These cells failed; what follows from them is missing above."
) -> Chapter | None:
    """Say which cells have no posterior; None where all have one."""
    if not frames["failures"]:
        return None
    return Chapter("What failed", views=(FAILURES,), extras=(Note(text, "warn"),))


def health(
    outcomes: Outcomes,
    cells: Iterable[Cell],
    *,
    name: Callable[[Cell], str] = lambda cell: cell.label,
    captions: tuple[str, str] = ("Health of the chains, parameters alone", "Cost"),
) -> tuple[Table, Table]:
    """Tabulate the health of the chains of these cells, and what they cost."""
    diagnoses = {name(cell): outcomes.diagnosis(cell) for cell in cells}
    return health_table(diagnoses, caption=captions[0]), cost_table(diagnoses, caption=captions[1])
