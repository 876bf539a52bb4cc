"""A paper's statements beside what was measured: comparisons, verdicts, tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from onebasin.analysis.report import Cell as TableCell
from onebasin.analysis.report import Table

Verdict = Literal["reproduces", "does not reproduce", "unclear"]
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


@dataclass(frozen=True)
class Trial:
    """One comparison in which a statement was tried.

    Attributes
    ----------
    where : str
        What was compared.
    measured : str
        The numbers.
    holds : bool or None
        Whether the statement holds there; None where the numbers cannot be trusted.
    """

    where: str
    measured: str
    holds: bool | None


@dataclass(frozen=True)
class Statement:
    """A sentence of the paper beside what was measured.

    Attributes
    ----------
    label : str
        A few words: what of it is tried here.
    quote : str
        The paper's words.
    rule : str
        When a comparison counts for it.
    trials : tuple of Trial
        The comparisons.
    verdict : {"reproduces", "does not reproduce", "unclear"}
        What follows from them, computed.
    """

    label: str
    quote: str
    rule: str
    trials: tuple[Trial, ...]
    verdict: Verdict

    @property
    def outcome(self) -> str:
        """In how many comparisons it holds."""
        if not self.trials:
            return "not measured in this run"
        sure = [trial.holds for trial in self.trials if trial.holds is not None]
        void = len(self.trials) - len(sure)
        held = f"holds in {sum(sure)} of {len(sure)}" if sure else "nothing can be said"
        return f"{held}, {void} void" if void else held


def judge(holds: Sequence[bool | None]) -> Verdict:
    """Turn the comparisons in which a statement was tried into a verdict.

    Parameters
    ----------
    holds : sequence of bool or None
        Whether it holds; None where the numbers cannot be trusted.

    Returns
    -------
    {"reproduces", "does not reproduce", "unclear"}
        The first if it holds in all of them, the second if in none; else, and where one of them
        cannot be trusted, unclear.
    """
    if not holds or None in holds:
        return "unclear"
    if all(holds):
        return "reproduces"
    return "unclear" if any(holds) else "does not reproduce"


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
