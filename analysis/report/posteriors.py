"""Reports on posteriors, written to a file or shown in a notebook."""

from __future__ import annotations

import hashlib
import json
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
from onebasin.posteriors import schema
from onebasin.posteriors.view import Posterior, as_view

from ..diagnostics.verdict import FLAGS, Extreme
from ..page import (
    AnswerCard,
    Code,
    Details,
    Provenance,
    Report,
    Section,
    Stat,
    claimed,
    put,
    render,
)
from ..plots.posteriors import Posteriors, Subject, named
from ..summaries.sampler import restarts_in_words, restarts_of
from .chains import chains, fits, sampler
from .predictions import predictions
from .sections import labels, modes, one_of_several, parameters, several
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
    """Build the report on one or more posteriors.

    Arguments and errors are the same as for `report`, but `posteriors` must map names to posteriors.

    Returns
    -------
    Report
        For one posterior: the answer, modes, labels, parameters, sampler, chains, predictions and cost. For a network,
        predictions come first. For several posteriors: an answer for each, the comparison, checks and cost. Every
        report ends with the origin of the draws.
    """
    from ..diagnostics.diagnose import diagnose  # Imported late, because it loads JAX.

    if not posteriors:
        raise ArgumentError("`posteriors` is empty. Give at least one posterior.")
    if truth is not None and truth not in posteriors:
        raise ArgumentError(
            f"`truth` is {truth!r}, but no posterior has this name. Choose one of {', '.join(posteriors)}."
        )
    options: dict[str, Any] = {"var_names": var_names, "symmetry": symmetry}
    options = {name: value for name, value in options.items() if value is not None}
    views = {name: as_view(each, f"posteriors[{name!r}]") for name, each in posteriors.items()}
    subjects = [Subject(name, view, diagnose(view, **options)) for name, view in views.items()]
    cards = [
        AnswerCard(s.verdict, s.name if len(subjects) > 1 else "", tuple(key_figures(s)))
        for s in subjects
    ]
    table = cost_table({subject.name: subject.diagnosis for subject in subjects})
    costs = Section("Cost", tables=(table,)) if len(table.columns) > 1 else None
    if len(subjects) == 1:
        (subject,) = subjects
        parts = (modes, labels, fits, parameters, sampler, chains)
        # For a network, predictions come first, because weights say little.
        is_network = subject.view.network is not None
        order = (predictions, *parts) if is_network else (*parts, predictions)
        sections = (*(part(subject) for part in order), costs)
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


def key_figures(subject: Subject) -> list[Stat]:
    """Return the key figures of a posterior, after alignment if its parameters are shown aligned."""
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


_ENGINES = {"stan": "Stan", "numpyro": "NumPyro", "nutpie": "nutpie"}
_METHODS = {
    **{name: name.upper() for name in ("nuts", "hmc", "mclmc", "advi", "dadvi")},
    **{name: name.capitalize() for name in ("laplace", "pathfinder")},
}


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
    """A page that notebooks display and that `save` writes to a file.

    Attributes
    ----------
    page : Report
        The parts of the page.
    """

    page: Report

    @cached_property
    def html(self) -> str:
        """The HTML document as a string."""
        return render(self.page)

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write the page to a file and return its path.

        Parameters
        ----------
        path : path
            The HTML file to write.
        force : bool
            Whether to replace an existing file.

        Returns
        -------
        pathlib.Path
            The file.

        Raises
        ------
        OutputError
            If the file exists and `force` is false, or if the folder is missing or not writable.
        """
        with claimed(path, force=force) as output:
            return put(self.html, output, force=force)

    def _repr_html_(self) -> str:
        # Use a sandboxed frame, which cannot access the page or styles of the notebook.
        frame = (
            '<iframe sandbox="allow-scripts" title="{}" srcdoc="{}" loading="lazy" '
            'style="width: 100%; height: {}; border: 1px solid #8884; border-radius: 8px"></iframe>'
        )
        return str(Markup(frame).format(self.page.title, self.html, FRAME_HEIGHT))

    def __repr__(self) -> str:
        return f"<report {self.page.title!r}: call .save(path) to write it, or display it in a notebook>"


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
    """Make a self-contained page that says whether posteriors may be used, and shows why.

    Parameters
    ----------
    posteriors : posterior, or mapping of str to posterior
        The posteriors, by their names on the page, in any form that `ob.diagnose` accepts. A single posterior without a
        name is called ``posterior``.
    path : path, optional
        The HTML file to write. By default the page is returned, so that you can show it in a notebook or save it later.
    title : str
        Heading of the page.
    var_names : sequence of str, optional
        Variables to include; all by default.
    symmetry : tuple of blocks, optional
        The symmetry; by default the declared symmetry, or the symmetry found in the draws.
    truth : str, optional
        Name of the posterior with which the others are compared; by default the first.
    force : bool
        Whether to replace an existing file.

    Returns
    -------
    pathlib.Path or InlineReport
        The path of the file or, without `path`, the page, which a notebook displays and `save` writes.

    Raises
    ------
    ValueError
        If there is no posterior, one cannot be diagnosed (the message names it), or `truth` is not one of them.
    OutputError
        If the file exists and `force` is false, or if the folder is missing or not writable.

    Examples
    --------
    >>> ob.report(posterior, "page.html", var_names=["theta"], force=True).name
    'page.html'
    """
    page = posterior_report(
        named(posteriors), title=title, var_names=var_names, symmetry=symmetry, truth=truth
    )
    found = InlineReport(page)
    return found if path is None else found.save(path, force=force)


_TEXT = (
    (schema.CREATED_AT, "Made"),
    (schema.COMMAND, "Command"),
    (schema.TARGET, "Target"),
    (schema.ENGINE, "Engine"),
    (schema.METHOD, "Method"),
    (schema.SEED, "Seed"),
)
_JSON = ((schema.SETTINGS, "Settings"), (schema.VERSIONS, "Versions"), (schema.MODEL, "Model"))


def describe_run(name: str, posterior: Posterior) -> Provenance:
    """List the recorded facts about one run: settings, seed, versions, machine and times."""
    view = as_view(posterior)
    facts = [(label, _text(view.attribute(key))) for key, label in _TEXT]
    facts.append(("Draws", f"{view.num_chains} × {format_number(view.num_draws)}"))
    facts += [(label, _listed(view.parsed(key))) for key, label in _JSON]
    blocks, joined = view.parsed(schema.SYMMETRY), view.parsed(schema.JOINED) or ()
    if blocks is not None:
        facts.append(("Symmetry", "; ".join(map(_listed, blocks)) or "none declared"))
    program, title = (_text(view.attribute(k)) for k in (schema.PROGRAM, schema.PROGRAM_NAME))
    if program:
        title = f"{title} (SHA-256 {hashlib.sha256(program.encode()).hexdigest()})".strip()
    facts.append(("Program", title))
    facts.append(("SHA-256 of the data", _text(view.attribute(schema.DATA_SHA256))))
    facts.append(("Machine", _text(view.attribute(schema.MACHINE))))
    runs = (f"{run.get('file')} (seed {run.get('seed', 'unknown')})" for run in joined)
    facts.append(("Joined", "; ".join(runs)))
    if (wall_time := view.number(schema.WALL_TIME)) is not None:
        facts.append(("Wall time", f"{format_number(wall_time)} s"))
    for key, label in ((schema.WARMUP_SECONDS, "Warmup"), (schema.SAMPLING_SECONDS, "Sampling")):
        if seconds := view.parsed(key):
            facts.append((label, f"{', '.join(map(format_number, seconds))} s per chain, in order"))
    if (gradients := view.number(schema.GRADIENT_EVALUATIONS)) is not None:
        facts.append(("Gradient evaluations", format_number(int(gradients))))
    if (limit := view.number(schema.MAX_TREE_DEPTH)) is not None:
        facts.append(("Maximal tree depth", f"{limit:g}"))
    if (converged := view.number(schema.CONVERGED)) is not None:
        facts.append(("Converged", "yes" if converged else "no"))
    facts.append(("Start", _text(view.attribute(schema.FIT_START))))
    facts.append(("New random stream", restarts_in_words(restarts_of(view))))
    facts.append(("Tried before", "; ".join(map(_listed, view.parsed(schema.ATTEMPTS) or ()))))
    return Provenance(name, tuple((label, value) for label, value in facts if value))


def program_section(subjects: Sequence[Subject]) -> Section | None:
    """Show the programs of the posteriors, folded. Return None if no program was recorded."""
    by_text: dict[str, list[str]] = {}
    for subject in subjects:
        if text := _text(subject.view.attribute(schema.PROGRAM)):
            by_text.setdefault(text, []).append(subject.name)
    if not by_text:
        return None
    parts = []
    for text, names in by_text.items():
        title = f"Program of {', '.join(names)}" if len(subjects) > 1 else "The program"
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        lines = format_number(len(text.splitlines()))
        parts.append(Details(title, (Code(text),), note=f"{lines} lines, SHA-256 {digest}"))
    return Section("Model", parts=tuple(parts))


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _listed(value: Any) -> str:
    """Write parsed JSON on one line, and mappings as `name = value` pairs."""
    if isinstance(value, dict):
        return ", ".join(f"{key} = {_plain(entry)}" for key, entry in value.items())
    return "" if value is None else _plain(value)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


_DEFINITIONS = {
    "all": {
        "Parameter": "One scalar entry of a variable. Indices count from 0 unless the file has other labels.",
        "MCSE": "Monte Carlo standard error of the mean: the error that comes from having finitely many draws.",
    },
    "chains": {
        "R-hat": "Rank-normalised split R-hat: the spread of all draws, divided by the spread within half chains. It "
        "is near 1 if the chains agree; a value above 1.01 is a warning. (Vehtari, Gelman, Simpson, Carpenter and "
        "Bürkner 2021.)",
        "Bulk ESS, tail ESS": "Effective sample size: the number of independent draws that would estimate the centre "
        "(bulk), or the worse of the 5 % and 95 % quantiles (tail), equally well. It should be at least 100 per chain, "
        "or 400 in total. (As above.)",
        "Divergences": "Draws whose simulated trajectory had a very large energy error. The posterior curves more "
        "sharply there than the step size can follow, so draws from that region may be missing.",
        "Tree depth, saturated": "A NUTS trajectory of depth k takes up to 2ᵏ − 1 leapfrog steps. Saturated "
        "trajectories were cut short at the limit.",
        "E-BFMI": "Change of the energy from draw to draw, relative to its spread, for each chain. Below 0.3, the "
        "sampler explores the tails too slowly. (Betancourt 2016.)",
        "ESS per second, per gradient": "The smallest bulk ESS, divided by the seconds of sampling (without warmup, "
        "summed over chains) or by the gradient evaluations of the kept draws.",
    },
    "fits": {
        "k-hat": "Tail shape of the importance ratios (posterior / approximation), from Pareto smoothing. Above min(1 "
        "− 1/log₁₀ S, 0.7), with S draws, weights cannot correct the approximation. (Yao, Vehtari, Simpson and Gelman "
        "2018.)",
        "ELBO": "Evidence lower bound in nats. Larger is better. Compare only fits of the same model.",
    },
    "aligned": {
        "Labelling, aligned": "Interchangeable components have no fixed names: draws that differ only in the order of "
        "components are equivalent. Alignment gives all draws the same order.",
        "Invariant": "A quantity that does not change when components are relabelled, such as their mean.",
    },
    "left out": {
        "PSIS-LOO, elpd, Pareto k": "Log predictive density of each observation given all others, estimated by Pareto "
        "smoothed importance sampling. It is unreliable if k is above the limit. (Vehtari, Gelman and Gabry 2017.)"
    },
    "predictions": {
        "RMSE": "Root mean squared error of the predictive mean, in the units of the target.",
        "Log score": "Mean over points of the log predictive density, averaged over draws inside the logarithm, in "
        "nats. Larger is better.",
        "Coverage, outside 95 %": "Share of points inside the central 50 % or 95 % predictive interval, and outside "
        "the 95 % interval. Ideal values are 0.5, 0.95 and 0.05.",
        "Interval width": "Mean width of the central predictive interval. At equal coverage, narrower is better.",
    },
}
"""Definitions of terms, grouped by the pages that need them."""


def definitions_of(subjects: Sequence[Subject]) -> tuple[tuple[str, str], ...]:
    """Return the definitions of the terms that a page uses."""
    views = [subject.view for subject in subjects]
    stand = {
        "all": True,
        "chains": any(subject.diagnosis.has_chains for subject in subjects),
        "fits": any(view.is_variational for view in views),
        "aligned": any(subject.diagnosis.aligned for subject in subjects),
        "left out": any(view.group(schema.LOG_LIKELIHOOD) is not None for view in views),
        "predictions": len(views) > 1 and any(view.network for view in views),
    }
    return tuple(
        each for when, them in _DEFINITIONS.items() if stand[when] for each in them.items()
    )
