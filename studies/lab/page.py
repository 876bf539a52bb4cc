"""The page of a study: chapters of text, views and figures, with the layout that all studies share."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from onebasin.analysis.page.page import FigureItem, Note, Report, Section
from onebasin.analysis.report import cost_table, describe_run, health_table
from onebasin.base.table import Table

from .cells import Cell, Outcomes
from .frame import Frames
from .tables import FAILURES, STATEMENTS, TRIALS, Tabulate, filled

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


@dataclass(frozen=True)
class Text:
    """The sentences of a study."""

    title: str  # Heading of the page.
    headline: Callable[[Frames], Iterable[str]]
    """From the frames to the result in a few sentences; empty ones are left out."""
    chapters: Callable[[Any, Outcomes, Frames], Iterable[Chapter | None]]
    """From settings, outcomes and frames to the chapters of the page; None stands for one that is left out."""
    definitions: tuple[tuple[str, str], ...] = ()  # Terms and their definitions.
    run_name: Callable[[Cell], str | None] = lambda cell: cell.label
    """From a cell to the name under which the page says how it was made; None leaves it out."""


def page(text: Text, config: Any, outcomes: Outcomes, frames: Frames) -> Report:
    """Lay out the page."""
    chapters = filter(None, text.chapters(config, outcomes, frames))
    names = {cell: text.run_name(cell) for cell in outcomes}
    return Report(
        title=text.title,
        lede=" ".join(headline(text, frames)),
        sections=tuple(filter(None, (_section(chapter, frames) for chapter in chapters))),
        provenance=tuple(
            describe_run(name, outcomes.tree(cell))
            for cell, name in names.items()
            if name is not None
        ),
        definitions=text.definitions,
    )


def headline(text: Text, frames: Frames) -> tuple[str, ...]:
    """Say the result in a few sentences."""
    return tuple(sentence for sentence in text.headline(frames) if sentence)


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


def _section(chapter: Chapter, frames: Frames) -> Section | None:
    tables = filled(chapter.views, frames)
    if chapter.views and not tables:
        return None
    shown = list(chapter.extras)
    return Section(
        chapter.title,
        text=chapter.text,
        notes=tuple(item for item in shown if isinstance(item, Note)),
        tables=(*tables, *(item for item in shown if isinstance(item, Table))),
        figures=tuple(item for item in shown if isinstance(item, FigureItem)),
    )
