"""Several posteriors: what `compare` says, marginals over each other in one labelling, and predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from onebasin.base.table import format_number
from onebasin.posteriors.view import View

from ...page.page import Details, FigureItem, Note, Part, Section
from ...plots.marginals import density, draw_curves
from ...plots.posteriors import Subject, listed, thinned
from ...plots.style import CHAIN_COLOURS
from ..tables import comparison_table, grouped_table, health_table, means_table
from .chains import elbo_figure, traces
from .predictions import bands

if TYPE_CHECKING:
    from onebasin.models.symmetry.blocks import Symmetry

    from ...compare.comparable import CommonFrame
    from ...diagnostics.result import Diagnosis

OVERLAID = 8
"""Parameters whose marginals are drawn."""
MOST = len(CHAIN_COLOURS)
DRAWS = 2000
"""Draws of a chain that a density is made of at most."""


def several(
    subjects: Sequence[Subject],
    *,
    truth: str,
    symmetry: Symmetry | None = None,
    var_names: Sequence[str] | None = None,
) -> tuple[Section | None, ...]:
    """Compare at least two posteriors with `truth`, one of them, side by side.

    Modulo the symmetry that is given, by default what the truth declares; in some variables or all.
    """
    views = {subject.name: subject.view for subject in subjects}
    diagnoses = {subject.name: subject.diagnosis for subject in subjects}
    beside = _comparison(views, diagnoses, truth, symmetry, var_names)
    aligned = [subject.name for subject in subjects if subject.diagnosis.is_shown_aligned]
    after = f" Of {listed(aligned)} aligned draws are judged." if aligned else ""
    health = health_table(
        diagnoses,
        caption=f"Can the draws be trusted?{after} A dash stands where a check does not apply.",
    )
    item = elbo_figure(views)
    optimisation = None if item is None else Section("Optimisation", figures=(item,))
    return (beside, Section("Checks", parts=(health,)), optimisation)


def one_of_several(subject: Subject) -> Section:
    """Show the parameters of one of several posteriors, and traces of the worst."""
    diagnosis = subject.diagnosis
    parts: list[Part] = [
        Note(text, check.flag)
        for check in diagnosis.checks
        if check.outcome in ("warned", "failed")
        for text in check.sentences
    ]
    shown = diagnosis.shown
    table = shown.drop(index=[name for name in diagnosis.constants if name in shown.index])
    caption = f"R-hat above {diagnosis.limits.rhat:g} and too small an ESS are marked."
    aligned = ", aligned where the symmetry moves them" if diagnosis.is_shown_aligned else ""
    count = f"{format_number(len(table))}{aligned}"
    parts.append(
        Details("Parameters", (grouped_table(diagnosis, table, caption=caption),), note=count)
    )
    if (item := traces(subject)) is not None:
        parts.append(item)
    return Section(subject.name, parts=tuple(parts))


def _comparison(
    views: Mapping[str, View],
    diagnoses: Mapping[str, Diagnosis],
    truth: str,
    symmetry: Symmetry | None,
    var_names: Sequence[str] | None,
) -> Section:
    from ...compare.compare import compare  # here: it loads JAX

    title = f"Compared with {truth}"
    try:
        comparison = compare(
            views, truth=truth, symmetry=symmetry, var_names=var_names, diagnoses=diagnoses
        )
    except ValueError as error:
        return Section(title, notes=(Note(f"They are not compared: {error}", "warn"),))
    parts: list[Part] = [*comparison.sentences]
    parts += [Note(text, "warn") for text in comparison.warnings]
    parts.append(comparison_table(comparison))
    if (means := means_table(comparison)) is not None:
        parts.append(means)
    for item in (marginals(views, truth, comparison.frame), bands(views)):
        if item is not None:
            parts.append(item)
    parts.append("\n\n".join(comparison.notes))
    return Section(title, parts=tuple(parts))


def marginals(
    views: Mapping[str, View], truth: str, frame: CommonFrame | None
) -> FigureItem | None:
    """Draw densities of the parameters whose medians lie furthest apart, in one labelling."""
    if frame is None:
        return None
    chosen = {truth: views[truth]} | dict(views)
    draws = {}
    for name, view in chosen.items():
        try:
            draws[name] = frame.align(view).draws(tuple(frame.shapes), finite=False)
        except ValueError:
            continue  # of another parametrisation: the comparison says so
    shown = dict(list(draws.items())[:MOST])
    if len(shown) < 2:
        return None
    places = {name: _places(each) for name, each in shown.items()}
    common = [n for n in places[truth] if all(n in each for each in places.values())]
    apart = {}
    for name in common:
        middles, spreads = zip(*(each[name] for each in places.values()), strict=True)
        apart[name] = float(np.ptp(middles) / min(spreads))
    worst = set(sorted(apart, key=lambda name: -apart[name])[:OVERLAID])
    names = [name for name in common if name in worst]
    if not names:
        return None
    quantities = {
        name: {n: thinned(each.of(n), DRAWS) for n in names} for name, each in shown.items()
    }
    panels = {n: [density(each[n]) for each in quantities.values()] for n in names}
    figure = draw_curves(panels, tuple(quantities), height=1.7)
    total, labels = len(common), "" if frame.alignment is None else ", in one labelling"
    which = "All" if len(names) == total else f"The {len(names)} of {total} that lie furthest apart"
    told = []
    for name in names:
        lies = []
        for posterior, each in quantities.items():
            ends = np.quantile(each[name], [0.05, 0.5, 0.95])
            low, middle, high = (format_number(float(q)) for q in ends)
            lies.append(f"{posterior} {middle} ({low} to {high})")
        told.append(f"{name}, medians and 90 % intervals: {'; '.join(lies)}.")
    return FigureItem(
        figure,
        caption=f"Marginal densities{labels}. {which}: {listed(names, most=OVERLAID)}.",
        alt=" ".join(told),
    )


def _places(draws) -> dict[str, tuple[float, float]]:
    """Median and spread of every parameter that varies."""
    places: dict[str, tuple[float, float]] = {}
    for part, values in zip(draws.parts(), draws.blocks(), strict=True):
        flat = values.reshape(-1, values.shape[2])
        low, middle, high = np.quantile(flat, [0.16, 0.5, 0.84], axis=0)
        for name, centre, spread in zip(draws.names[part], middle, high - low, strict=True):
            if np.isfinite(spread) and spread > 0:
                places[name] = (float(centre), float(spread))
    return places
