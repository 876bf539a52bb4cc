"""The parts of a page, as frozen data; no HTML here.

A `Report` has answer cards, then sections; a `Section` has text, notes, tables and figures, and after them `parts`
in the order in which they are given. A part is a text, a `Note`, a `Table`, a `FigureItem`, `Stats` (key figures),
`Code` (a program) or `Details` (parts that fold).

Convention: all text is plain, in paragraphs separated by an empty line; `backticks` set a name in
code type. Whatever looks like HTML is shown, not obeyed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from onebasin.base.table import Flag, Table, Value

from ..diagnostics.verdict import Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class FigureItem:
    """A figure with its caption, and the text that says what is seen to those who cannot see it."""

    figure: Figure
    caption: str
    alt: str


@dataclass(frozen=True)
class Note:
    """A remark in a box, of one paragraph or more, flagged or not, with a heading or without."""

    text: str
    flag: Flag = ""
    title: str = ""


@dataclass(frozen=True)
class Stat:
    """A key figure: a number, which is written as in a table of three digits, or a text."""

    label: str  # A word or two.
    value: Value
    flag: Flag = ""  # Verdict on it.
    note: str = ""  # Small print under it, such as the limit, or the parameter that has it.
    decimals: int | None = None  # Of the number, instead of three digits.


@dataclass(frozen=True)
class Stats:
    """Key figures in a row."""

    items: tuple[Stat, ...]


@dataclass(frozen=True)
class Code:
    """A text with its own lines and spaces, such as a program."""

    text: str


@dataclass(frozen=True, eq=False)
class Details:
    """Parts that fold under a line of text; on paper they are open."""

    summary: str  # The line that stays.
    parts: tuple[Part, ...]
    note: str = ""  # Small print after the line, such as how many there are.
    open: bool = False  # They show from the start.


Part = str | Note | Table | FigureItem | Stats | Code | Details


@dataclass(frozen=True, eq=False)
class Section:
    """A section: text, then notes, tables and figures in this order, then `parts` in their own."""

    title: str
    text: str = ""
    notes: tuple[Note, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[FigureItem, ...] = ()
    parts: tuple[Part, ...] = ()

    @property
    def all_parts(self) -> tuple[Part, ...]:
        """Everything under the heading, in the order in which it is shown."""
        text = (self.text,) if self.text else ()
        return (*text, *self.notes, *self.tables, *self.figures, *self.parts)


@dataclass(frozen=True)
class AnswerCard:
    """The answer to "may I use this posterior?", shown before all else."""

    verdict: Verdict
    name: str = ""  # The posterior's, where a page has several.
    stats: tuple[Stat, ...] = ()  # Key figures next to it.


@dataclass(frozen=True)
class Provenance:
    """The origin of one posterior: pairs of a fact's name and its value."""

    name: str
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, eq=False)
class Report:
    """A page: answer cards, one a posterior, then sections, then how the numbers were made, run by run."""

    title: str
    lede: str = ""  # The page in a few sentences.
    sections: tuple[Section, ...] = ()
    provenance: tuple[Provenance, ...] = ()
    definitions: tuple[tuple[str, str], ...] = ()  # Of terms, shown with the provenance.
    answers: tuple[AnswerCard, ...] = ()
