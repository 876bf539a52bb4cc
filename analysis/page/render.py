"""From a `Report` to HTML, and to a file.

Convention: the page is one file that asks for nothing outside itself: no script, font, style sheet
or picture elsewhere, and its policy allows no script but its own. Everything is escaped; a name in
`backticks` becomes code. A file is written next to its place and then moved there, so that a killed
run leaves no half page.

Plain text and tables as markup: escaped, `backticks` as code, a flag as its mark.

Rows of tables are written here and not in a template, as there may be ten thousand.
"""

import base64
import hashlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from importlib import metadata, resources
from itertools import count
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from onebasin.base.errors import ArgumentTypeError, OnebasinError
from onebasin.base.table import EMPTY, MARKS, Column, Row, Table, TableCell, Value
from onebasin.base.text import shown

from .page import AnswerCard, Code, Details, FigureItem, Note, Part, Report, Section, Stat, Stats
from .pictures import embed

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


_TEMPLATES = resources.files("onebasin.analysis") / "templates"
SCRIPT = (_TEMPLATES / "report.js").read_text("utf-8")
"""The page's only script; its hash stands in the page's policy, so that no other runs."""

FONT = base64.b64encode((_TEMPLATES / "inter.woff2").read_bytes()).decode()
"""The page's typeface, in the page, so that it looks alike everywhere."""


class OutputError(OnebasinError, RuntimeError):
    """The report cannot be written where it was asked for."""


def render(report: Report) -> str:
    """Return the page as a whole HTML document."""
    environment = Environment(
        loader=PackageLoader("onebasin.analysis"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters["inline"] = inline
    environment.filters["paragraphs"] = paragraphs
    environment.filters["mark"] = mark
    environment.filters["capitalised"] = lambda text: inline(text[:1].upper() + text[1:])
    try:
        version = metadata.version("onebasin")
    except metadata.PackageNotFoundError:
        version = ""
    runs = report.provenance
    common = [f for f in runs[0].facts if all(f in run.facts for run in runs)] if runs[1:] else []
    layout = Layout()
    sections = layout.sections(report.sections)
    return environment.get_template("report.html.j2").render(
        report=report,
        sections=sections,
        answers=[layout.answer(card) for card in report.answers],
        common=common,
        version=version,
        script=Markup(SCRIPT),
        font=FONT,
        script_hash=base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode(),
    )


class Layout:
    """Lays out the parts of one page; numbers its tables and figures, so that ids are unlike one another."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def sections(self, sections: Sequence[Section]) -> list[dict[str, Any]]:
        """Lay out all sections."""
        return [
            {
                "anchor": f"section-{place}",
                "title": section.title,
                "parts": [self.part(part) for part in section.all_parts],
            }
            for place, section in enumerate(sections, start=1)
        ]

    def answer(self, card: AnswerCard) -> dict[str, Any]:
        """Lay out an answer card; what is to be declared is listed where no remedy says it."""
        verdict = card.verdict
        said = " ".join(cause.remedy for cause in verdict.causes)
        return {
            "card": card,
            "verdict": verdict,
            "stats": [_stat(stat) for stat in card.stats],
            "declare": [words for words in verdict.exchangeable if words not in said],
        }

    def part(self, part: Part) -> dict[str, Any]:
        """Lay out one part, with those inside it."""
        match part:
            case str():
                return {"kind": "text", "text": part}
            case Note():
                return {"kind": "note", "note": part}
            case Table():
                return {"kind": "table", **self._table(part)}
            case FigureItem():
                prefix = f"f{next(self._numbers)}"
                picture = embed(part.figure, prefix=prefix, alt=part.alt)
                return {"kind": "figure", "picture": picture, "caption": part.caption}
            case Stats():
                return {"kind": "stats", "stats": [_stat(item) for item in part.items]}
            case Code():
                return {"kind": "code", "text": shown(part.text.expandtabs(4), lines=True)}
            case Details():
                inside = [self.part(each) for each in part.parts]
                return {"kind": "details", "details": part, "parts": inside}
        raise ArgumentTypeError(
            f"`parts` has {part!r}: give texts, notes, tables, figures, key figures, code or details."
        )

    def _table(self, table: Table) -> dict[str, Any]:
        return {
            "anchor": f"table-{next(self._numbers)}",
            "caption": table.caption,
            "columns": table.headings,
            "classes": [
                " ".join(name for name, has in (("number", number), ("flagged", flag)) if has)
                for number, flag in zip(table.numeric, flagged(table), strict=True)
            ],
            "body": body(table),
            "sortable": table.sortable and len(table.all_rows) > 1,
        }


def _stat(stat: Stat) -> dict[str, Any]:
    return {"stat": stat, "value": Column(stat.label, decimals=stat.decimals).write(stat.value)}


def write(report: Report, path: str | os.PathLike[str], *, force: bool = False) -> Path:
    """Write the page to a file, which has to be new without `force`; returns its path.

    Raises
    ------
    OutputError
        If the file exists and `force` is not set, is no plain file, or its folder is missing or not writable.
    InUse
        If somebody else is writing it.
    WriteError
        If it cannot be written, such as on a full disk.
    """
    with claimed(path, force=force) as output:
        return put(report, output, force=force)


def claimed(
    path: str | os.PathLike[str],
    *,
    force: bool = False,
    argument: str = "path",
    inputs: Iterable[Path] = (),
) -> AbstractContextManager[Path]:
    """Hold the file that a page is to be written to; see `base.files.writing.claim`."""
    from onebasin.base.checks import check_path  # here: the room brings JAX along
    from onebasin.base.files.writing import claim

    return claim(
        check_path(argument, path),
        force=force,
        error=OutputError,
        argument=argument,
        inputs=inputs,
        make_folder=False,
    )


def put(page: Report | str, output: Path, *, force: bool) -> Path:
    """Write a page, rendered by now or not, to a file that is held."""
    from onebasin.base.files.writing import replacing

    html = page if isinstance(page, str) else render(page)
    with replacing(output, new=not force) as part:
        part.write_text(html, encoding="utf-8")
    return output
