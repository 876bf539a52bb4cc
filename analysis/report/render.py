"""From a `Report` to HTML, and to a file.

Convention: the page is one file that asks for nothing outside itself: no script, font, style sheet
or picture elsewhere. Everything is escaped; a name in `backticks` becomes code. A file is written
beside its place and then moved there, so that a killed run leaves no half page.
"""

import os
import re
from collections.abc import Iterable
from contextlib import AbstractContextManager
from importlib import metadata
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from onebasin.models.errors import OnebasinError
from onebasin.models.text import shown

from .page import FigureItem, Report, Table
from .pictures import embed
from .provenance import common_facts

MARKS = {"good": ("✓", "good"), "warn": ("!", "look at this"), "bad": ("✗", "bad")}
"""A flag's mark, and what it says to those who do not see it."""


class OutputError(OnebasinError, RuntimeError):
    """The report cannot be written where it was asked for."""


def render(report: Report) -> str:
    """Return the page as HTML.

    Parameters
    ----------
    report
        The page.

    Returns
    -------
    str
        A whole HTML document.
    """
    environment = Environment(
        loader=PackageLoader("onebasin.analysis"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters["inline"] = inline
    environment.filters["paragraphs"] = paragraphs
    sections = [
        {
            "anchor": f"section-{place}",
            "part": section,
            "tables": [
                _lay_out(table, f"table-{place}-{number}")
                for number, table in enumerate(section.tables, start=1)
            ],
        }
        for place, section in enumerate(report.sections, start=1)
    ]
    return environment.get_template("report.html.j2").render(
        report=report,
        sections=sections,
        pictures=_pictures(report),
        common=common_facts(report.provenance),
        version=_version(),
        marks=MARKS,
    )


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
    """Hold the file that a page is to be written to; see `models.storage.outputs.claim`."""
    from onebasin.models.checks import check_path  # here: the room brings JAX along
    from onebasin.models.storage.outputs import claim

    return claim(
        check_path(argument, path),
        force=force,
        error=OutputError,
        argument=argument,
        inputs=inputs,
        make_folder=False,
    )


def put(report: Report, output: Path, *, force: bool) -> Path:
    """Write the page to a file that is held."""
    from onebasin.models.storage.atomic import replacing

    page = render(report)
    with replacing(output, new=not force) as part:
        part.write_text(page, encoding="utf-8")
    return output


def inline(text: str) -> Markup:
    """Escape text, with all that acts rather than shows, and set what stands in backticks as code."""
    escaped = str(escape(shown(text, lines=True)))
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", escaped))


def paragraphs(text: str) -> Markup:
    """Escape text and set its paragraphs, which empty lines separate."""
    parts = (part.strip() for part in re.split(r"\n\s*\n", text))
    return Markup("").join(Markup("<p>{}</p>").format(inline(part)) for part in parts if part)


def _lay_out(table: Table, anchor: str) -> dict:
    columns, cells = table.headings, table.cells
    rows = [
        [
            {"cell": cell, "text": column.write(cell.value)}
            for cell, column in zip(row, columns, strict=True)
        ]
        for row in cells
    ]
    return {
        "anchor": anchor,
        "caption": table.caption,
        "columns": columns,
        "numeric": table.numeric,
        "rows": rows,
        "flagged": [any(row[place].flag for row in cells) for place in range(len(columns))],
    }


def _pictures(report: Report) -> dict[FigureItem, Markup]:
    items: list[FigureItem] = [item for section in report.sections for item in section.figures]
    return {
        item: embed(item.figure, prefix=f"f{place}", alt=item.alt)
        for place, item in enumerate(items, start=1)
    }


def _version() -> str:
    try:
        return metadata.version("onebasin")
    except metadata.PackageNotFoundError:
        return ""
