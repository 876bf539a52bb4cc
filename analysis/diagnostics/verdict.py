"""The outcome of a diagnosis, as data: limits, reasons, and the answer to "may I use this posterior?".

Convention: a number has one outcome wherever it stands: passed, warned (read on before relying on it), failed (it
forbids use) or not judged, for a number that is NaN, missing or infinite is no evidence. `Limits` decides. A check that
does not apply (trees of static HMC, R-hat of a variational fit) is not among a diagnosis's checks at all. What a reason
says in words, `describe` tells.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import pandas as pd

from onebasin.base.card import Card, Fact, FactList, Part, Words
from onebasin.base.errors import ArgumentError
from onebasin.base.table import Flag

from ..summaries.sampler import NAN
from .describe import ended, sentences_of
from .words_of_checks import NOT_RECORDED

PER_CHAIN, OF_ALL = 100.0, 400.0
"""Smallest ESS that is asked for by default, a chain and at most: R-hat of many short chains is precise."""

Outcome = Literal["passed", "warned", "failed", "not judged"]
FLAGS: dict[Outcome, Flag] = {
    "passed": "good",
    "warned": "warn",
    "failed": "bad",
    "not judged": "warn",
}
"""The flag of what a check found."""


@dataclass(frozen=True)
class Limits:
    """Limits of what counts as good enough: every limit that decides about Markov chains or is warned of."""

    rhat: float = 1.01  # the largest that passes
    ess: float | None = None  # the smallest, bulk and tail, of all chains; see `PER_CHAIN` if None
    bfmi: float = 0.3  # the smallest

    DECIDES: ClassVar[float] = 1.05
    """R-hat that forbids use where the limit is ArviZ's default of 1.01: among equal chains with an ESS of 400, 1.01 is
    the mean of R-hat, and 1.05 its quantile .99999."""
    DIVERGES: ClassVar[float] = 0.05
    """Share of draws that diverged from which on nothing that was drawn is trusted."""
    FEW: ClassVar[int] = 10
    """Draws of a chain below which R-hat and ESS say nothing."""

    def __post_init__(self) -> None:
        """Refuse limits that no posterior, or every posterior, would meet."""
        if not self.rhat > 1:
            raise ArgumentError(f"`rhat_max` is {self.rhat}: it must be above 1, such as 1.01.")
        if self.ess is not None and not self.ess > 0:
            raise ArgumentError(f"`ess_threshold` is {self.ess}: it must be positive, such as 400.")
        if not self.bfmi > 0:
            raise ArgumentError(
                f"`bfmi_threshold` is {self.bfmi}: it must be positive, such as 0.3."
            )

    @property
    def deciding_rhat(self) -> float:
        """R-hat above which use is forbidden; your own limit decides as it stands."""
        return self.DECIDES if self.rhat == 1.01 else self.rhat

    def least_ess(self, chains: int) -> float:
        """Smallest ESS that passes, of so many chains together."""
        return min(PER_CHAIN * chains, OF_ALL) if self.ess is None else self.ess

    def outcome(
        self, quantity: str, value: float, chains: int = 1, *, decides: bool = True
    ) -> Outcome:
        """Judge ``rhat``, ``ess_bulk`` or ``ess_tail`` of so many chains, ``bfmi``, or ``diverging``, a share of draws.

        What does not decide, as the answer does not rest on it, is warned of at most.
        """
        if math.isnan(value):
            return "not judged"
        warned, failed = {
            "rhat": (value > self.rhat, value > self.deciding_rhat),
            "ess_bulk": (value < self.least_ess(chains),) * 2,
            "ess_tail": (value < self.least_ess(chains), False),
            "bfmi": (value < self.bfmi, False),
            "diverging": (value > 0, value > self.DIVERGES),
        }[quantity]
        if failed and decides:
            return "failed"
        return "warned" if warned else "passed"


@dataclass(frozen=True)
class Extreme:
    """The worst value of a diagnostic and the parameter that has it (None where there is none)."""

    value: float = NAN
    parameter: str | None = None

    @classmethod
    def of(cls, column: pd.Series, *, smallest: bool = False) -> Extreme:
        """Return the largest or smallest value of a table's column; NaN, as constants have it, does not count."""
        known = column.dropna()
        if known.empty:
            return cls()
        name = known.idxmin() if smallest else known.idxmax()
        return cls(float(known[name]), str(name))


@dataclass(frozen=True)
class Reason:
    """One thing that was looked at: a check, a line under the answer, or why a posterior cannot be used as it is.

    Attributes
    ----------
    name : str
        What was looked at (``R-hat``, ``divergences``, ``labels``, ...), or a cause: ``not-finite``, ``stuck``,
        ``labels``, ``funnel``, ``modes``, ``weights``, ``short``, ...
    outcome : str
        ``passed``, ``warned``, ``failed`` or ``not judged``.
    kind : str
        What was found, a key of `describe.SENTENCES`; empty where there is nothing to say.
    numbers : mapping
        Names and numbers of it.
    """

    name: str
    outcome: Outcome
    kind: str = ""
    numbers: Mapping[str, Any] = field(default_factory=dict)

    @property
    def flag(self) -> Flag:
        """``good``, ``warn`` or ``bad``."""
        return FLAGS[self.outcome]

    @property
    def fact(self) -> str:
        """The finding, or why it could not be judged, with the numbers; empty where there is nothing to say."""
        return sentences_of(self.kind, self.numbers)[0]

    @property
    def remedy(self) -> str:
        """The remedy, in whole sentences; may be empty."""
        return sentences_of(self.kind, self.numbers)[2]

    @property
    def sentence(self) -> str:
        """The finding and its meaning, in a whole sentence."""
        fact, meaning, _ = sentences_of(self.kind, self.numbers)
        return ended(f"{fact}: {meaning}" if meaning else fact)

    evidence = sentence

    @property
    def sentences(self) -> tuple[str, ...]:
        """All of it, in whole sentences."""
        fact, meaning, remedy = sentences_of(self.kind, self.numbers)
        if not fact:
            return ()
        if meaning:
            return (f"{self.sentence} {remedy}".strip(),)
        if remedy in ("", ended(NOT_RECORDED)):  # several checks say the latter: once is enough
            return (self.sentence, remedy) if remedy else (self.sentence,)
        return (f"{fact}: {remedy[:1].lower()}{remedy[1:]}",)

    @property
    def in_short(self) -> str:
        """The finding and the remedy, without the meaning."""
        return f"{ended(self.fact)} {self.remedy}".strip()

    def to_dict(self, *fields: str) -> dict[str, Any]:
        """Return some of it as plain types for JSON."""
        return {name: getattr(self, name) for name in fields}


def overall(checks: Sequence[Reason]) -> Outcome:
    """Sum checks up: failed if one is, passed only if there are some and all of them are."""
    return worst_of(check.outcome for check in checks)


def worst_of(outcomes: Iterable[Outcome]) -> Outcome:
    """Return the gravest of some outcomes; not judged where there are none."""
    order: tuple[Outcome, ...] = ("failed", "warned", "not judged", "passed")
    found = set(outcomes) or {"not judged"}
    return next(outcome for outcome in order if outcome in found)


def in_words(checks: Sequence[Reason]) -> str:
    """Say what the checks come to, in one line."""
    if not checks:
        return "nothing could be checked"
    said = {
        outcome: ", ".join(check.name for check in checks if check.outcome == outcome)
        for outcome in ("failed", "warned", "not judged")
    }
    told = "; ".join(f"{outcome}: {names}" for outcome, names in said.items() if names)
    if not told:
        return "every check is passed"
    if said["failed"] or said["warned"]:
        return told
    return f"no check failed, but not every check could be judged; {told}"


Answer = Literal["usable", "aligned", "invariant", "partly", "unusable"]
"""Usable; usable after alignment; usable for label-free quantities (predictions, `lp`, invariants); usable except for
named quantities; not usable."""

LABELS, PREDICTIONS, SAMPLER = "labels", "predictions and invariants", "sampler"
"""Names of the rows under an answer."""

_SHOWN: dict[Answer, tuple[str, Flag]] = {
    "usable": ("Usable", "good"),
    "aligned": ("Usable after alignment", "good"),
    "invariant": ("Usable for label-free quantities", "warn"),
    "partly": ("Usable in part", "warn"),
    "unusable": ("Not usable", "bad"),
}
"""An answer as a heading, and its flag."""

SAYS_NO_MORE = ("approximation", "tails", "unproved")
"""Causes whose name says no more than their evidence."""


@dataclass(frozen=True)
class Verdict:
    """The answer and its reasons.

    Attributes
    ----------
    answer : str
        ``usable``, ``aligned``, ``invariant``, ``partly`` or ``unusable``.
    headline : tuple of Reason
        What the answer says in one or two sentences.
    rows : tuple of Reason
        Labels, predictions and invariants, sampler: each has an `outcome` and a `sentence`.
    causes : tuple of Reason
        Most likely first, each with `evidence` and `remedy`; empty for a posterior that is usable as it is.
    exchangeable : tuple of str
        What to declare with ``--exchangeable``, one text a block; empty where nothing is to be declared.
    remarks : tuple of Reason
        Remarks to be read next to the answer: what was warned of and is not said yet, and what could not be judged.
    besides : tuple of Reason
        Quantities not used for the verdict (generated quantities, integers, constants, NaN by structure), and how the
        draws came about.
    """

    answer: Answer
    headline: tuple[Reason, ...]
    rows: tuple[Reason, ...]
    causes: tuple[Reason, ...] = ()
    exchangeable: tuple[str, ...] = ()
    remarks: tuple[Reason, ...] = ()
    besides: tuple[Reason, ...] = ()

    @property
    def flag(self) -> Flag:
        """``good``, ``warn`` or ``bad``."""
        return _SHOWN[self.answer][1]

    @property
    def heading(self) -> str:
        """The answer in two to five words, such as ``Usable after alignment``."""
        return _SHOWN[self.answer][0]

    @property
    def sentence(self) -> str:
        """The answer in one or two sentences."""
        return " ".join(reason.in_short for reason in self.headline)

    @property
    def in_short(self) -> str:
        """The answer without the findings that its rows state."""
        return " ".join(each.in_short for each in self.headline if each not in self._in_rows)

    @property
    def steps(self) -> tuple[tuple[str, str, str], ...]:
        """Causes, their evidence and remedies, each empty where the answer and its rows state it."""
        said, aligned = self.in_short, self.answer in ("aligned", "invariant")
        stated = " ".join((said, *(row.sentence for row in self.rows)))
        steps = []
        for cause in self.causes:
            known = cause.evidence in stated
            plain = (aligned and cause.name == "labels") or (known and cause.name in SAYS_NO_MORE)
            evidence = "" if plain or known else cause.evidence
            remedy = "" if cause.remedy in said else cause.remedy
            steps.append(("" if plain else cause.name, evidence, remedy))
        steps += [("", "", each.remedy) for each in self._in_rows if each.remedy]
        return tuple(step for step in dict.fromkeys(steps) if any(step))

    @property
    def _in_rows(self) -> tuple[Reason, ...]:
        names, facts = {row.name for row in self.rows}, " ".join(row.fact for row in self.rows)
        return tuple(each for each in self.headline if each.name in names or each.fact in facts)

    @property
    def own_remarks(self) -> tuple[Reason, ...]:
        """Remarks that neither a row nor the marks of a table make."""
        facts = " ".join(row.fact for row in self.rows)
        known = ("R-hat", "bulk ESS", "tail ESS")
        return tuple(
            each
            for each in self.remarks
            if each.name not in known and each.kind != "not recorded" and each.fact not in facts
        )

    @property
    def unjudged(self) -> tuple[str, ...]:
        """Sentences on what could not be judged, and why."""
        return said_once(reason for reason in self.remarks if reason.outcome == "not judged")

    @property
    def left_out(self) -> tuple[str, ...]:
        """Sentences on the quantities that are not used for the verdict."""
        return said_once(self.besides)

    def to_dict(self) -> dict[str, Any]:
        """Return plain types for JSON: first the answer, the causes' names and the words to declare."""
        return {
            "verdict": self.answer,
            "causes": [cause.name for cause in self.causes],
            "exchangeable": list(self.exchangeable),
            "sentence": self.sentence,
            "rows": [row.to_dict("name", "outcome", "sentence") for row in self.rows],
            "evidence": [cause.to_dict("name", "evidence", "remedy") for cause in self.causes],
            "unjudged": list(self.unjudged),
            "left_out": list(self.left_out),
        }


def said_once(reasons: Iterable[Reason]) -> tuple[str, ...]:
    """All that reasons say; what several of them say, such as a common remedy, once, after all of them."""
    sentences = [sentence for reason in reasons for sentence in reason.sentences]
    return tuple(reversed(dict.fromkeys(reversed(sentences))))


def card_of(verdict: Verdict | None, checks: Sequence[Reason], table: Sequence[Part]) -> Card:
    """Show the answer with its rows and what to do, or what checks come to; then a table, and what is not used."""
    if verdict is None:
        said, wrong = in_words(checks), (c for c in checks if c.outcome in ("failed", "warned"))
        warned = (Words(sentence, flag="warn") for sentence in said_once(wrong))
        first = Words(f"{said[:1].upper()}{said[1:]}.")
        return Card("Numbers of a posterior", (first, *warned, *table))
    parts: list[Part] = [Words(verdict.in_short)]
    parts.append(FactList(tuple(Fact(row.name, row.sentence, row.flag) for row in verdict.rows)))
    lines: list[tuple[str, str]] = []
    for name, evidence, remedy in verdict.steps:
        lines.append(("why", f"{name}: {evidence}" if evidence else name))
        lines.append(("what to do", remedy))
    parts += [FactList.of(*lines)] if lines else []
    for remark in verdict.own_remarks:
        parts += [Words(sentence, flag=remark.flag) for sentence in remark.sentences]
    parts += [*table, *(Words(sentence, small=True) for sentence in verdict.left_out)]
    return Card(verdict.heading, tuple(parts), verdict.flag)
