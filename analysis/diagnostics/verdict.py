"""The outcome of a diagnosis, as data: limits, reasons in words, and the answer to "may I use this posterior?".

Convention: a number has one outcome wherever it stands: passed, warned (read on before relying on it), failed (it
forbids use) or not judged, for a number that is NaN, missing or infinite is not evidence. `Limits` decides. A check
that does not apply (trees of static HMC, R-hat of a variational fit) is not among a diagnosis's checks at all.
`Backticks` set a name in code type.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import pandas as pd

from onebasin.base.card import Card, Fact, FactList, Part, Words
from onebasin.base.errors import ArgumentError
from onebasin.base.table import Flag, decimals_beside

from ..summaries.sampler import NAN

PER_CHAIN, OF_ALL = 100.0, 400.0
"""Smallest ESS that is requested by default, a chain and at most: R-hat of many short chains is precise."""

Outcome = Literal["passed", "warned", "failed", "not judged"]
FLAGS: dict[Outcome, Flag] = {
    "passed": "good",
    "warned": "warn",
    "failed": "bad",
    "not judged": "warn",
}
"""The flag of what a check found."""


NOT_RECORDED = (
    "Statistics that were not recorded cannot be judged: keep the sampler's statistics `diverging`, `tree_depth`, "
    "`energy` and `lp` in the group `sample_stats`, and `max_tree_depth` as an attribute."
)
"""The remedy of checks for which nothing was recorded."""
NAMED = 4
"""Names that a sentence lists at most."""


def ended(text: str) -> str:
    """End a text with a full stop, unless it has one or is empty."""
    return text if not text or text.endswith(".") else f"{text}."


def capital(text: str) -> str:
    """Begin a sentence with a capital."""
    return text[:1].upper() + text[1:]


def listed(names: Sequence[str], shown: int = NAMED, code: bool = True) -> str:
    """Names, the first of them where there are many."""
    marked = [f"`{name}`" if code else name for name in names[:shown]]
    if len(names) > shown:
        return f"{', '.join(marked)} and {len(names) - shown} more"
    return f"{', '.join(marked[:-1])} and {marked[-1]}" if len(marked) > 1 else "".join(marked)


def chains_in_words(chains: Sequence[int]) -> str:
    """Name chains: ``chains 0, 2``."""
    return f"chain{'s' if len(chains) > 1 else ''} {', '.join(map(str, chains))}"


def counted(count: int, noun: str) -> str:
    """Count things: ``1 entry``, ``2 entries``."""
    plural = noun[:-1] + "ies" if noun.endswith("y") else f"{noun}s"
    return f"{count:,} {noun if count == 1 else plural}"


def percent(share: float) -> str:
    """Write a share as a percentage of two digits."""
    return f"{100 * share:.2g} %" if 100 * share < 99.5 else "100 %"  # not 1e+02 %


def digits(value: float, limits: Sequence[float], least: int = 0) -> str:
    """Write a number with as many decimals as tell it from its limits."""
    return f"{value:,.{decimals_beside(value, limits, least)}f}"


def in_rhat(value: float, limits: Sequence[float] = ()) -> str:
    """Write an R-hat with two or three decimals, or as many as tell it from its limits."""
    if math.isnan(value):
        return "not defined"
    if value > 100:
        return "over 100"
    return digits(value, limits, 3 if value < 1.095 else 2)


@dataclass(frozen=True)
class Limits:
    """Limits of what counts as good enough: every limit that decides about Markov chains or is warned of."""

    rhat: float = 1.01  # the largest that passes
    ess: float | None = (
        None  # the smallest bulk and tail ESS over all chains; see `PER_CHAIN` if None
    )
    bfmi: float = 0.3  # the smallest

    DECIDES: ClassVar[float] = 1.05
    """R-hat that forbids use where the limit is ArviZ's default of 1.01: among equal chains with an ESS of 400, 1.01 is
    the mean of R-hat, and 1.05 its quantile .99999."""
    DIVERGES: ClassVar[float] = 0.05
    """Share of draws that diverged above which nothing that was drawn is trusted."""
    FEW: ClassVar[int] = 10
    """Draws of a chain below which R-hat and ESS say nothing."""

    def __post_init__(self) -> None:
        """Reject limits that no posterior, or every posterior, would meet."""
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
        """Smallest ESS that passes, of that many chains together."""
        return min(PER_CHAIN * chains, OF_ALL) if self.ess is None else self.ess

    def outcome(
        self, quantity: str, value: float, chains: int = 1, *, decides: bool = True
    ) -> Outcome:
        """Judge ``rhat``, ``ess_bulk`` or ``ess_tail`` of a number of chains, ``bfmi``, or ``diverging``, a share.

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
    """The worst value of a diagnostic and the parameter that has it (None if there is none)."""

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
    fact : str
        The finding, or why it could not be judged, with the numbers, without a full stop; empty if there is nothing
        to say.
    meaning : str
        The meaning of the finding, if that needs words, without a full stop.
    remedy : str
        The remedy, in whole sentences; may be empty.
    """

    name: str
    outcome: Outcome
    fact: str = ""
    meaning: str = ""
    remedy: str = ""

    @property
    def flag(self) -> Flag:
        """``good``, ``warn`` or ``bad``."""
        return FLAGS[self.outcome]

    @property
    def sentence(self) -> str:
        """The finding and its meaning, in a whole sentence."""
        return ended(f"{self.fact}: {self.meaning}" if self.meaning else self.fact)

    evidence = sentence

    @property
    def sentences(self) -> tuple[str, ...]:
        """All of it, in whole sentences."""
        if not self.fact:
            return ()
        if self.meaning:
            return (f"{self.sentence} {self.remedy}".strip(),)
        if self.remedy in ("", NOT_RECORDED):  # several checks say the latter: once is enough
            return (self.sentence, self.remedy) if self.remedy else (self.sentence,)
        return (f"{self.fact}: {self.remedy[:1].lower()}{self.remedy[1:]}",)

    @property
    def in_short(self) -> str:
        """The finding and the remedy, without the meaning."""
        return f"{ended(self.fact)} {self.remedy}".strip()

    def to_dict(self, *fields: str) -> dict[str, Any]:
        """Return some of it as plain types for JSON."""
        return {name: getattr(self, name) for name in fields}


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
    return f"no check failed, but some checks could not be judged; {told}"


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
        What to declare with ``--exchangeable``, one text a block; empty if nothing is to be declared.
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
        """Causes, their evidence and remedies, each empty if the answer and its rows state it."""
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
            if each.name not in known and each.remedy != NOT_RECORDED and each.fact not in facts
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
