"""What one check of a diagnosis comes to: passed, failed, or not judged.

A number that is NaN, missing or infinite is no evidence, so that there are three outcomes and not two: whoever says
that a posterior passes has judged every check that applies to it. A check that does not apply (trees of static HMC,
R-hat of a variational fit) is not among a diagnosis's checks at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

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


def named(checks: Sequence[Check], outcome: Outcome) -> tuple[str, ...]:
    """Names of the checks with an outcome."""
    return tuple(check.name for check in checks if check.outcome == outcome)


def in_words(checks: Sequence[Check]) -> str:
    """Say what the checks come to, in one line."""
    failures, open_ones = named(checks, "failed"), named(checks, "not judged")
    if overall(checks) == "passed":
        return "every check is passed"
    if not checks:
        return "nothing could be checked"
    unjudged = f"not judged: {', '.join(open_ones)}" if open_ones else ""
    if failures:
        said = f"failed: {', '.join(failures)}"
        return f"{said}; {unjudged}" if unjudged else said
    return f"no check failed, but not every check could be judged; {unjudged}"
