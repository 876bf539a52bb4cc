"""The report of one or more posteriors: the parts of its page, and the page in a file, or in a frame of a notebook."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from markupsafe import Markup

from onebasin.base.checks import checks_arguments
from onebasin.base.errors import ArgumentError
from onebasin.base.table import decimals_beside, format_number
from onebasin.posteriors.view import Posterior, as_view

from ..diagnostics.verdict import FLAGS, Extreme
from ..page.page import AnswerCard, Report, Section, Stat
from ..page.render import claimed, put, render, write
from ..plots.posteriors import Posteriors, Subject, named
from .provenance import definitions_of, describe_run, program_section
from .sections.chains import chains, fits, sampler
from .sections.parameters import labels, modes, parameters
from .sections.predictions import predictions
from .sections.several import one_of_several, several
from .tables import cost_table

if TYPE_CHECKING:
    from onebasin.models.symmetry.blocks import Symmetry


def posterior_report(
    posteriors: Mapping[str, Posterior],
    *,
    title: str = "Posterior report",
    var_names: Sequence[str] | None = None,
    symmetry: Symmetry | None = None,
    truth: str | None = None,
) -> Report:
    """Build the report of one or more posteriors.

    Arguments and errors are those of `report`, with posteriors by the name that the page shall use.

    Returns
    -------
    Report
        Of one posterior: the answer, modes, labels, parameters, sampler, chains, predictions, cost; a network's
        predictions come first. Of several: an answer each, the comparison, checks and cost. And how they were made.
    """
    from ..diagnostics.diagnose import diagnose  # here: it loads JAX

    if not posteriors:
        raise ArgumentError("`posteriors` is empty: give at least one posterior to report on.")
    if truth is not None and truth not in posteriors:
        raise ArgumentError(
            f"`truth` is {truth!r}, which is none of the posteriors: choose one of {', '.join(posteriors)}."
        )
    options: dict[str, Any] = {"var_names": var_names, "symmetry": symmetry}
    options = {name: value for name, value in options.items() if value is not None}
    views = {name: as_view(each, f"posteriors[{name!r}]") for name, each in posteriors.items()}
    subjects = [Subject(name, view, diagnose(view, **options)) for name, view in views.items()]
    cards = [answer_card(subject, named=len(subjects) > 1) for subject in subjects]
    table = cost_table({subject.name: subject.diagnosis for subject in subjects})
    costs = Section("Cost", tables=(table,)) if len(table.columns) > 1 else None
    if len(subjects) == 1:
        (subject,) = subjects
        sections = (*sections_of(subject), costs)
        lede = f"{_made(subject)}."
    else:
        beside = several(
            subjects, truth=truth or subjects[0].name, symmetry=symmetry, var_names=var_names
        )
        sections = (*beside, costs, *map(one_of_several, subjects))
        made = " ".join(f"`{subject.name}`: {_made(subject)}." for subject in subjects)
        lede = f"{len(subjects)} posteriors. {made}"
    programs = program_section(subjects)
    return Report(
        title=title,
        lede=lede,
        sections=tuple(s for s in (*sections, programs) if s is not None),
        provenance=tuple(describe_run(subject.name, subject.view) for subject in subjects),
        definitions=definitions_of(subjects),
        answers=tuple(cards),
    )


def answer_card(subject: Subject, *, named: bool) -> AnswerCard:
    """Give the card that a page begins with."""
    return AnswerCard(subject.verdict, subject.name if named else "", tuple(key_figures(subject)))


def key_figures(subject: Subject) -> list[Stat]:
    """The numbers that the answer rests on, aligned where parameters are shown so."""
    diagnosis, fit = subject.diagnosis, subject.diagnosis.variational
    chains, draws = diagnosis.num_chains, diagnosis.num_draws
    if subject.diagnosis.has_chains:
        note = f"{chains} chain{'s' if chains > 1 else ''} of {format_number(draws)}"
    else:
        note = "members" if subject.view.is_ensemble else "of the fit"
    stats = [Stat("draws", chains * draws, note=note)]
    if fit is not None:
        limit = fit.khat_limit
        places = 2 if math.isnan(fit.khat) else decimals_beside(fit.khat, (limit,), 2)
        khat, at_most = (format_number(value, decimals=places) for value in (fit.khat, limit))
        flag = FLAGS[diagnosis.outcome_of("k-hat") or "passed"]
        stats.append(Stat("k-hat", khat, flag, f"limit {at_most}"))
        stats.append(Stat("ELBO", fit.elbo, note="nats, last"))
        return stats
    if not subject.diagnosis.has_chains:
        return stats
    numbers = diagnosis.numbers
    aligned = "aligned" if subject.diagnosis.is_shown_aligned else "largest"
    for label, column, note in (("R-hat", "rhat", aligned), ("bulk ESS", "ess_bulk", "smallest")):
        worst = Extreme.of(numbers.decisive[column], smallest=column != "rhat")
        if worst.parameter is not None:
            flag = FLAGS[numbers.outcome(column, worst.value, worst.parameter)]
            value = numbers.written(column, worst.value)
            stats.append(Stat(label, value, flag, f"{note}, `{worst.parameter}`"))
    sampler = diagnosis.sampler
    if sampler is not None:
        count = "not recorded" if sampler.divergences is None else sampler.divergences
        stats.append(
            Stat("divergences", count, FLAGS[diagnosis.outcome_of("divergences") or "passed"])
        )
        if not math.isnan(sampler.min_bfmi):
            places = decimals_beside(sampler.min_bfmi, (diagnosis.limits.bfmi,), 2)
            value = format_number(sampler.min_bfmi, decimals=places)
            flag = FLAGS[diagnosis.outcome_of("E-BFMI") or "passed"]
            stats.append(Stat("E-BFMI", value, flag, "smallest"))
    return stats


def sections_of(subject: Subject) -> list[Section | None]:
    """Show one posterior; a network's predictions come first: they have no labels, and its weights say little."""
    parts = (modes, labels, fits, parameters, sampler, chains)
    is_network = subject.view.network is not None
    order = (predictions, *parts) if is_network else (*parts, predictions)
    return [part(subject) for part in order]


_ENGINES = {"stan": "Stan", "numpyro": "NumPyro", "nutpie": "nutpie"}
_METHODS = {"nuts": "NUTS", "hmc": "HMC"}


def _made(subject: Subject) -> str:
    diagnosis = subject.diagnosis
    chains = "1 chain" if diagnosis.num_chains == 1 else f"{diagnosis.num_chains} chains"
    draws = format_number(diagnosis.num_draws)
    size = f"{chains} of {draws} draws" if subject.diagnosis.has_chains else f"{draws} draws"
    target = f" of `{diagnosis.target}`" if diagnosis.target else ""
    method = f" by {_METHODS.get(diagnosis.method, diagnosis.method)}" if diagnosis.method else ""
    engine = f" on {_ENGINES.get(diagnosis.engine, diagnosis.engine)}" if diagnosis.engine else ""
    return f"{size}{target}{method}{engine}"


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
