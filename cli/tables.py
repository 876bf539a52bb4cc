"""Tables and sentences within a width: lines end between words, and no word, number or name is ever broken.

A table that is too wide, with every cell wrapped at its words, is drawn in parts below each other, each with the first
column. A word that has no room by itself, a path for one, stands whole and reaches beyond: it may be copied.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import rich.box
from rich.cells import cell_len
from rich.table import Table as RichTable
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import JustifyMethod

_WORD = re.compile(r"(?:[^ \n\[]*\[[^\]\n]{0,24}\][^ \n]*)|[^ \n]+")
"""A word between blanks; an index has blanks of its own, and a no-break space is none."""
NO_BREAK = "\u00a0"
"""A blank at which no line ends; written as a plain one."""
_SHORT = 12
"""Headings up to this are not broken."""
_FRAME = 3
"""Characters that a column takes besides its text; the frame of a table takes one more."""


def wrapped(text: Text, width: int, *, indent: int = 0) -> Text:
    """Break a text's lines of a width between words; `indent` blanks stand before every line but the first."""
    lines: list[tuple[int, int]] = []
    for start, end, fresh in _words(text.plain):
        room = width - (indent if len(lines) > 1 else 0)
        if lines and not fresh and end - (lines[-1][0] if len(lines) > 1 else 0) <= room:
            lines[-1] = (lines[-1][0], end)
        else:
            lines.append((start, end))
    if lines:
        lines[0] = (0, lines[0][1])  # blanks before the first word
    out = Text("\n" + " " * indent).join([text[start:end] for start, end in lines])
    out.plain = out.plain.replace(NO_BREAK, " ")  # has done its work
    return out


def drawn(
    headings: Sequence[Text],
    rows: Sequence[Sequence[Text]],
    numeric: Sequence[bool],
    *,
    title: Text | None,
    width: int,
) -> Iterator[tuple[RichTable, int]]:
    """Draw a table in as many parts as the terminal's width asks for, the title above the first.

    Yields each part, and the width that it takes at least; numbers are set flush right.
    """
    columns = [[heading, *(row[i] for row in rows)] for i, heading in enumerate(headings)]
    least = []
    for heading, *cells in columns:
        # The longest word; and a heading's first line, where it is short enough to be left whole.
        words = [cell.plain[i:j] for cell in (heading, *cells) for i, j, _ in _words(cell.plain)]
        first = cell_len(heading.plain.partition("\n")[0])
        least.append(max([1, *map(cell_len, words), first if first <= _SHORT else 0]))
    most = [
        max((line.cell_len for cell in cells for line in cell.split()), default=0)
        for cells in columns
    ]
    for part in _parts(least, width):
        widths = _share([least[i] for i in part], [most[i] for i in part], width)
        table = RichTable(box=rich.box.SIMPLE_HEAD, title=title, title_justify="left")
        title = None
        for i, column_width in zip(part, widths, strict=True):
            justify: JustifyMethod = "right" if numeric[i] else "left"
            heading = wrapped(headings[i], column_width)
            table.add_column(heading, justify=justify, width=column_width, overflow="fold")
        for row in rows:
            places = zip(part, widths, strict=True)
            table.add_row(*(wrapped(row[i], column_width) for i, column_width in places))
        yield table, 1 + sum(w + _FRAME for w in widths)


def _parts(least: Sequence[int], width: int) -> Iterator[list[int]]:
    """Columns that stand next to each other, always with the first."""
    part = [0]
    for i in range(1, len(least)):
        taken = 1 + sum(least[j] + _FRAME for j in (*part, i))
        if taken > width and len(part) > 1:
            yield part
            part = [0]
        part.append(i)
    yield part


def _share(least: Sequence[int], most: Sequence[int], width: int) -> list[int]:
    """Widths of columns: what each needs, and the rest evenly to those that would take more."""
    widths = list(least)
    room = width - 1 - sum(w + _FRAME for w in widths)
    wanting = [i for i in range(len(widths)) if widths[i] < most[i]]
    while room > 0 and wanting:
        for i in wanting[:room]:
            widths[i] += 1
            room -= 1
        wanting = [i for i in wanting if widths[i] < most[i]]
    return widths


def _words(text: str) -> Iterator[tuple[int, int, bool]]:
    """Yield where words begin and end, and whether a new line begins before them."""
    before = 0
    for word in _WORD.finditer(text):
        yield word.start(), word.end(), "\n" in text[before : word.start()]
        before = word.end()
