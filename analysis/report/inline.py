"""`report`: the page of posteriors in a file, or in a notebook, in a frame of its own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, overload

from markupsafe import Markup

from onebasin.base.arguments import checks_arguments

from ..page.page import Report
from ..page.render import claimed, put, render, write
from ..plots.posteriors import Posteriors, named
from .posteriors import posterior_report

if TYPE_CHECKING:
    from onebasin.models.symmetry.blocks import Symmetry

FRAME_HEIGHT = "42rem"


@dataclass(frozen=True, eq=False)
class InlineReport:
    """A page that a notebook shows, and that `save` writes to a file.

    Attributes
    ----------
    page : Report
        The page's parts.
    """

    page: Report

    @cached_property
    def html(self) -> str:
        """The page as a whole HTML document."""
        return render(self.page)

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write the page to a file, which has to be new without `force`; returns its path.

        Parameters
        ----------
        path : path
            The HTML file.
        force : bool
            Whether a file that is there may be replaced.

        Returns
        -------
        pathlib.Path
            The file.

        Raises
        ------
        OutputError
            If the file exists and `force` is not set, or the folder is missing or not writable.
        """
        with claimed(path, force=force) as output:
            return put(self.html, output, force=force)

    def _repr_html_(self) -> str:
        # A frame of its own origin: neither the notebook's styles nor its page are within reach.
        frame = (
            '<iframe sandbox="allow-scripts" title="{}" srcdoc="{}" loading="lazy" '
            'style="width: 100%; height: {}; border: 1px solid #8884; border-radius: 8px"></iframe>'
        )
        return str(Markup(frame).format(self.page.title, self.html, FRAME_HEIGHT))

    def __repr__(self) -> str:
        return f"<report {self.page.title!r}: .save(path) writes it, a notebook shows it>"


@overload
def report(
    posteriors: Posteriors,
    path: None = None,
    *,
    title: str = ...,
    var_names: Sequence[str] | None = ...,
    symmetry: Symmetry | None = ...,
    truth: str | None = ...,
    force: bool = ...,
) -> InlineReport: ...


@overload
def report(
    posteriors: Posteriors,
    path: str | os.PathLike[str],
    *,
    title: str = ...,
    var_names: Sequence[str] | None = ...,
    symmetry: Symmetry | None = ...,
    truth: str | None = ...,
    force: bool = ...,
) -> Path: ...


@checks_arguments
def report(
    posteriors: Posteriors,
    path: str | os.PathLike[str] | None = None,
    *,
    title: str = "Posterior report",
    var_names: Sequence[str] | None = None,
    symmetry: Symmetry | None = None,
    truth: str | None = None,
    force: bool = False,
) -> Path | InlineReport:
    """Make one self-contained page: whether posteriors may be used, and the tables and pictures that show why.

    Parameters
    ----------
    posteriors : posterior, or mapping of str to posterior
        The posteriors, by the name that the page shall use; one alone is called ``posterior``. In any form that
        `ob.diagnose` takes.
    path : path, optional
        The HTML file; without one, the page is given back, for a notebook to show or to be saved.
    title : str
        Heading of the page.
    var_names : sequence of str, optional
        Variables to report on; all by default.
    symmetry : tuple of blocks, optional
        Modulo what; by default what a posterior declares, or what is found in its draws.
    truth : str, optional
        Of several: the one that the others are compared with, by default the first.
    force : bool
        Whether a file that is there may be replaced.

    Returns
    -------
    pathlib.Path or InlineReport
        The file; or the page, which a notebook shows in a frame and `save` writes.

    Raises
    ------
    ValueError
        If there is no posterior, one of them cannot be diagnosed, or `truth` is none of them; the message names it.
    OutputError
        If the file exists and `force` is not set, or the folder is missing or not writable.

    Examples
    --------
    >>> ob.report(posterior, "page.html", var_names=["theta"], force=True).name
    'page.html'
    """
    page = posterior_report(
        named(posteriors), title=title, var_names=var_names, symmetry=symmetry, truth=truth
    )
    return InlineReport(page) if path is None else write(page, path, force=force)
