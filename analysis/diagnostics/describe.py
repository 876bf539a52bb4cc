"""Reasons in words: one table of sentences, filled with the names and numbers of a reason.

Convention: a template is what was found, or that and what to do, or what was found, what it means and what to do. None
of these texts ends with a full stop.
A piece in ``[[...]]`` is left out where a number that it asks for is missing. Besides Python's format specifications
there are ``names`` (in code type, the first four), ``chains``, ``counts``, ``count NOUN``, ``percent``, ``rhat`` and
``digits``: as many decimals as tell the number from its limit (`limits` of the reason). `Backticks` set a name in code
type.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from string import Formatter
from typing import Any

from onebasin.base.table import decimals_beside

from .words_of_answers import ANSWERS
from .words_of_checks import CHECKS

NAMED = 4
"""Names that a sentence lists at most."""


def sentences_of(kind: str, numbers: Mapping[str, Any]) -> tuple[str, str, str]:
    """Fill the template of a kind: what was found, its meaning, and what to do, the last in whole sentences."""
    if not kind:
        return "", "", ""
    template = SENTENCES[kind]
    texts = (template,) if isinstance(template, str) else template
    writer = _Writer(numbers.get("limits", ()))
    filled = []
    for text in texts:
        pieces = re.split(r"\[\[|\]\]", text)
        wanted = (
            piece
            for place, piece in enumerate(pieces)
            if place % 2 == 0 or all(f in numbers for _, f, _, _ in writer.parse(piece) if f)
        )
        filled.append("".join(writer.vformat(piece, (), numbers) for piece in wanted))
    fact, *more = filled
    meaning, remedy = more if len(more) == 2 else ("", *(more or ("",)))
    if not fact.startswith("k-hat"):
        fact = fact[:1].upper() + fact[1:]
    return fact, meaning, ended(remedy)


def ended(text: str) -> str:
    """End a text with a full stop, unless it has one or is empty."""
    return text if not text or text.endswith(".") else f"{text}."


class _Writer(Formatter):
    """Python's formatter, with the specifications of this table."""

    def __init__(self, limits: Sequence[float]) -> None:
        self.limits = limits

    def format_field(self, value: Any, specification: str) -> str:
        """Write one field."""
        word, _, rest = specification.partition(" ")
        match word:
            case "names":
                return listed(value)
            case "plain":
                return listed(value, code=False)
            case "chains":
                return f"chain{'s' if len(value) > 1 else ''} {', '.join(map(str, value))}"
            case "counts":
                return ", ".join(map(str, value))
            case "count":
                plural = rest[:-1] + "ies" if rest.endswith("y") else f"{rest}s"
                return f"{value:,} {rest if value == 1 else plural}"
            case "percent":
                return f"{value:.2g} %" if value < 99.5 else "100 %"  # not 1e+02 %
            case "rhat":
                return rhat(value, self.limits)
            case "digits":
                return f"{value:,.{decimals_beside(value, self.limits, int(rest))}f}"
        return super().format_field(value, specification)


def rhat(value: float, limits: Sequence[float] = ()) -> str:
    """An R-hat in words of two or three decimals, or of as many as tell it from its limits."""
    if math.isnan(value):
        return "not defined"
    if value > 100:
        return "over 100"
    return f"{value:.{decimals_beside(value, limits, 3 if value < 1.095 else 2)}f}"


def listed(names: Sequence[str], shown: int = NAMED, code: bool = True) -> str:
    """Names, the first of them where there are many."""
    marked = [f"`{name}`" if code else name for name in names[:shown]]
    if len(names) > shown:
        return f"{', '.join(marked)} and {len(names) - shown} more"
    return f"{', '.join(marked[:-1])} and {marked[-1]}" if len(marked) > 1 else "".join(marked)


SENTENCES: Mapping[str, str | tuple[str, ...]] = {**CHECKS, **ANSWERS}
"""Templates by kind: what was found, what it means, what to do."""
