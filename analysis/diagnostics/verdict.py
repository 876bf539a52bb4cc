"""The answer to "may I use this posterior?", with its reasons: what `diagnose` says before any number.

Convention: sentences are for a person, whole and plain; `backticks` set a name in code type. What could not be
judged is listed, and never counts as good.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from onebasin.base.table import Flag

from .checks import Outcome

Answer = Literal["usable", "aligned", "invariant", "unusable"]
"""Usable; usable after alignment; usable for what has no labels (predictions, `lp`, invariants); not usable."""

COLOURS: dict[Answer, Flag] = {
    "usable": "good",
    "aligned": "good",
    "invariant": "warn",
    "unusable": "bad",
}
"""The flag that an answer is shown with."""

HEADINGS: dict[Answer, str] = {
    "usable": "Usable",
    "aligned": "Usable after alignment",
    "invariant": "Usable for what has no labels",
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
