"""Tables and sections as the studies made them that have not been ported to views yet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from onebasin.analysis.report import Cell as TableCell
from onebasin.analysis.report import FigureItem, Note, Section, Table

from .cells import Outcomes
from .claims import Statement

_FLAGS: Mapping[str, Literal["good", "warn", "bad"]] = {
    "reproduces": "good",
    "does not reproduce": "bad",
    "unclear": "warn",
}
_HOLDS: Mapping[bool | None, tuple[str, Literal["good", "warn", "bad"]]] = {
    True: ("yes", "good"),
    False: ("no", "bad"),
    None: ("void", "warn"),
}


def count_verdicts(statements: Sequence[Statement]) -> str:
    """Say how many statements reproduce, in a sentence."""
    counts = Counter(statement.verdict for statement in statements)
    yes, no = counts["reproduces"], counts["does not reproduce"]
    parts = (
        f"{yes} {'reproduces' if yes == 1 else 'reproduce'}",
        f"{no} {'does' if no == 1 else 'do'} not",
        f"{counts['unclear']} {'is' if counts['unclear'] == 1 else 'are'} unclear",
    )
    return f"Of {len(statements)} statements of the paper, {', '.join(parts)}."


def statement_table(statements: Sequence[Statement]) -> Table:
    """Tabulate the paper's statements beside what became of them."""
    rows = tuple(
        (s.label, s.quote, s.rule, s.outcome, TableCell(s.verdict, _FLAGS[s.verdict]))
        for s in statements
    )
    columns = ("statement", "the paper's words", "a comparison counts if", "outcome", "verdict")
    caption = "A statement reproduces if it holds in every comparison; one that is void, or that "
    return Table(columns, rows, caption + "contradicts the others, makes it unclear")


def trial_table(statements: Sequence[Statement]) -> Table:
    """Tabulate every comparison of every statement."""
    rows = tuple(
        (s.label, trial.where, trial.measured, TableCell(*_HOLDS[trial.holds]))
        for s in statements
        for trial in s.trials
    )
    columns = ("statement", "compared", "measured", "holds")
    return Table(columns, rows, "Every comparison behind the verdicts")


def verdict_table(statements: Sequence[Statement]) -> Table:
    """Tabulate the verdicts alone, for a terminal."""
    rows = tuple((s.label, s.outcome, TableCell(s.verdict, _FLAGS[s.verdict])) for s in statements)
    return Table(("the paper's statement", "here", "verdict"), rows)


def failure_table(outcomes: Outcomes) -> Table:
    """Tabulate the cells that failed, with the reason."""
    rows = tuple((cell.label, reason) for cell, reason in outcomes.failures.items())
    return Table(("cell", "why it failed"), rows, "Cells without a posterior")


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
