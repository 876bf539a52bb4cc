"""Cards as HTML: small, in the colours of light and dark pages, every text escaped, nothing asked for from outside.

A page's theme need not be the system's: JupyterLab, VS Code and documentation sites say theirs in an attribute or a
class of a parent, which decides; where none does, the system's preference decides.
"""

from __future__ import annotations

import re
from html import escape

from .card import Card, FactList, Part, Words
from .table import MARKS, Flag
from .text import shown

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
"""Styles of all cards; the class is doubled to win over notebooks' rules for tables."""


LEFT = ' style="text-align:left"'
"""In the cell itself: of a notebook that is not trusted, as after a clone, JupyterLab keeps inline styles alone."""


def page(card: Card) -> str:
    """Give a card as a piece of HTML that stands for itself."""
    parts = "".join(map(_part, card.parts))
    head = f"<h4{_class(card.flag)}>{text(card.heading)}</h4>"
    return framed(f"{head}{parts}")


def framed(inside: str) -> str:
    """Put HTML into a frame with the style of all cards."""
    return f'<div class="onebasin"><style>{STYLE}</style>{inside}</div>'


def text(words: str) -> str:
    """Give a text as HTML, what stands in backticks as code."""
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
