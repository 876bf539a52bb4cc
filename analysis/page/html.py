"""Plain text and tables as markup: escaped, `backticks` as code, a flag as its mark.

Rows of tables are written here and not in a template, as there may be ten thousand.
"""

import re
from collections.abc import Iterable, Mapping

from markupsafe import Markup, escape

from onebasin.base.numbers import EMPTY
from onebasin.base.table import MARKS, Column, Row, Table, TableCell, Value
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


def flagged(table: Table) -> tuple[bool, ...]:
    """Tell which columns have a flag somewhere: there a cell without one keeps a mark's place."""
    found = {
        place
        for row in table.all_rows
        for place, cell in enumerate(row)
        if isinstance(cell, TableCell) and cell.flag
    }
    return tuple(place in found for place in range(len(table.columns)))


def body(table: Table) -> Markup:
    """Write the bodies of a table: one of its rows, and two of each group, whose second folds."""
    columns = list(zip(table.headings, table.numeric, flagged(table), strict=True))

    def written(row: Row, scope: str = "row") -> str:
        first, *others = (_cell(cell, *column) for cell, column in zip(row, columns, strict=True))
        # In a group's heading what does not apply to all of its rows stays blank, and is no dash.
        if scope == "rowgroup":
            others = [("", "") if text == EMPTY else (kind, text) for kind, text in others]
        entries = (
            f'<td class="{k}">{text}</td>' if k else f"<td>{text}</td>" for k, text in others
        )
        return f'<tr><th scope="{scope}">{first[1]}</th>{"".join(entries)}</tr>'

    bodies: list[tuple[str, Iterable[str]]] = []
    if table.rows or not table.groups:
        bodies.append(("", map(written, table.rows)))
    for group in table.groups:
        bodies.append(
            (' class="group"', [written(group.heading, "rowgroup" if group.rows else "row")])
        )
        folded = "entries" if group.open else "entries folded"
        bodies.append((f' class="{folded}"', map(written, group.rows)))
    return Markup(
        "\n".join("\n".join((f"<tbody{kind}>", *rows, "</tbody>")) for kind, rows in bodies)
    )


def _cell(
    cell: TableCell | Value, column: Column, numeric: bool, is_flagged: bool
) -> tuple[str, str]:
    """Return the classes of a cell and its markup."""
    cell = cell if isinstance(cell, TableCell) else TableCell(cell)
    text = column.write(cell.value)
    if not numeric:
        text = str(inline(text))
    if cell.flag:
        text += str(mark(cell.flag))
    elif is_flagged:
        text += _NO_MARK
    if cell.note:
        text += f"<small>{inline(cell.note)}</small>"
    return f"{'number ' if numeric else ''}{cell.flag}".strip(), text
