"""The report of one or more posteriors, as a page or as a file."""

from collections.abc import Mapping
from pathlib import Path

import xarray as xr

from ..diagnostics.diagnose import diagnose
from ..diagnostics.result import Diagnosis
from . import posterior_figures as figures
from .definitions import DIAGNOSTICS, PREDICTION
from .page import Note, Report, Section
from .posterior_scores import scores_of
from .provenance import describe_run
from .render import write
from .tables import cost_table, health_table, parameter_table, score_table

WORST_SHOWN = 12
NAMED_IN_LEDE = 4
_PREDICTIONS = "Predictions"


def report(
    posteriors: xr.DataTree | Mapping[str, xr.DataTree],
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
    named = {"posterior": posteriors} if isinstance(posteriors, xr.DataTree) else posteriors
    return write(posterior_report(named, title=title), path, force=force)


def posterior_report(
    posteriors: Mapping[str, xr.DataTree], *, title: str = "Posterior report"
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
        Overview, warnings, worst parameters, traces, ELBO, weight scatter, predictions where they
        are stored, provenance.

    Raises
    ------
    ValueError
        If there is no posterior, or one of them cannot be diagnosed; the message names it.
    """
    if not posteriors:
        raise ValueError("`posteriors` is empty: give at least one posterior to report on.")
    diagnoses = {name: _diagnose(name, tree) for name, tree in posteriors.items()}
    shared = (
        _overview(diagnoses),
        _warnings(diagnoses),
        _optimisation(posteriors),
        _weights(posteriors),
        _predictions(posteriors),
    )
    single = (_details(name, posteriors[name], diagnosis) for name, diagnosis in diagnoses.items())
    sections = [section for section in (*shared, *single) if section is not None]
    scored = any(section.title == _PREDICTIONS for section in sections)
    return Report(
        title=title,
        lede=_lede(diagnoses),
        sections=tuple(sections),
        provenance=tuple(describe_run(name, tree) for name, tree in posteriors.items()),
        definitions=DIAGNOSTICS + PREDICTION if scored else DIAGNOSTICS,
    )


def _diagnose(name: str, tree: xr.DataTree) -> Diagnosis:
    try:
        return diagnose(tree)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from error


def _lede(diagnoses: Mapping[str, Diagnosis]) -> str:
    total = len(diagnoses)
    sound = [name for name, diagnosis in diagnoses.items() if diagnosis.passed]
    if total == 1:
        verdict = "passes every check" if sound else "does not pass every check"
        return f"One posterior, which {verdict}; below is what was checked and what was found."
    if len(sound) == total:
        return f"{total} posteriors, all of which pass every check."
    if not sound:
        return f"{total} posteriors, none of which passes every check."
    named = f": {'; '.join(sound)}" if len(sound) <= NAMED_IN_LEDE else ""
    return f"{total} posteriors; {len(sound)} of them pass every check{named}."


def _overview(diagnoses: Mapping[str, Diagnosis]) -> Section:
    limits = next(iter(diagnoses.values())).limits
    health = health_table(
        diagnoses,
        caption=f"Can the draws be trusted? Limits: R-hat {limits.rhat:g}, ESS "
        f"{limits.ess_per_chain:g} a chain, E-BFMI {limits.bfmi:g}. A dash stands where a "
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


def _optimisation(posteriors: Mapping[str, xr.DataTree]) -> Section | None:
    item = figures.elbo_figure(posteriors)
    return None if item is None else Section("Optimisation", figures=(item,))


def _weights(posteriors: Mapping[str, xr.DataTree]) -> Section | None:
    items = (figures.scatter_figure(posteriors), figures.depth_figure(posteriors))
    shown = tuple(item for item in items if item is not None)
    return Section("Shape of the posterior", figures=shown) if shown else None


def _predictions(posteriors: Mapping[str, xr.DataTree]) -> Section | None:
    scores = scores_of(posteriors)
    if not scores:
        return None
    band = figures.band_figure(posteriors)
    return Section(
        _PREDICTIONS,
        text="Scores on the very data that the posterior was conditioned on: they flatter, and "
        "serve to compare posteriors of one model.",
        tables=(score_table(scores, caption="Posterior predictive against the data"),),
        figures=() if band is None else (band,),
    )


def _details(name: str, tree: xr.DataTree, diagnosis: Diagnosis) -> Section:
    varying = len(diagnosis.parameters) - len(diagnosis.constants)
    shown = min(WORST_SHOWN, varying)
    caption = (
        f"All {varying} parameters, worst first."
        if shown == varying
        else f"The {shown} worst of {varying} parameters, by R-hat and then by bulk ESS."
    )
    trace = figures.trace_figure(tree, diagnosis)
    return Section(
        title=name,
        notes=tuple(Note(text) for text in diagnosis.notes),
        tables=(parameter_table(diagnosis, worst=WORST_SHOWN, caption=caption),),
        figures=() if trace is None else (trace,),
    )
