"""A posterior's verdict, for results that are computed from its draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from onebasin.base.card import Words
from onebasin.base.errors import ArgumentTypeError, OnebasinError
from onebasin.base.table import Flag
from onebasin.posteriors.view import View

from .diagnose import diagnose
from .result import Diagnosis

KNOWN: WeakKeyDictionary[View, Diagnosis] = WeakKeyDictionary()
"""Diagnoses of posteriors that were made already."""


@dataclass(frozen=True)
class Carried:
    """A posterior's verdict, and a sentence to put in front of what is computed from it; empty where all is well."""

    answer: str = ""  # As `Verdict.answer`; empty where the posterior could not be judged.
    sentence: str = ""
    flag: Flag = ""
    diagnosis: Diagnosis | None = None

    @property
    def words(self) -> list[Words]:
        """The sentence for a card, if there is one."""
        return [Words(self.sentence, flag=self.flag)] if self.sentence else []


def carried(view: View, diagnosis: Any, results: str, *, label_free: bool) -> Carried:
    """Say what a verdict means for `results`, such as "predictions", that may depend on labels or never do."""
    if diagnosis is not None and not isinstance(diagnosis, Diagnosis):
        raise ArgumentTypeError(
            f"`diagnosis` is a {type(diagnosis).__name__}; give what `ob.diagnose` returned of this posterior."
        )
    try:
        if (found := diagnosis or KNOWN.get(view)) is None:
            # No prediction of a network depends on its labels.
            found = KNOWN[view] = diagnose(view, align=view.network is None)
    except OnebasinError as error:
        return Carried("", f"The posterior could not be judged: {error}", "warn")
    answer = found.verdict or ""
    if view.network is not None and found.points is not None and answer != "partly":
        answer = "usable" if not len(found.points.bad) else answer
    if answer in ("", "usable") or (label_free and answer in ("aligned", "invariant")):
        return Carried(answer, diagnosis=found)
    assert found.judgement is not None
    flag: Flag = {"aligned": "good", "unusable": "bad"}.get(answer, "warn")  # type: ignore[assignment]
    said = {
        "aligned": f"These {results} use aligned draws: the posterior is usable after alignment.",
        "invariant": f"Use only {results} that do not depend on labels: the posterior is usable for label-free "
        "quantities, and others average over labels.",
        "partly": f"The posterior of these {results} is usable in part. {found.judgement.sentence}",
        "unusable": f"Do not use these {results}: the posterior is not usable. "
        + "".join(f"{cause.evidence} {cause.remedy}" for cause in found.judgement.causes[:1]),
    }
    return Carried(answer, said[answer].strip(), flag, found)
