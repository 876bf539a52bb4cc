"""Open the reports of the gallery as separate pages, instead of offering them for download."""

from __future__ import annotations

import shutil
from pathlib import Path

from docutils import nodes
from sphinx.addnodes import download_reference
from sphinx.application import Sphinx

REPORTS = Path(__file__).parents[1] / "gallery"
PAGE = "docs/gallery"


def open_reports(app: Sphinx, document: nodes.document) -> None:
    """Convert links to reports to plain links, before Sphinx treats them as files to download."""
    if app.env.docname != PAGE:
        return
    for link in list(document.findall(download_reference)):
        if link["reftarget"].endswith(".html"):
            plain = nodes.reference("", "", *link.children, refuri=link["reftarget"])
            link.replace_self(plain)


def copy_reports(app: Sphinx, error: Exception | None) -> None:
    """Copy the reports next to the page of the gallery."""
    if error is None and app.builder.format == "html":
        there = Path(app.outdir) / PAGE
        there.mkdir(parents=True, exist_ok=True)
        for report in REPORTS.glob("*.html"):
            shutil.copy(report, there)


def setup(app: Sphinx) -> dict[str, bool]:
    """Convert links before the collector of downloads runs (priority 500), and copy reports after all pages."""
    app.connect("doctree-read", open_reports, priority=100)
    app.connect("build-finished", copy_reports)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
