"""From a `Report` to HTML, and to a file.

Convention: the page is one file that asks for nothing outside itself: no script, font, style sheet
or picture elsewhere. Everything is escaped; a name in `backticks` becomes code. A file is written
beside its place and then moved there, so that a killed run leaves no half page.
"""

import os
import re
from importlib import metadata
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from onebasin.models.errors import OnebasinError

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
        If the file exists and `force` is not set, or the folder is missing or not writable.
    """
    from onebasin.models.storage.atomic import replacing  # here: the room brings JAX along

    target = check_output(path, force=force)
    try:
        with replacing(target) as part:
            part.write_text(render(report), encoding="utf-8")
    except OSError as error:
        raise OutputError(
            f"`path` {str(target)!r} cannot be written ({error.strerror}): choose a folder that "
            "you may write to."
        ) from error
    return target


def check_output(path: str | os.PathLike[str], *, force: bool = False) -> Path:
    """Check, before any work is done, that a report can be written to `path`.

    Raises
    ------
    OutputError
        If the file exists and `force` is not set, or its folder is missing or not writable.
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise OutputError(
            f"`path` {str(target)!r} lies in a folder that does not exist: make "
            f"{str(target.parent)!r} first."
        )
    if target.is_dir():
        raise OutputError(f"`path` {str(target)!r} is a folder, and a file is needed: add a name.")
    if target.exists() and not force:
        raise OutputError(
            f"`path` {str(target)!r} exists already: choose another name, or replace it with "
            "--force (`force=True`)."
        )
    if not os.access(target.parent, os.W_OK):
        raise OutputError(
            f"`path` {str(target)!r} lies in a folder that is not writable: choose another one."
        )
    return target


def inline(text: str) -> Markup:
    """Escape text and set what stands in backticks as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


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
