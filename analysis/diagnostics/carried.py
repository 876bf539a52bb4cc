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
from .verdict import Verdict

_KNOWN: WeakKeyDictionary[View, Diagnosis] = WeakKeyDictionary()


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

    def to_dict(self) -> dict[str, Any]:
        """Return plain types for JSON."""
        return {"verdict": self.answer or None, "sentence": self.sentence}


def diagnosis_of(view: View) -> Diagnosis:
    """Diagnose a posterior once; of a network without its weights' labels, on which no prediction depends."""
    if view not in _KNOWN:
        _KNOWN[view] = diagnose(view, align=view.network is None)
    return _KNOWN[view]


def remember(view: View, diagnosis: Diagnosis) -> None:
    """Keep the diagnosis of a posterior that was diagnosed elsewhere."""
    _KNOWN[view] = diagnosis


def carried(view: View, diagnosis: Any, results: str, *, label_free: bool) -> Carried:
    """Say what a verdict means for `results`, such as "predictions", that may depend on labels or never do."""
    if diagnosis is not None and not isinstance(diagnosis, Diagnosis):
        raise ArgumentTypeError(
            f"`diagnosis` is a {type(diagnosis).__name__}; give what `ob.diagnose` returned of this posterior."
        )
    try:
        found = diagnosis or diagnosis_of(view)
    except OnebasinError as error:
        return Carried("", f"The posterior could not be judged: {error}", "warn")
    verdict = found.judgement
    if verdict is None or verdict.answer == "usable":
        return Carried("usable" if verdict else "", diagnosis=found)
    answer: str = verdict.answer
    if view.network is not None and found.points is not None and answer != "partly":
        answer = "usable" if not len(found.points.bad) else answer
    label_free |= view.network is not None
    if answer == "usable" or (label_free and answer in ("aligned", "invariant")):
        return Carried(answer, diagnosis=found)
    said = {
        "aligned": f"These {results} use aligned draws: the posterior is usable after alignment.",
        "invariant": f"Use only {results} that do not depend on labels: the posterior is usable for label-free "
        "quantities, and others average over labels.",
        "partly": f"The posterior of these {results} is usable in part. {verdict.sentence}",
        "unusable": f"Do not use these {results}: the posterior is not usable. {_why(verdict)}",
    }
    flag: Flag = "bad" if answer == "unusable" else "good" if answer == "aligned" else "warn"
    return Carried(answer, said[answer].strip(), flag, found)


def _why(verdict: Verdict) -> str:
    return f"{verdict.causes[0].evidence} {verdict.causes[0].remedy}" if verdict.causes else ""
