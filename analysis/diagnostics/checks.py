"""What one check of a diagnosis comes to: passed, failed, or not judged.

A number that is NaN, missing or infinite is no evidence, so that there are three outcomes and not two: whoever says
that a posterior passes has judged every check that applies to it. A check that does not apply (trees of static HMC,
R-hat of a variational fit) is not among a diagnosis's checks at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Outcome = Literal["passed", "failed", "not judged"]


@dataclass(frozen=True)
class Check:
    """One check of a posterior.

    Attributes
    ----------
    name
        What was looked at.
    outcome
        What came of it.
    sentences
        What is wrong, or why it could not be judged, and what to do; empty where it is passed, and where another
        check's sentences hold for this one too.
    """

    name: str
    outcome: Outcome
    sentences: tuple[str, ...] = ()


def passed(name: str) -> Check:
    """Give a check that was judged and is good."""
    return Check(name, "passed")


def failed(name: str, *sentences: str) -> Check:
    """Give a check that was judged and is bad; the sentences say why and what to do."""
    return Check(name, "failed", sentences)


def not_judged(name: str, *sentences: str) -> Check:
    """Give a check for which there is no evidence; the sentences say why and what to do."""
    return Check(name, "not judged", sentences)


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
