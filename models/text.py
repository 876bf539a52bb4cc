r"""Text from files, shown and not obeyed.

Names of variables, attributes, columns and files, and what programs print, may hold characters that a terminal acts
on: escape sequences that recolour, retitle or link, carriage returns that overwrite a line, marks that turn the
direction of writing. They are written as Python writes them in a string, ``\x1b`` for one.
"""

from __future__ import annotations

import unicodedata

_ACTING = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode's categories of characters that act rather than show: controls, formats, surrogates, separators of lines."""

_JOINERS = "\u200c\u200d"
"""Formats that words of some scripts need."""


def shown(text: str, *, lines: bool = False) -> str:
    """Give a text with every character that acts on a terminal escaped.

    Parameters
    ----------
    text : str
        Any text.
    lines : bool
        Whether line feeds stay; a name's would make it look like several lines, a program's own words have lines.

    Returns
    -------
    str
        The text itself where nothing had to be escaped.
    """
    if text.isascii() and text.isprintable():
        return text
    kept = _JOINERS + "\n" if lines else _JOINERS
    return "".join(c if c in kept or not _acts(c) else _escaped(c) for c in text)


def _acts(character: str) -> bool:
    return unicodedata.category(character) in _ACTING


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
