"""The report of one or more posteriors, as a page or as a file."""

from collections.abc import Mapping
from pathlib import Path

import xarray as xr

from ..diagnostics.diagnose import diagnose
from ..diagnostics.result import PER_CHAIN, Diagnosis
from ..posterior.view import Posterior, View, as_view
from . import posterior_figures as figures
from .definitions import DIAGNOSTICS
from .page import Note, Report, Section
from .provenance import describe_run
from .render import write
from .tables import cost_table, health_table, parameter_table

WORST_SHOWN = 12
NAMED_IN_LEDE = 4


def report(
    posteriors: Posterior | Mapping[str, Posterior],
    path: str | Path,
    *,
    title: str = "Posterior report",
    force: bool = False,
) -> Path:
    """Write one self-contained page with tables and pictures of one or more posteriors.

    Parameters
    ----------
    posteriors
        The posteriors, by the name that the page shall use; one alone is called ``posterior``.
    path
        The HTML file.
    title
        Heading of the page.
    force
        Whether a file that is there may be replaced.

    Returns
    -------
    pathlib.Path
        The file.

    Raises
    ------
    ValueError
        If there is no posterior, or one of them cannot be diagnosed; the message names it.
    OutputError
        If the file exists and `force` is not set, or the folder is missing or not writable.
    """
    alone = isinstance(posteriors, xr.DataTree | xr.Dataset) or not isinstance(posteriors, Mapping)
    named = {"posterior": posteriors} if alone else posteriors
    return write(posterior_report(named, title=title), path, force=force)


def posterior_report(
    posteriors: Mapping[str, Posterior], *, title: str = "Posterior report"
) -> Report:
    """Build the report of one or more posteriors.

    Parameters
    ----------
    posteriors
        The posteriors, by the name that the report shall use.
    title
        Heading of the page.

    Returns
    -------
    Report
        Overview, warnings, worst parameters, traces, ELBO, weight scatter, provenance.

    Raises
    ------
    ValueError
        If there is no posterior, or one of them cannot be diagnosed; the message names it.
    """
    if not posteriors:
        raise ValueError("`posteriors` is empty: give at least one posterior to report on.")
    views = {
        name: as_view(posterior, f"posteriors[{name!r}]") for name, posterior in posteriors.items()
    }
    diagnoses = {name: diagnose(view) for name, view in views.items()}
    shared = (
        _overview(diagnoses),
        _warnings(diagnoses),
        _optimisation(views),
        _weights(views),
    )
    single = (_details(name, views[name], diagnosis) for name, diagnosis in diagnoses.items())
    sections = [section for section in (*shared, *single) if section is not None]
    return Report(
        title=title,
        lede=_lede(diagnoses),
        sections=tuple(sections),
        provenance=tuple(describe_run(name, view) for name, view in views.items()),
        definitions=DIAGNOSTICS,
    )


def _lede(diagnoses: Mapping[str, Diagnosis]) -> str:
    total = len(diagnoses)
    sound = [name for name, diagnosis in diagnoses.items() if diagnosis.passed]
    if total == 1:
        verdict = _in_words(next(iter(diagnoses.values())))
        return f"One posterior, which {verdict}; below is what was checked and what was found."
    if len(sound) == total:
        return f"{total} posteriors, all of which pass every check."
    unjudged = sum(diagnosis.outcome == "not judged" for diagnosis in diagnoses.values())
    more = f" Of {unjudged} not every check could be judged." if unjudged else ""
    if not sound:
        return f"{total} posteriors, none of which passes every check.{more}"
    named = f": {'; '.join(sound)}" if len(sound) <= NAMED_IN_LEDE else ""
    return f"{total} posteriors; {len(sound)} of them pass every check{named}.{more}"


def _in_words(diagnosis: Diagnosis) -> str:
    if diagnosis.passed:
        return "passes every check"
    if diagnosis.outcome == "failed":
        return "does not pass every check"
    return f"fails no check, but not every check could be judged ({diagnosis.checks_in_words.partition('; ')[2]})"


def _overview(diagnoses: Mapping[str, Diagnosis]) -> Section:
    limits = next(iter(diagnoses.values())).limits
    health = health_table(
        diagnoses,
        caption=f"Can the draws be trusted? Limits: R-hat {limits.rhat:g}, ESS "
        f"{f'{PER_CHAIN:g} a chain' if limits.ess is None else f'{limits.ess:g}'}, "
        f"E-BFMI {limits.bfmi:g}. A dash stands where a "
        "diagnostic does not apply or was not recorded.",
    )
    cost = cost_table(diagnoses, caption="What did they cost?")
    tables = (health, cost) if len(cost.columns) > 1 else (health,)
    return Section("Overview", tables=tables)


def _warnings(diagnoses: Mapping[str, Diagnosis]) -> Section | None:
    many = len(diagnoses) > 1
    notes = tuple(
        Note("\n\n".join(diagnosis.warnings), "bad", name if many else "")
        for name, diagnosis in diagnoses.items()
        if diagnosis.warnings
    )
    return Section("What needs attention", notes=notes) if notes else None


def _optimisation(views: Mapping[str, View]) -> Section | None:
    item = figures.elbo_figure(views)
    return None if item is None else Section("Optimisation", figures=(item,))


def _weights(views: Mapping[str, View]) -> Section | None:
    items = (figures.scatter_figure(views), figures.depth_figure(views))
    shown = tuple(item for item in items if item is not None)
    return Section("Shape of the posterior", figures=shown) if shown else None


def _details(name: str, view: View, diagnosis: Diagnosis) -> Section:
    varying = len(diagnosis.parameters) - len(diagnosis.constants)
    shown = min(WORST_SHOWN, varying)
    caption = (
        f"All {varying} parameters, worst first."
        if shown == varying
        else f"The {shown} worst of {varying} parameters, by R-hat and then by bulk ESS."
    )
    trace = figures.trace_figure(view, diagnosis)
    return Section(
        title=name,
        notes=tuple(Note(text) for text in diagnosis.notes),
        tables=(parameter_table(diagnosis, worst=WORST_SHOWN, caption=caption),),
        figures=() if trace is None else (trace,),
    )
