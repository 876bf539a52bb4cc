"""What a diagnosis comes to: its limits, its checks, and the answer to "may I use this posterior?" with its reasons.

Convention: sentences are for a person, whole and plain; `backticks` set a name in code type. A check is passed, failed
or not judged, for a number that is NaN, missing or infinite is no evidence, and never counts as good: whoever says that
a posterior passes has judged every check that applies to it. A check that does not apply (trees of static HMC, R-hat of
a variational fit) is not among a diagnosis's checks at all.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import pandas as pd

from onebasin.base.errors import ArgumentError
from onebasin.base.table import Flag

from ..summaries.sampler import NAN

PER_CHAIN = 100.0
"""Smallest ESS a chain, unless another one is asked for."""


@dataclass(frozen=True)
class Limits:
    """What counts as good enough.

    Attributes
    ----------
    rhat
        Largest R-hat.
    ess
        Smallest bulk and tail ESS, of all chains together; None for `PER_CHAIN` times the number of chains.
    bfmi
        Smallest E-BFMI.
    """

    rhat: float = 1.01
    ess: float | None = None
    bfmi: float = 0.3

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


Outcome = Literal["passed", "failed", "not judged"]


@dataclass(frozen=True)
class Check:
    """One check of a posterior.

    Attributes
    ----------
    name : str
        What was looked at.
    outcome : str
        ``passed``, ``failed`` or ``not judged``.
    fact : str
        What was found, or why it could not be judged, with the numbers; empty where the check is passed, and where
        another one's words hold for this one too. Like the others it begins a sentence and does not end it.
    meaning : str
        What that means for the draws; may be empty.
    remedy : str
        What to do; may be empty.
    common : str
        What to do that several checks say, a whole sentence, so that it can be said once.
    """

    name: str
    outcome: Outcome
    fact: str = ""
    meaning: str = ""
    remedy: str = ""
    common: str = ""

    @property
    def sentences(self) -> tuple[str, ...]:
        """All of it, in whole sentences."""
        if not self.fact:
            return ()
        if self.meaning:
            said = f"{self.fact}: {self.meaning}." + (f" {self.remedy}." if self.remedy else "")
        elif self.remedy:
            said = f"{self.fact}: {self.remedy[:1].lower()}{self.remedy[1:]}."
        else:
            said = f"{self.fact}."
        return (said, self.common) if self.common else (said,)

    @property
    def in_short(self) -> str:
        """What was found and what to do, without what it means."""
        return f"{self.fact}." + (f" {self.remedy}." if self.remedy else "")

    def to_dict(self) -> dict[str, Any]:
        """Return plain types for JSON."""
        fields = ("name", "outcome", "fact", "remedy", "sentences")
        return {name: getattr(self, name) for name in fields}


def passed(name: str) -> Check:
    """Give a check that was judged and is good."""
    return Check(name, "passed")


def failed(name: str, fact: str = "", meaning: str = "", remedy: str = "") -> Check:
    """Give a check that was judged and is bad."""
    return Check(name, "failed", fact, meaning, remedy)


def not_judged(
    name: str, fact: str = "", meaning: str = "", remedy: str = "", common: str = ""
) -> Check:
    """Give a check for which there is no evidence."""
    return Check(name, "not judged", fact, meaning, remedy, common)


def overall(checks: Sequence[Check]) -> Outcome:
    """Sum checks up: failed if one is, passed only if there are some and all of them are."""
    outcomes = {check.outcome for check in checks}
    if "failed" in outcomes:
        return "failed"
    return "passed" if outcomes == {"passed"} else "not judged"


def failures(checks: Sequence[Check], told: Collection[str] = ()) -> tuple[str, ...]:
    """Say what is wrong and what to do, but of checks whose names are told of elsewhere."""
    bad = (c for c in checks if c.outcome == "failed" and c.name not in told)
    return tuple(sentence for check in bad for sentence in check.sentences)


def in_words(checks: Sequence[Check]) -> str:
    """Say what the checks come to, in one line."""
    failed_ones = [check.name for check in checks if check.outcome == "failed"]
    open_ones = [check.name for check in checks if check.outcome == "not judged"]
    if overall(checks) == "passed":
        return "every check is passed"
    if not checks:
        return "nothing could be checked"
    unjudged = f"not judged: {', '.join(open_ones)}" if open_ones else ""
    if failed_ones:
        said = f"failed: {', '.join(failed_ones)}"
        return f"{said}; {unjudged}" if unjudged else said
    return f"no check failed, but not every check could be judged; {unjudged}"


Answer = Literal["usable", "aligned", "invariant", "partly", "unusable"]
"""Usable; usable after alignment; usable for what has no labels (predictions, `lp`, invariants); usable but for what is
named; not usable."""

COLOURS: dict[Answer, Flag] = {
    "usable": "good",
    "aligned": "good",
    "invariant": "warn",
    "partly": "warn",
    "unusable": "bad",
}
"""The flag that an answer is shown with."""

HEADINGS: dict[Answer, str] = {
    "usable": "Usable",
    "aligned": "Usable after alignment",
    "invariant": "Usable for what has no labels",
    "partly": "Usable in part",
    "unusable": "Not usable",
}
"""An answer as a heading."""


@dataclass(frozen=True)
class Cause:
    """Why a posterior, or a part of what it says, cannot be used as it is.

    Attributes
    ----------
    name : str
        ``not-finite``, ``stuck``, ``labels``, ``funnel``, ``modes``, ``weights``, ``short``, ...
    evidence : str
        What shows it, with the numbers.
    remedy : str
        What to do.
    """

    name: str
    evidence: str
    remedy: str


@dataclass(frozen=True)
class Row:
    """One of the three lines under the answer: labels, predictions and invariants, sampler.

    Attributes
    ----------
    name : str
        Which of them.
    outcome : str
        Passed, failed or not judged.
    sentence : str
        What was found.
    """

    name: str
    outcome: Outcome
    sentence: str


@dataclass(frozen=True)
class Verdict:
    """The answer and its reasons.

    Attributes
    ----------
    answer : str
        ``usable``, ``aligned``, ``invariant`` or ``unusable``.
    sentence : str
        The answer in one or two sentences.
    rows : tuple of Row
        Labels, predictions and invariants, sampler.
    causes : tuple of Cause
        Most likely first; empty for a posterior that is usable as it is.
    exchangeable : tuple of str
        What to declare with ``--exchangeable``, one text a block; empty where nothing is to be declared.
    unjudged : sequence of str
        Sentences: what could not be judged, and why.
    left_out : sequence of str
        Sentences: what the answer does not rest on (generated quantities, integers, constants, NaN by structure).
    """

    answer: Answer
    sentence: str
    rows: tuple[Row, ...]
    causes: tuple[Cause, ...] = ()
    exchangeable: tuple[str, ...] = ()
    unjudged: Sequence[str] = ()
    left_out: Sequence[str] = ()

    @property
    def flag(self) -> Flag:
        """``good``, ``warn`` or ``bad``."""
        return COLOURS[self.answer]

    @property
    def heading(self) -> str:
        """The answer in two to five words, such as ``Usable after alignment``."""
        return HEADINGS[self.answer]

    def to_dict(self) -> dict[str, Any]:
        """Return plain types for JSON: first the answer, the causes' names and the words to declare."""
        return {
            "verdict": self.answer,
            "causes": [cause.name for cause in self.causes],
            "exchangeable": list(self.exchangeable),
            "sentence": self.sentence,
            "rows": [asdict(row) for row in self.rows],
            "evidence": [asdict(cause) for cause in self.causes],
            "unjudged": list(self.unjudged),
            "left_out": list(self.left_out),
        }
