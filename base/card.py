"""Cards: the summary of an object, shown as HTML in a notebook and as text in a terminal.

A card begins with sentences that say what the object means; numbers follow. Text in `backticks` is shown as code. Texts
may come from files, so both renderings escape them.

The HTML is small, loads nothing from elsewhere, and adapts to light and dark pages. JupyterLab, VS Code and
documentation sites state their theme in an attribute or a class of a parent; otherwise, the system's preference
decides.
"""

from __future__ import annotations

import dataclasses
import math
import re
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, SupportsFloat

import numpy as np

from .table import MARKS, Flag, Table
from .text import pasteable, shown

MOST = 12
"""Maximum number of names in a line."""
WIDTH = 88
"""Width of the text in characters."""
NARROW = 80
"""Width of a table above which its columns move closer together."""


@dataclass(frozen=True)
class Words:
    """A paragraph."""

    text: str
    name: str = ""  # Shown in bold before the text.
    flag: Flag = ""
    small: bool = False  # A remark in small print.


@dataclass(frozen=True)
class Fact:
    """A line of a list: a name and a text, with the mark of its flag."""

    name: str
    text: str
    flag: Flag = ""


@dataclass(frozen=True)
class FactList:
    """A list of named facts."""

    rows: tuple[Fact, ...]

    @classmethod
    def of(cls, *rows: tuple[str, str]) -> FactList:
        """Make facts without flags, and skip those without text."""
        return cls(tuple(Fact(name, text) for name, text in rows if text))


Part = Words | FactList | Table


@dataclass(frozen=True)
class Card:
    """The summary of an object: a heading, sentences, then numbers."""

    heading: str
    parts: tuple[Part, ...]
    flag: Flag = ""

    def text(self) -> str:
        """Return wrapped plain text for a terminal, without a trailing line feed."""
        head = f"{MARKS[self.flag]} {self.heading}".lstrip()
        return "\n".join([shown(head), *(line for part in self.parts for line in _lines(part))])


def number(value: SupportsFloat, digits: int = 3) -> str:
    """Write a number with `digits` significant digits, and NaN as a dash."""
    known = float(value)
    if math.isnan(known):
        return "–"
    whole = known.is_integer() or abs(known) >= 1e4
    return f"{known:,.0f}" if whole and abs(known) < 1e15 else f"{known:.{digits}g}"


def measured(value: float, error: float, unit: str = "nats") -> str:
    """Write a number with its standard error, both rounded at the error's second digit: ``-35.215 ± 0.061 nats``."""
    if not (math.isfinite(value) and math.isfinite(error)):
        return f"{number(value, 5)} {unit}".rstrip()
    places = 2 if error == 0 else max(0, 1 - math.floor(math.log10(error)))
    return f"{value:,.{min(places, 6)}f} ± {error:,.{min(places, 6)}f} {unit}".rstrip()


def in_sizes(arrays: Mapping[str, Any]) -> str:
    """List the shapes of arrays and the values of numbers: ```x` (30, 1), `N` = 30``."""
    said = []
    for name, value in list(arrays.items())[:MOST]:
        shape = np.shape(value) if isinstance(value, np.ndarray | list | tuple) else ()
        size = f" ({', '.join(map(str, shape))})" if shape else ""
        known = f" = {value}" if isinstance(value, int | float) else ""
        said.append(f"`{name}`{size}{known}")
    more = f" and {len(arrays) - MOST} more" if len(arrays) > MOST else ""
    return ", ".join(said) + more


def in_brief(names: Sequence[str], most: int = MOST) -> str:
    """List names, at most the first few: ```a`, `b` and 3 more``."""
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
        yield from table_lines(part)


def table_lines(table: Table) -> Iterator[str]:
    """Write a table as text, with names on the left and numbers on the right."""
    yield f"{shown(table.caption)}:"
    rows = [[column.name for column in table.headings], *table.texts]
    texts = [[pasteable(text.replace("`", "")) for text in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    gap = "  " if sum(widths) + 2 * len(widths) <= NARROW else " "
    for name, *cells in texts:
        line = [f"{name:<{widths[0]}}"]
        line += [f"{cell:>{width}}" for cell, width in zip(cells, widths[1:], strict=True)]
        yield f"{gap}{gap.join(line)}".rstrip()


def _wrapped(text: str, first: str = "", rest: str = "") -> list[str]:
    return textwrap.wrap(
        pasteable(text),
        WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


STYLE = """
.onebasin{color-scheme:light dark;max-width:52rem;line-height:1.45}
[data-jp-theme-light=true] .onebasin,[data-theme=light] .onebasin,.vscode-light .onebasin{color-scheme:light}
[data-jp-theme-light=false] .onebasin,[data-theme=dark] .onebasin,[theme=dark] .onebasin,
.vscode-dark .onebasin{color-scheme:dark}
.onebasin .good{color:light-dark(#1a7f4b,#5bd08f)}.onebasin .warn{color:light-dark(#9a6700,#e3b341)}
.onebasin .bad{color:light-dark(#b42318,#ff8a7a)}
.onebasin h4{margin:.2em 0;font-size:1.15em;font-weight:600}.onebasin p{margin:.3em 0}
.onebasin div{overflow-x:auto}.onebasin small{opacity:.75}
.onebasin code{display:inline-block;max-width:100%;overflow-wrap:anywhere}
.onebasin.onebasin table{border-collapse:collapse;margin:.5em 0;font-size:.92em;table-layout:auto;border:0}
.onebasin.onebasin tr:nth-child(n),.onebasin.onebasin tr:nth-child(n):hover{background:none}
.onebasin.onebasin td,.onebasin.onebasin th{padding:.12em .8em .12em 0;text-align:left;vertical-align:top;border:0;
background:none;white-space:normal;max-width:none}
.onebasin.onebasin .n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.onebasin.onebasin .name{white-space:nowrap}.onebasin td code{white-space:pre;background:none;padding:0}
.onebasin caption{text-align:left;font-weight:600;caption-side:top;color:inherit;padding:0}
"""
"""Styles of all cards; the doubled class overrides notebooks' rules for tables."""
LEFT = ' style="text-align:left"'
"""An inline style, because JupyterLab drops style sheets in notebooks that are not trusted, such as cloned ones."""


def page(card: Card) -> str:
    """Return a card as self-contained HTML."""
    parts = "".join(map(_part, card.parts))
    head = f"<h4{_class(card.flag)}>{text(card.heading)}</h4>"
    return f'<div class="onebasin"><style>{STYLE}</style>{head}{parts}</div>'


def text(words: str) -> str:
    """Return text as HTML, with text in backticks as code."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(shown(words)))


def _part(part: Part) -> str:
    if isinstance(part, Words):
        name = f"<b>{text(part.name)}</b> " if part.name else ""
        inside = f"{name}{text(part.text)}"
        return f"<p{_class(part.flag)}>{f'<small>{inside}</small>' if part.small else inside}</p>"
    rows = ""
    if isinstance(part, FactList):
        marked = any(row.flag for row in part.rows)
        for row in part.rows:
            mark = f"<td{_class(row.flag)}{LEFT}>{MARKS[row.flag]}</td>" if marked else ""
            rows += f"<tr>{mark}<th{LEFT}>{text(row.name)}</th><td{LEFT}>{text(row.text)}</td></tr>"
        return f"<table>{rows}</table>"
    first, *others = (text(column.name) for column in part.headings)
    head = f"<th>{first}</th>" + "".join(f'<th class="n">{name}</th>' for name in others)
    for texts, cells in zip(part.texts, part.cells, strict=True):
        name, *values = map(text, texts)
        flags = (f" {cell.flag}".rstrip() for cell in cells[1:])
        numbers = "".join(f'<td class="n{f}">{v}</td>' for f, v in zip(flags, values, strict=True))
        rows += f'<tr><td class="name"{LEFT}>{name}</td>{numbers}</tr>'
    return f"<div><table><caption>{text(part.caption)}</caption><tr>{head}</tr>{rows}</table></div>"


def _class(flag: Flag) -> str:
    return f' class="{flag}"' if flag else ""


class Shown(ABC):
    """Base class of objects that have a card; a dataclass that inherits from it needs `repr=False`."""

    @abstractmethod
    def _card(self) -> Card: ...

    def __repr__(self) -> str:
        return self._card().text()

    def _repr_html_(self) -> str:
        return page(self._card())


class Brief:
    """Base class of dataclasses whose `repr` is the call that makes them, without defaults; they need `repr=False`."""

    def __repr__(self) -> str:
        given = []
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value, make = getattr(self, field.name), field.default_factory
            default = field.default if make is dataclasses.MISSING else make()
            if default is dataclasses.MISSING:
                given.append(f"{value!r}")
            elif value != default:
                given.append(f"{field.name}={value!r}")
        return f"{type(self).__name__}({', '.join(given)})"
