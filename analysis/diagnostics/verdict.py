"""The outcome of a diagnosis as data: limits, reasons, and the answer to "may I use this posterior?".

A number has the same outcome wherever it is shown: passed, warned (read the details before you rely on it), failed
(it forbids use) or not judged (NaN, missing or infinite). `Limits` decides. A diagnosis omits checks that do not
apply, such as tree depths of static HMC. Names in `backticks` are shown in code type.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import pandas as pd

from onebasin.base.errors import ArgumentError
from onebasin.base.table import Flag, decimals_beside

from ..summaries.sampler import NAN

PER_CHAIN, OF_ALL = 100.0, 400.0
"""Default minimum ESS: the number per chain, and the most required in total, as many chains make R-hat precise."""

Outcome = Literal["passed", "warned", "failed", "not judged"]
FLAGS: dict[Outcome, Flag] = {
    "passed": "good",
    "warned": "warn",
    "failed": "bad",
    "not judged": "warn",
}
"""Flags of outcomes."""
NOT_RECORDED = (
    "Statistics that were not recorded cannot be judged. Keep the sampler's statistics `diverging`, `tree_depth`, "
    "`energy` and `lp` in the group `sample_stats`, and `max_tree_depth` as an attribute."
)
"""Remedy for checks whose statistics were not recorded."""
NAMED = 4
"""Maximum number of names that a sentence lists."""


def ended(text: str) -> str:
    """Add a full stop to a text that needs one. An empty text stays empty."""
    return text if not text or text.endswith(".") else f"{text}."


def capital(text: str) -> str:
    """Make the first letter a capital."""
    return text[:1].upper() + text[1:]


def listed(names: Sequence[str], shown: int = NAMED, code: bool = True) -> str:
    """Join names to a list in words; shorten a long list."""
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
    """Write a share as a percentage with two digits."""
    return f"{100 * share:.2g} %" if 100 * share < 99.5 else "100 %"  # Not "1e+02 %".


def digits(value: float, limits: Sequence[float], least: int = 0) -> str:
    """Write a number with enough decimals to show on which side of its limits it lies."""
    return f"{value:,.{decimals_beside(value, limits, least)}f}"


def in_rhat(value: float, limits: Sequence[float] = ()) -> str:
    """Write an R-hat with two or three decimals, or enough to show on which side of its limits it lies."""
    if math.isnan(value):
        return "not defined"
    if value > 100:
        return "over 100"
    return digits(value, limits, 3 if value < 1.095 else 2)


@dataclass(frozen=True)
class Limits:
    """Limits beyond which a diagnostic of Markov chains gives a warning or forbids use."""

    rhat: float = 1.01  # The largest that passes.
    ess: float | None = None  # The smallest that passes; default: `PER_CHAIN`, `OF_ALL`.
    bfmi: float = 0.3  # The smallest that passes.

    DECIDES: ClassVar[float] = 1.05
    """R-hat above which use is forbidden if the limit is the default of 1.01, as in ArviZ. For converged chains with
    a total ESS of 400, R-hat has mean 1.01 and 99.999 % quantile 1.05."""
    DIVERGES: ClassVar[float] = 0.05
    """Share of divergent draws above which the posterior is unusable."""
    FEW: ClassVar[int] = 10
    """Number of draws per chain below which R-hat and ESS are meaningless."""

    def __post_init__(self) -> None:
        """Reject limits that every posterior, or no posterior, would meet."""
        if not self.rhat > 1:
            raise ArgumentError(
                f"`rhat_max` must be a number above 1, such as 1.01; got {self.rhat}."
            )
        if self.ess is not None and not self.ess > 0:
            raise ArgumentError(
                f"`ess_threshold` must be a positive number, such as 400; got {self.ess}."
            )
        if not self.bfmi > 0:
            raise ArgumentError(
                f"`bfmi_threshold` must be a positive number, such as 0.3; got {self.bfmi}."
            )

    @property
    def deciding_rhat(self) -> float:
        """R-hat above which use is forbidden: `DECIDES`, or a limit other than the default."""
        return self.DECIDES if self.rhat == 1.01 else self.rhat

    def least_ess(self, chains: int) -> float:
        """Return the smallest ESS that passes with this number of chains."""
        return min(PER_CHAIN * chains, OF_ALL) if self.ess is None else self.ess

    def outcome(
        self, quantity: str, value: float, chains: int = 1, *, decides: bool = True
    ) -> Outcome:
        """Judge an ``rhat``, ``ess_bulk``, ``ess_tail`` or ``bfmi``, or a share of ``diverging`` draws.

        A quantity that does not decide the verdict can at most give a warning.
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
    """The worst value of a diagnostic and the parameter that has it (None if there is no value)."""

    value: float = NAN
    parameter: str | None = None

    @classmethod
    def of(cls, column: pd.Series, *, smallest: bool = False) -> Extreme:
        """Return the largest or smallest value in a column, ignoring NaN, which constants have."""
        known = column.dropna()
        if known.empty:
            return cls()
        name = known.idxmin() if smallest else known.idxmax()
        return cls(float(known[name]), str(name))


@dataclass(frozen=True)
class Reason:
    """A check, a row under the answer, or a cause that keeps a posterior from being used as it is.

    Attributes
    ----------
    name : str
        The check (``R-hat``, ``divergences``, ``labels``, ...), or the cause: ``not-finite``, ``stuck``, ``labels``,
        ``funnel``, ``modes``, ``weights``, ``short``, ...
    outcome : str
        ``passed``, ``warned``, ``failed`` or ``not judged``.
    fact : str
        The finding with its numbers, or the reason why it could not be judged; no full stop; may be empty.
    meaning : str
        The meaning of the finding; no full stop; may be empty.
    remedy : str
        The remedy in full sentences; may be empty.
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
        """The finding and its meaning in one sentence."""
        return ended(f"{self.fact}: {self.meaning}" if self.meaning else self.fact)

    evidence = sentence

    @property
    def sentences(self) -> tuple[str, ...]:
        """The finding, its meaning and the remedy in full sentences."""
        if not self.fact:
            return ()
        if self.meaning:
            return (f"{self.sentence} {self.remedy}".strip(),)
        if self.remedy in ("", NOT_RECORDED):  # `said_once` shows it once.
            return (self.sentence, self.remedy) if self.remedy else (self.sentence,)
        return (f"{self.fact}: {self.remedy[:1].lower()}{self.remedy[1:]}",)

    @property
    def in_short(self) -> str:
        """The finding and the remedy, without the meaning."""
        return f"{ended(self.fact)} {self.remedy}".strip()

    def to_dict(self, *fields: str) -> dict[str, Any]:
        """Return the named fields as plain types for JSON."""
        return {name: getattr(self, name) for name in fields}


def worst_of(outcomes: Iterable[Outcome]) -> Outcome:
    """Return the most serious outcome, or "not judged" if there are none."""
    order: tuple[Outcome, ...] = ("failed", "warned", "not judged", "passed")
    found = set(outcomes) or {"not judged"}
    return next(outcome for outcome in order if outcome in found)


Answer = Literal["usable", "aligned", "invariant", "partly", "unusable"]
"""The answers: usable; usable after alignment; usable for label-free quantities (predictions, `lp`, invariants);
usable except for named quantities; not usable."""

LABELS, PREDICTIONS, SAMPLER = "labels", "predictions and invariants", "sampler"
"""Names of the rows shown below an answer."""
_SHOWN: dict[Answer, tuple[str, Flag]] = {
    "usable": ("Usable", "good"),
    "aligned": ("Usable after alignment", "good"),
    "invariant": ("Usable for label-free quantities", "warn"),
    "partly": ("Usable in part", "warn"),
    "unusable": ("Not usable", "bad"),
}
"""Headings and flags of answers."""
SAYS_NO_MORE = ("approximation", "tails", "unproved")
"""Causes whose names say no more than their evidence."""


@dataclass(frozen=True)
class Verdict:
    """The answer to whether a posterior may be used, and its reasons.

    Attributes
    ----------
    answer : str
        ``usable``, ``aligned``, ``invariant``, ``partly`` or ``unusable``.
    headline : tuple of Reason
        The answer in one or two sentences.
    rows : tuple of Reason
        Labels, predictions and invariants, sampler: each has an `outcome` and a `sentence`.
    causes : tuple of Reason
        The most likely causes first, each with `evidence` and `remedy`; empty if the posterior is usable as it is.
    exchangeable : tuple of str
        Declarations for ``--exchangeable``, one string per block; empty if there is nothing to declare.
    remarks : tuple of Reason
        Further warnings, and checks that could not be judged.
    besides : tuple of Reason
        Quantities not used for the verdict (generated quantities, integers, constants, entries that are never
        finite), and notes on resumed runs.
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
        """The answer without the findings that its rows already state."""
        return " ".join(each.in_short for each in self.headline if each not in self._in_rows)

    @property
    def steps(self) -> tuple[tuple[str, str, str], ...]:
        """Name, evidence and remedy of each cause. A string is empty if the answer or its rows already contain it."""
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
        """Remarks that neither the rows nor the marks in the table already show."""
        facts = " ".join(row.fact for row in self.rows)
        known = ("R-hat", "bulk ESS", "tail ESS")
        return tuple(
            each
            for each in self.remarks
            if each.name not in known and each.remedy != NOT_RECORDED and each.fact not in facts
        )

    @property
    def unjudged(self) -> tuple[str, ...]:
        """Sentences that name the checks that could not be judged and say why."""
        return said_once(reason for reason in self.remarks if reason.outcome == "not judged")

    @property
    def left_out(self) -> tuple[str, ...]:
        """Sentences on the quantities that are not used for the verdict."""
        return said_once(self.besides)

    def to_dict(self) -> dict[str, Any]:
        """Return plain types for JSON, beginning with the answer, the names of causes and the declarations."""
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
    """Return the sentences of reasons. A sentence that several reasons share appears once, at its last place."""
    sentences = [sentence for reason in reasons for sentence in reason.sentences]
    return tuple(reversed(dict.fromkeys(reversed(sentences))))
