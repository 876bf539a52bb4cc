"""Cards: an object's summary for a person, which a notebook shows as HTML and a terminal as text.

Convention: a card leads with what it means, in whole sentences, and numbers follow. `Backticks` set a name in code
type. Texts may come from files: both renderings show them and obey nothing in them (`base.text`, `base.html`).
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, SupportsFloat

import numpy as np

from .table import MARKS, Flag, Table
from .text import pasteable, shown

MOST = 12
"""Names that a line lists."""
WIDTH = 88
"""Columns of the text."""


@dataclass(frozen=True)
class Words:
    """A paragraph: of what it is in bold before it, whether it is good news, or but a small remark."""

    text: str
    name: str = ""
    flag: Flag = ""
    small: bool = False


@dataclass(frozen=True)
class Fact:
    """A line of a list: a name and what is known of it; marked where it is judged."""

    name: str
    text: str
    flag: Flag = ""


@dataclass(frozen=True)
class FactList:
    """A list of named facts."""

    rows: tuple[Fact, ...]

    @classmethod
    def of(cls, *rows: tuple[str, str]) -> FactList:
        """Give facts without judgement, those without text left out."""
        return cls(tuple(Fact(name, text) for name, text in rows if text))


Part = Words | FactList | Table


@dataclass(frozen=True)
class Card:
    """The summary that is shown of an object: a heading, which may be flagged; sentences, then numbers."""

    heading: str
    parts: tuple[Part, ...]
    flag: Flag = ""

    def text(self) -> str:
        """Plain text for a terminal, wrapped, without a line feed at its end."""
        head = f"{MARKS[self.flag]} {self.heading}".lstrip()
        return "\n".join([shown(head), *(line for part in self.parts for line in _lines(part))])


def number(value: SupportsFloat, digits: int = 3) -> str:
    """Give a number in some digits; a dash where there is none."""
    known = float(value)
    if math.isnan(known):
        return "–"
    whole = known.is_integer() or abs(known) >= 1e4
    return f"{known:,.0f}" if whole and abs(known) < 1e15 else f"{known:.{digits}g}"


def measured(value: float, error: float, unit: str = "nats") -> str:
    """Give a number with its standard error, both to the error's second digit: ``-35.21 ± 0.06 nats``."""
    if not (math.isfinite(value) and math.isfinite(error)):
        return f"{number(value, 5)} {unit}".rstrip()
    places = 2 if error == 0 else max(0, 1 - math.floor(math.log10(error)))
    return f"{value:,.{min(places, 6)}f} ± {error:,.{min(places, 6)}f} {unit}".rstrip()


def in_sizes(arrays: Mapping[str, Any]) -> str:
    """Give arrays by their names and shapes, numbers by their values: ```x` (30, 1), `N` = 30``."""
    said = []
    for name, value in list(arrays.items())[:MOST]:
        shape = np.shape(value) if isinstance(value, np.ndarray | list | tuple) else ()
        size = f" ({', '.join(map(str, shape))})" if shape else ""
        known = f" = {value}" if isinstance(value, int | float) else ""
        said.append(f"`{name}`{size}{known}")
    more = f" and {len(arrays) - MOST} more" if len(arrays) > MOST else ""
    return ", ".join(said) + more


def in_brief(names: Sequence[str], most: int = MOST) -> str:
    """Give names, the first of them where they are many: ```a`, `b` and 3 more``."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(f"`{name}`" for name in names[:most]) + more


def _lines(part: Part) -> Iterator[str]:
    if isinstance(part, Words):
        lead = f"{part.name}: " if part.name else ""
        yield from _wrapped(f"{lead}{part.text}")
    elif isinstance(part, FactList):
        width = max((len(shown(row.name)) for row in part.rows), default=0)
        marked = any(row.flag for row in part.rows)
        for row in part.rows:
            lead = f"  {MARKS[row.flag]:<2}" if marked else "  "
            lead += f"{shown(row.name):<{width}}  "
            yield from _wrapped(row.text, lead, " " * len(lead))
    else:
        yield f"{shown(part.caption)}:"
        # Names to the left and numbers to the right.
        rows = [[column.name for column in part.headings], *part.texts]
        texts = [[pasteable(text.replace("`", "")) for text in row] for row in rows]
        widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
        for name, *cells in texts:
            line = [f"{name:<{widths[0]}}"]
            line += [f"{cell:>{width}}" for cell, width in zip(cells, widths[1:], strict=True)]
            yield f"  {'  '.join(line)}".rstrip()


def _wrapped(text: str, first: str = "", rest: str = "") -> list[str]:
    return textwrap.wrap(
        pasteable(text),
        WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
