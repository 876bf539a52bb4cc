"""Pages as data, their HTML documents, and their files.

A `Report` has answer cards followed by sections. A `Section` has text, notes, tables and figures, followed by `parts`
in the given order. A part is a text, a `Note`, a `Table`, a `FigureItem`, `Stats` (key figures), `Code` (a program) or
`Details` (parts that can be folded).

All text is plain, in paragraphs separated by an empty line. Everything is escaped, and names in `backticks` are shown
in code type. The page loads nothing from outside, and its policy allows only its own script. Figures are inline SVG
without header, metadata and namespaces. Their ids get a prefix, because all figures share one document. The ink, muted,
grid and accent colours of `analysis.plots.style` become colours of the page, which adapt to light and dark mode. So do
white and the greys used by other libraries. Parts that would make a figure too large become images inside it.
"""

from __future__ import annotations

import base64
import hashlib
import io
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib import metadata, resources
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from matplotlib.artist import Artist
from matplotlib.figure import Figure

from onebasin.base.errors import ArgumentTypeError, OnebasinError
from onebasin.base.table import EMPTY, MARKS, Column, Flag, Row, Table, TableCell, Value
from onebasin.base.text import shown

from .diagnostics.verdict import Verdict
from .plots.style import ACCENT, GRID, INK, MUTED

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class FigureItem:
    """A figure with its caption and alternative text."""

    figure: Figure
    caption: str
    alt: str


@dataclass(frozen=True)
class Note:
    """A boxed remark with an optional flag and heading."""

    text: str
    flag: Flag = ""
    title: str = ""


@dataclass(frozen=True)
class Stat:
    """A key figure: a number (by default with three digits) or a text."""

    label: str  # One or two words.
    value: Value
    flag: Flag = ""  # The flag of the number.
    note: str = ""  # Small print under the number, such as its limit or its parameter.
    decimals: int | None = None  # The number of decimals, instead of three digits.


@dataclass(frozen=True)
class Stats:
    """Key figures in a row."""

    items: tuple[Stat, ...]


@dataclass(frozen=True)
class Code:
    """A text that keeps its line breaks and spaces, such as a program."""

    text: str


@dataclass(frozen=True, eq=False)
class Details:
    """Parts that can be folded under a line of text. They are unfolded in print."""

    summary: str  # The line that always shows.
    parts: tuple[Part, ...]
    note: str = ""  # Small print after the line, such as a count.
    open: bool = False  # Whether the parts start unfolded.


Part = str | Note | Table | FigureItem | Stats | Code | Details


@dataclass(frozen=True, eq=False)
class Section:
    """A section: text, notes, tables and figures, followed by `parts` in the given order."""

    title: str
    text: str = ""
    notes: tuple[Note, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[FigureItem, ...] = ()
    parts: tuple[Part, ...] = ()

    @property
    def all_parts(self) -> tuple[Part, ...]:
        """Return everything under the heading, in display order."""
        text = (self.text,) if self.text else ()
        return (*text, *self.notes, *self.tables, *self.figures, *self.parts)


@dataclass(frozen=True)
class AnswerCard:
    """The answer to "may I use this posterior?", shown at the top."""

    verdict: Verdict
    name: str = ""  # The posterior's name, if there are several.
    stats: tuple[Stat, ...] = ()  # Key figures of the card.


@dataclass(frozen=True)
class Provenance:
    """The origin of one posterior, as pairs of name and value."""

    name: str
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, eq=False)
class Report:
    """A page: an answer card for each posterior, sections, and the origin of every run."""

    title: str
    lede: str = ""  # A few sentences about the page.
    sections: tuple[Section, ...] = ()
    provenance: tuple[Provenance, ...] = ()
    definitions: tuple[
        tuple[str, str], ...
    ] = ()  # Definitions of terms, shown with the provenance.
    answers: tuple[AnswerCard, ...] = ()


MAX_SVG_BYTES = 250_000
_PAGE_COLOURS = {
    ACCENT: "var(--figure-accent)",
    INK: "var(--figure-ink)",
    MUTED: "var(--figure-muted)",
    GRID: "var(--figure-grid)",
    "#ffffff": "var(--figure-ground)",
}
_COLOUR = re.compile(r"#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})\b")
_SPREAD = 15  # Largest difference of red, green and blue in a grey.
_DROPPED = (
    re.compile(r"<metadata>.*?</metadata>", re.S),
    re.compile(r"<!--.*?-->", re.S),
    re.compile(r"<style.*?</style>", re.S),  # Styles would apply to the whole page.
)


def embed(figure: Figure, *, prefix: str, alt: str, max_svg_bytes: int = MAX_SVG_BYTES) -> Markup:
    """Return a figure as an `svg` or `img` element.

    `prefix` makes ids unique on the page, and `alt` is the alternative text. If the SVG exceeds `max_svg_bytes`, lines,
    points and areas become images inside it. If it exceeds twice that size, the whole figure becomes one image.
    """
    width = round(96 * float(figure.get_figwidth()))
    marks = [
        artist
        for axes in figure.axes
        for artist in (*axes.lines, *axes.collections, *axes.patches, *axes.images)
        if not artist.get_rasterized()
    ]
    view_box, body = _for_page(_svg_text(figure), prefix)
    if len(body) > max_svg_bytes and marks:
        with _rasterised(marks):
            view_box, body = _for_page(_svg_text(figure), prefix)
    if len(body) > 2 * max_svg_bytes:
        image = '<img class="raster" src="data:image/png;base64,{}" alt="{}" width="{}">'
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", facecolor="white", metadata={"Software": None})
        encoded = base64.b64encode(buffer.getvalue()).decode("ascii")
        return Markup(image).format(encoded, shown(alt), width)
    head = '<svg role="img" aria-label="{}" style="--natural:{}px" viewBox="{}">{}</svg>'
    # Matplotlib has already escaped the text.
    return Markup(head).format(shown(alt), width, view_box, Markup(body))


@contextmanager
def _rasterised(marks: list[Artist]) -> Iterator[None]:
    """Draw marks as images while the context is active."""
    for artist in marks:
        artist.set_rasterized(True)
    try:
        yield
    finally:
        for artist in marks:
            artist.set_rasterized(False)


def _svg_text(figure: Figure) -> str:
    buffer = io.StringIO()
    nothing = {"Date": None, "Creator": None, "Format": None, "Type": None}
    figure.savefig(buffer, format="svg", metadata=nothing)
    return buffer.getvalue()


def _for_page(svg: str, prefix: str) -> tuple[str, str]:
    """Return the view box and the body of an SVG document, adapted to the page."""
    whole = re.search(r'<svg[^>]*\sviewBox="([^"]+)"[^>]*>(.*)</svg>', svg, re.S)
    if whole is None:
        raise OnebasinError("Matplotlib wrote an SVG without a view box: update Matplotlib.")
    body = whole[2]
    for pattern in _DROPPED:
        body = pattern.sub("", body)
    for colour, variable in _PAGE_COLOURS.items():
        body = body.replace(colour, variable)
    body = _COLOUR.sub(_without_greys, body)
    # Paths make up most of the page, and a precision of a hundredth of a point is enough.
    body = re.sub(r'\sd="[^"]+"', lambda hit: re.sub(r"(\.\d\d)\d+", r"\1", hit[0]), body)
    body = body.replace("xlink:href=", "href=").strip()
    # Replace Matplotlib's random ids, so that the same report gives the same page. Drop ids without references.
    used = dict.fromkeys(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', body))
    names = {a or b: f"{prefix}-{place}" for place, (a, b) in enumerate(used)}
    body = re.sub(
        r'\sid="([^"]+)"', lambda hit: f' id="{names[hit[1]]}"' if hit[1] in names else "", body
    )
    body = re.sub(r'href="#([^"]+)"', lambda hit: f'href="#{names[hit[1]]}"', body)
    body = re.sub(r"url\(#([^)]+)\)", lambda hit: f"url(#{names[hit[1]]})", body)
    return whole[1], body


def _without_greys(found: re.Match[str]) -> str:
    """Replace a grey by the nearest grey of the page. Keep other colours."""
    parts = [int(part, 16) for part in found.groups()]
    if max(parts) - min(parts) > _SPREAD:
        return found[0]
    lightness = sum(parts) / (3 * 255)
    name = "grid" if lightness > 0.8 else "muted" if lightness > 0.3 else "ink"
    return f"var(--figure-{name})"


MEANINGS: Mapping[str, str] = {"good": "good", "warn": "look at this", "bad": "bad"}
"""Alternative text of the mark for each flag."""

_HYPHENATED = re.compile(r"\b(?:R-hat|k-hat|E-BFMI)\b")
"""Names in which lines must not break."""

_UNBROKEN = 28
"""Maximum length of code that is not broken, because it fits on one line of a phone."""
_NO_MARK = '<span class="mark"></span>'


def inline(text: str) -> Markup:
    """Escape text, including control characters, and set text in backticks as code."""
    escaped = str(escape(shown(text, lines=True)))
    # A line break at a hyphen would make readers type a wrong command.
    coded = re.sub(
        r"`([^`]+)`",
        lambda hit: f"<code{' class="nowrap"' if len(hit[1]) <= _UNBROKEN else ''}>{hit[1]}</code>",
        escaped,
    )
    return Markup(_HYPHENATED.sub(r'<span class="nowrap">\g<0></span>', coded))


def paragraphs(text: str) -> Markup:
    """Escape text and split it into paragraphs at empty lines."""
    parts = (part.strip() for part in re.split(r"\n\s*\n", text))
    return Markup("").join(Markup("<p>{}</p>").format(inline(part)) for part in parts if part)


def mark(flag: str) -> Markup:
    """Return the mark of a flag with its alternative text. Return "" without a flag."""
    if not flag:
        return Markup("")
    element = '<span class="mark {}" role="img" aria-label="{}">{}</span>'
    return Markup(element).format(flag, MEANINGS[flag], MARKS[flag])


def flagged(table: Table) -> tuple[bool, ...]:
    """Return which columns have flags. Cells without a flag leave space for it in these columns."""
    found = {
        place
        for row in table.all_rows
        for place, cell in enumerate(row)
        if isinstance(cell, TableCell) and cell.flag
    }
    return tuple(place in found for place in range(len(table.columns)))


def body(table: Table) -> Markup:
    """Render the bodies of a table: one for plain rows, and two for each group. The second can be folded."""
    columns = list(zip(table.headings, table.numeric, flagged(table), strict=True))

    def written(row: Row, scope: str = "row") -> str:
        first, *others = (_cell(cell, *column) for cell, column in zip(row, columns, strict=True))
        # In the heading of a group, leave cells without a number blank instead of showing a dash.
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
    """Return the CSS classes and the markup of a cell."""
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
"""The only script of the page. The page's policy contains its hash, so no other script can run."""

FONT = base64.b64encode((_TEMPLATES / "inter.woff2").read_bytes()).decode()
"""The page's typeface, embedded so that the page looks the same everywhere."""


class OutputError(OnebasinError, RuntimeError):
    """Error if the report cannot be written to a path."""


def render(report: Report) -> str:
    """Return the page as a complete HTML document."""
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
    """The layout of one page, which numbers tables and figures to make ids unique."""

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
        """Lay out an answer card, with the declarations that no remedy already contains."""
        verdict = card.verdict
        said = " ".join(cause.remedy for cause in verdict.causes)
        return {
            "card": card,
            "verdict": verdict,
            "stats": [_stat(stat) for stat in card.stats],
            "declare": [words for words in verdict.exchangeable if words not in said],
        }

    def part(self, part: Part) -> dict[str, Any]:
        """Lay out one part, including nested parts."""
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
            f"`parts` contains {part!r}, but may contain only texts, notes, tables, figures, key figures, code or "
            "details."
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


def claimed(
    path: str | os.PathLike[str],
    *,
    force: bool = False,
    argument: str = "path",
    inputs: Iterable[Path] = (),
) -> AbstractContextManager[Path]:
    """Claim the file to which a page will be written; see `base.files.writing.claim`."""
    from onebasin.base.checks import check_path  # Imported late, because it loads JAX.
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
    """Write a page or its HTML to a claimed file."""
    from onebasin.base.files.writing import replacing

    html = page if isinstance(page, str) else render(page)
    with replacing(output, new=not force) as part:
        part.write_text(html, encoding="utf-8")
    return output
