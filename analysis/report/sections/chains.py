"""The course of the chains: traces, ranks, growth of the effective sample size and autocorrelation of the worst."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from onebasin.base.table import format_number
from onebasin.posteriors import schema
from onebasin.posteriors.rhat_ess import bulk_ess

from ...page.page import FigureItem, Part, Section
from ...plots.marginals import ranks_in_words
from ...plots.theme import drawn, few
from ...plots.traces import traces_in_words
from ..subject import Quantity, Subject, listed, thinned

WORST = 3
"""Parameters that are drawn, besides the log density."""
TRACED = 1000
RANKED = 2000
"""Draws of a chain that a trace and a picture of ranks show at most; ranks take a time quadratic in them."""
LAGS = 100
MOST_CHAINS = 8
"""Chains beyond which only so many are drawn."""


def chains(subject: Subject) -> Section | None:
    """Show how the chains of the worst parameters moved; None where there are no chains."""
    if not subject.diagnosis.has_chains:
        return None
    quantities = _worst(subject)
    if not quantities:
        return None
    from arviz_plots import plot_autocorr

    parts: list[Part] = [_which(subject, quantities), _traced(quantities)]
    first = next(iter(quantities.values()))
    if len(first) > 1:
        parts.append(_ranks(subject, quantities))
    parts.append(_growth(subject, quantities))
    lags = min(LAGS, first.shape[1] - 1)
    parts.append(
        FigureItem(
            drawn(plot_autocorr, few(quantities), height=2.3, chains=len(first), max_lag=lags),
            caption="Autocorrelation of each chain by lag; the sooner it falls to zero, the more a draw is worth.",
            alt=autocorrelation_in_words(quantities, most=lags),
        )
    )
    return Section("Chains", parts=tuple(parts))


def traces(subject: Subject) -> FigureItem | None:
    """Show densities and traces of the worst parameters; None where there are no chains."""
    quantities = _worst(subject) if subject.diagnosis.has_chains else {}
    return _traced(quantities) if quantities else None


def _worst(subject: Subject) -> dict[str, Quantity]:
    quantities = subject.several(subject.worst[:WORST])
    lp = subject.stat(schema.LP)
    if lp is not None and np.ptp(lp) > 0 and schema.LP not in quantities:
        quantities = {schema.LP: lp, **quantities}
    return {name: values[:MOST_CHAINS] for name, values in quantities.items()}


def _which(subject: Subject, quantities: Mapping[str, Quantity]) -> str:
    names = [name for name in quantities if name != schema.LP]
    of = format_number(len(subject.worst))
    which = f"Shown are {listed(names)}, the worst of {of} parameters by R-hat and then by bulk ESS"
    if len(names) == len(subject.worst):
        which = f"Shown are all {of} parameters" if len(names) > 1 else f"Shown is {listed(names)}"
    density = ", and the log density `lp`" if schema.LP in quantities else ""
    moved = ", aligned where the symmetry moves them"
    aligned = moved if subject.diagnosis.is_shown_aligned else ""
    more = subject.view.num_chains - MOST_CHAINS
    some = f" Of {subject.view.num_chains} chains the first {MOST_CHAINS} are drawn."
    return f"{which}{aligned}{density}.{some * (more > 0)}"


def draw_chains(quantities: Mapping[str, Quantity], *, title: str = "") -> Figure:
    """Draw the densities and traces of quantities, chain by chain."""
    from arviz_plots import plot_trace_dist

    return drawn(
        plot_trace_dist,
        few({name: thinned(values, TRACED) for name, values in quantities.items()}),
        height=1.35 * len(quantities) + 0.5,
        chains=len(next(iter(quantities.values()))),
        title=title,
        compact=False,
        combined=False,
    )


def _traced(quantities: Mapping[str, Quantity]) -> FigureItem:
    first = next(iter(quantities.values()))
    full, kept = first.shape[1], thinned(first, TRACED).shape[1]
    some = f" Every {round(full / kept)}th draw is drawn." if kept < full else ""
    return FigureItem(
        draw_chains(quantities),
        caption=f"Densities (left) and traces (right), chain by chain; where chains agree they cover each other.{some}",
        alt=traces_in_words(quantities),
    )


def _ranks(subject: Subject, quantities: dict[str, Quantity]) -> FigureItem:
    from arviz_plots import plot_rank

    rhats = {name: float(subject.diagnosis.shown["rhat"].get(name, np.nan)) for name in quantities}
    figure = drawn(
        plot_rank,
        few({name: thinned(values, RANKED) for name, values in quantities.items()}),
        height=2.3,
        chains=len(next(iter(quantities.values()))),
        hidden=("suspicious_points",),
    )
    for axes in figure.axes:
        for p_value in axes.texts:  # of a test that long chains fail for nothing
            p_value.set_visible(False)
    return FigureItem(
        figure,
        caption="Ranks of each chain's draws among all draws, as the difference of their distribution from "
        "an even one. Chains that agree stay near zero.",
        alt=ranks_in_words(quantities, rhats),
    )


def _growth(subject: Subject, quantities: dict[str, Quantity]) -> FigureItem:
    from arviz_plots import plot_ess_evolution

    limit, shown = subject.diagnosis.min_ess, subject.diagnosis.shown
    figure = drawn(
        plot_ess_evolution, few(quantities), height=2.4, min_ess=limit, legend=("bulk", "tail")
    )
    told = []
    for name, values in quantities.items():
        of = f"of {format_number(values.size)} draws"
        if name in shown.index:
            bulk, tail = (float(shown[column][name]) for column in ("ess_bulk", "ess_tail"))
            side = "above" if min(bulk, tail) >= limit else "below"
            told.append(
                f"{name}: bulk ESS grows to {format_number(bulk, decimals=0)}, tail ESS to "
                f"{format_number(tail, decimals=0)} {of}, {side} the limit."
            )
        else:
            bulk = float(bulk_ess(values[None])[0])
            told.append(f"{name}: bulk ESS grows to {format_number(bulk, decimals=0)} {of}.")
    return FigureItem(
        figure,
        caption="Effective sample size, bulk and tail, of the first draws, more of them further right. "
        f"It should grow in a straight line, above the limit of {limit:g} (dashed).",
        alt=" ".join(told),
    )


def autocorrelation_in_words(quantities: Mapping[str, Quantity], *, most: int = LAGS) -> str:
    """Say of every quantity at which lag its autocorrelation has fallen below a tenth."""
    from arviz_stats.base import array_stats  # here: it takes two seconds to import

    told, limit = [], 0.1
    for name, values in quantities.items():
        curves = array_stats.autocorr(values)[:, : most + 1]
        mean = np.nan_to_num(curves, nan=1.0).mean(axis=0)  # of a chain that never moves
        below = np.flatnonzero(mean < limit)
        if len(below):
            told.append(f"{name}: autocorrelation below {limit:g} from lag {below[0]} on.")
        else:
            last = format_number(float(mean[-1]), digits=2)
            told.append(f"{name}: autocorrelation still {last} at lag {len(mean) - 1}.")
    return " ".join(told)
