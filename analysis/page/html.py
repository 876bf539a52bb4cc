"""Plain text and tables as markup: escaped, `backticks` as code, a flag as its mark.

Rows of tables are written here and not in a template, as there may be ten thousand.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from markupsafe import Markup, escape

from onebasin.base.numbers import EMPTY
from onebasin.base.table import MARKS, Column, Row, RowGroup, Table, TableCell, Value
from onebasin.base.text import shown

MEANINGS: Mapping[str, str] = {"good": "good", "warn": "look at this", "bad": "bad"}
"""Text of a flag's mark for readers who do not see it."""

_HYPHENATED = re.compile(r"\b(?:R-hat|k-hat|E-BFMI)\b")
"""Names that a line should not break in."""

_UNBROKEN = 28
"""Characters of code that fit in a line of a phone, and stay in one."""
_NO_MARK = '<span class="mark"></span>'


def inline(text: str) -> Markup:
    """Escape text, with all that acts rather than shows, and set what stands in backticks as code."""
    escaped = str(escape(shown(text, lines=True)))
    # Hyphens inside would let a line break in what is to be typed as it stands.
    coded = re.sub(
        r"`([^`]+)`",
        lambda hit: f"<code{' class="nowrap"' if len(hit[1]) <= _UNBROKEN else ''}>{hit[1]}</code>",
        escaped,
    )
    return Markup(_HYPHENATED.sub(r'<span class="nowrap">\g<0></span>', coded))


def paragraphs(text: str) -> Markup:
    """Escape text and set its paragraphs, which empty lines separate."""
    parts = (part.strip() for part in re.split(r"\n\s*\n", text))
    return Markup("").join(Markup("<p>{}</p>").format(inline(part)) for part in parts if part)


def mark(flag: str) -> Markup:
    """Give the mark of a flag, with its meaning in words; nothing without a flag."""
    if not flag:
        return Markup("")
    element = '<span class="mark {}" role="img" aria-label="{}">{}</span>'
    return Markup(element).format(flag, MEANINGS[flag], MARKS[flag])


@dataclass(frozen=True)
class RowWriter:
    """Writes rows of one table.

    Attributes
    ----------
    columns
        Its headings.
    numeric
        Which columns hold numbers.
    flagged
        Which columns have a flag somewhere: there a cell without one keeps a mark's place.
    """

    columns: tuple[Column, ...]
    numeric: tuple[bool, ...]
    flagged: tuple[bool, ...]

    def write(self, row: Row) -> str:
        """Write one row."""
        first, *others = (self._cell(cell, place) for place, cell in enumerate(row))
        return f'<tr><th scope="row">{first[1]}</th>{"".join(map(_entry, others))}</tr>'

    def write_heading(self, group: RowGroup) -> str:
        """Write the row of a group; what does not apply to all of its rows stays blank, and is no dash."""
        scope = "rowgroup" if group.rows else "row"
        first, *others = (self._cell(cell, place) for place, cell in enumerate(group.heading))
        blank = (("", "") if text == EMPTY else (kind, text) for kind, text in others)
        entries = others if scope == "row" else blank
        return f'<tr><th scope="{scope}">{first[1]}</th>{"".join(map(_entry, entries))}</tr>'

    def _cell(self, cell: TableCell | Value, place: int) -> tuple[str, str]:
        value, flag, note = (
            (cell.value, cell.flag, cell.note) if isinstance(cell, TableCell) else (cell, "", "")
        )
        text = self.columns[place].write(value)
        if not self.numeric[place]:
            text = str(inline(text))
        if flag:
            text += str(mark(flag))
        elif self.flagged[place]:
            text += _NO_MARK
        if note:
            text += f"<small>{inline(note)}</small>"
        return f"{'number ' if self.numeric[place] else ''}{flag}".strip(), text


def flagged(table: Table) -> tuple[bool, ...]:
    """Tell which columns have a flag somewhere."""
    found = {
        place
        for row in table.all_rows
        for place, cell in enumerate(row)
        if isinstance(cell, TableCell) and cell.flag
    }
    return tuple(place in found for place in range(len(table.columns)))


def body(table: Table) -> Markup:
    """Write the bodies of a table: one of its rows, and two of each group, whose second folds."""
    writer = RowWriter(table.headings, table.numeric, flagged(table))
    bodies = []
    if table.rows or not table.groups:
        bodies.append(_body("", map(writer.write, table.rows)))
    for group in table.groups:
        folded = "entries" if group.open else "entries folded"
        bodies.append(_body("group", [writer.write_heading(group)]))
        bodies.append(_body(folded, map(writer.write, group.rows)))
    return Markup("\n".join(bodies))


def _body(kind: str, rows: Iterable[str]) -> str:
    opened = f'<tbody class="{kind}">' if kind else "<tbody>"
    return "\n".join((opened, *rows, "</tbody>"))


def _entry(cell: tuple[str, str]) -> str:
    kind, text = cell
    return f'<td class="{kind}">{text}</td>' if kind else f"<td>{text}</td>"
