"""Parts that the pages of several studies have."""

from __future__ import annotations

from collections.abc import Iterable

from onebasin.analysis.report import FigureItem, Note, Section, Table

from .study import Outcomes, failure_table


def failed_section(
    outcomes: Outcomes, text: str = "These cells failed; what follows from them is missing above."
) -> Section | None:
    """Say which cells have no posterior; None where all have one."""
    if not outcomes.failures:
        return None
    note = Note(text, "warn")
    return Section("What failed", notes=(note,), tables=(failure_table(outcomes),))


def filled(*tables: Table) -> tuple[Table, ...]:
    """Keep the tables that have rows."""
    return tuple(table for table in tables if table.rows)


def present(items: Iterable[FigureItem | None]) -> tuple[FigureItem, ...]:
    """Keep the figures that could be drawn."""
    return tuple(item for item in items if item is not None)
