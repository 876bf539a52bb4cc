r"""Text from files, shown and not obeyed.

Names of variables, attributes, columns and files, and what programs print, may hold characters that a terminal acts
on: escape sequences that recolour, retitle or link, carriage returns that overwrite a line, marks that turn the
direction of writing. They are written as Python writes them in a string, ``\x1b`` for one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any, Literal

from .errors import ArgumentError

Flag = Literal["", "good", "warn", "bad"]
"""The mark of what is shown: good news, a warning, bad news, or none."""
MARKS: Mapping[str, str] = {"": "", "good": "✓", "warn": "!", "bad": "✗"}
"""The sign of each flag, besides its colour."""

_ACTING = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode's categories of characters that act rather than show: controls, formats, surrogates, separators of lines."""

_JOINERS = "\u200c\u200d"
"""Formats that words of some scripts need."""


def dotted(named: Any) -> Any:
    """Write names as files store them: a name, a tuple of them, or a mapping from them, of which no two may become one.

    A dot stands for every slash, and for a place inside a name: `net/layers[0].weight` becomes `net.layers.0.weight`.
    """
    if isinstance(named, str):
        return _PLACE.sub(r".\1", named).replace("/", ".")
    if isinstance(named, tuple | list):
        return type(named)(map(dotted, named))
    if not isinstance(named, Mapping):
        return named
    found: dict[Any, Any] = {}
    for name, value in named.items():
        if (own := dotted(name)) in found:
            raise ArgumentError(
                f"Two names would be stored as {own}, as a slash becomes a dot: rename one."
            )
        found[own] = value
    return found


_PLACE = re.compile(r"/?\['?(\w+)'?\](?=(?:\[[^\]]*\])*\.)")


def shown(text: str, *, lines: bool = False) -> str:
    """Give a text with every character that acts on a terminal escaped.

    Line feeds are escaped too, but with `lines`: a name's would make it look like several lines.
    """
    return escape_acting(
        text, lambda c: c.encode("unicode_escape").decode("ascii"), kept="\n" if lines else ""
    )


def pasteable(text: str) -> str:
    """Give a text as `shown` does, with numbers as programs read them: 12345, -1 and 1e+15."""
    text = _GROUPS.sub(lambda found: found[0] if "[" in found[0] else "", text)
    text = re.sub(r"−(?=[\d∞])", "-", text)
    text = _POWERS.sub(lambda found: f"e{int(found[1].translate(_PLAIN)):+03d}", text)
    return shown(text)


_GROUPS = re.compile(r"\[[^\]\n]*\]|(?<=\d),(?=\d{3}(?!\d))")
"""Signs between thousands, and indices, whose commas are none."""
_POWERS = re.compile(r"(?<=\d)·10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)")
_PLAIN = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def escape_acting(text: str, escape: Callable[[str], str], *, kept: str = "\n") -> str:
    """Replace every character that acts on a terminal, but for those `kept`, by what `escape` makes of it."""
    if (
        text.isascii()
        and text.replace("\n", "").isprintable()
        and ("\n" in kept or "\n" not in text)
    ):
        return text
    kept += _JOINERS
    return "".join(
        escape(c) if unicodedata.category(c) in _ACTING and c not in kept else c for c in text
    )
