"""Plain text as markup: escaped, `backticks` as code, empty lines between paragraphs, a flag as its mark."""

import re

from markupsafe import Markup, escape

from onebasin.base.text import shown

MARKS = {"good": ("✓", "good"), "warn": ("!", "look at this"), "bad": ("✗", "bad")}
"""A flag's mark, and what it says to those who do not see it."""

_HYPHENATED = re.compile(r"\b(?:R-hat|k-hat|E-BFMI)\b")
"""Names that a line should not break in."""

_UNBROKEN = 28
"""Characters of code that fit in a line of a phone, and stay in one."""


def inline(text: str) -> Markup:
    """Escape text, with all that acts rather than shows, and set what stands in backticks as code."""
    escaped = str(escape(shown(text, lines=True)))
    coded = re.sub(r"`([^`]+)`", _coded, escaped)
    return Markup(_HYPHENATED.sub(r'<span class="nowrap">\g<0></span>', coded))


def _coded(found: re.Match[str]) -> str:
    # Hyphens inside would let a line break in what is to be typed as it stands.
    opened = '<code class="nowrap">' if len(found[1]) <= _UNBROKEN else "<code>"
    return f"{opened}{found[1]}</code>"


def paragraphs(text: str) -> Markup:
    """Escape text and set its paragraphs, which empty lines separate."""
    parts = (part.strip() for part in re.split(r"\n\s*\n", text))
    return Markup("").join(Markup("<p>{}</p>").format(inline(part)) for part in parts if part)


def mark(flag: str) -> Markup:
    """Give the mark of a flag, with its meaning in words; nothing without a flag."""
    if not flag:
        return Markup("")
    sign, words = MARKS[flag]
    element = '<span class="mark {}" role="img" aria-label="{}">{}</span>'
    return Markup(element).format(flag, words, sign)
