"""From a `Report` to HTML, and to a file.

Convention: the page is one file that asks for nothing outside itself: no script, font, style sheet
or picture elsewhere, and its policy allows no script but its own. Everything is escaped; a name in
`backticks` becomes code. A file is written beside its place and then moved there, so that a killed
run leaves no half page.
"""

import base64
import hashlib
import os
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from importlib import metadata, resources
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from onebasin.base.errors import OnebasinError

from ..diagnostics.verdict import Outcome
from .cells import Flag
from .layout import Layout
from .page import Provenance, Report
from .text import inline, mark, paragraphs

_TEMPLATES = resources.files("onebasin.analysis") / "templates"
SCRIPT = (_TEMPLATES / "report.js").read_text("utf-8")
"""The page's only script; its hash stands in the page's policy, so that no other runs."""

FONT = base64.b64encode((_TEMPLATES / "inter.woff2").read_bytes()).decode()
"""The page's typeface, in the page, so that it looks alike everywhere."""


OUTCOMES: dict[Outcome, Flag] = {"passed": "good", "failed": "bad", "not judged": "warn"}
"""The flag of what a check found."""


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
    environment.filters["mark"] = mark
    environment.filters["capitalised"] = lambda text: inline(text[:1].upper() + text[1:])
    layout = Layout()
    body = layout.sections(report.sections)
    return environment.get_template("report.html.j2").render(
        report=report,
        sections=body,
        answers=[layout.answer(card) for card in report.answers],
        common=_common_facts(report.provenance),
        version=_version(),
        outcomes=OUTCOMES,
        script=Markup(SCRIPT),
        font=FONT,
        script_hash=_sha256(SCRIPT),
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
    """Hold the file that a page is to be written to; see `base.files.outputs.claim`."""
    from onebasin.base.checks import check_path  # here: the room brings JAX along
    from onebasin.base.files.outputs import claim

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
    return put_text(render(report), output, force=force)


def put_text(page: str, output: Path, *, force: bool) -> Path:
    """Write a page that is rendered to a file that is held."""
    from onebasin.base.files.atomic import replacing

    with replacing(output, new=not force) as part:
        part.write_text(page, encoding="utf-8")
    return output


def _sha256(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _version() -> str:
    try:
        return metadata.version("onebasin")
    except metadata.PackageNotFoundError:
        return ""


def _common_facts(runs: Sequence[Provenance]) -> tuple[tuple[str, str], ...]:
    """Return the facts that all runs share; none where there is a single run."""
    if len(runs) < 2:
        return ()
    return tuple(fact for fact in runs[0].facts if all(fact in run.facts for run in runs[1:]))
