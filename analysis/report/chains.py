"""Report sections on chains, the sampler and fits: traces, ranks, autocorrelation, ESS, pairs, energy and ELBO."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.ticker import MaxNLocator

from onebasin.base.table import format_number
from onebasin.posteriors import schema
from onebasin.posteriors.draws import variable_of
from onebasin.posteriors.view import Posterior, as_view

from ..page import Details, FigureItem, Note, Part, Section
from ..plots.chains import (
    draw_pair_grid,
    draw_traces,
    is_wide,
    pairs_in_words,
    ranks_in_words,
    traces_in_words,
)
from ..plots.convergence import (
    autocorrelation_in_words,
    draw_autocorrelation,
    draw_energy,
    draw_growth,
    energy_in_words,
    ess_growth,
    growth_in_words,
)
from ..plots.posteriors import Quantity, Subject, distinct, listed
from ..plots.results import draw_elbo, draw_loss, elbo_in_words
from ..plots.style import ACCENT, CHAIN_COLOURS, new_panels
from ..summaries.variational import elbo_trace

WORST = 3
"""Number of parameters to plot, in addition to the log density."""
LAGS = 100
MOST_CHAINS = 8
"""Largest number of chains to plot."""
CANDIDATES = 40
"""Number of parameters to consider, before skipping entries that mirror an earlier one."""
PAIRED = 3
"""Number of parameters in the matrix of pairs."""
POINTS = 1500
"""Largest number of draws in a scatter plot, not counting divergent draws."""


def chains(subject: Subject) -> Section | None:
    """Show traces, ESS and autocorrelation of the worst parameters. Return None if there are no chains."""
    quantities = _worst(subject) if subject.diagnosis.has_chains else {}
    if not quantities:
        return None
    lags = min(LAGS, next(iter(quantities.values())).shape[1] - 1)
    correlated = FigureItem(
        draw_autocorrelation(quantities, lags),
        caption="Autocorrelation of each chain. The sooner it falls to zero, the more information each draw adds.",
        alt=autocorrelation_in_words(quantities, most=lags),
    )
    parts = (part(subject, quantities) for part in (_which, _traced, _growth))
    return Section("Chains", parts=(*parts, correlated))


def traces(subject: Subject) -> FigureItem | None:
    """Show traces and ranks of the worst parameters. Return None if there are no chains."""
    quantities = _worst(subject) if subject.diagnosis.has_chains else {}
    return _traced(subject, quantities) if quantities else None


def _worst(subject: Subject) -> dict[str, Quantity]:
    quantities = distinct(subject.varying(subject.worst[:CANDIDATES]), WORST)
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
    some = f" Only the first {MOST_CHAINS} of {subject.view.num_chains} chains are plotted."
    return f"{which}{aligned}{density}.{some * (more > 0)}"


def _traced(subject: Subject, quantities: Mapping[str, Quantity]) -> FigureItem:
    rhats = {name: float(subject.diagnosis.shown["rhat"].get(name, np.nan)) for name in quantities}
    diverging = subject.view.diverging
    marked = diverging is not None and diverging[:MOST_CHAINS].any()
    marks = " Marks under a trace show divergent transitions." if marked else ""
    return FigureItem(
        draw_traces(quantities, None if diverging is None else diverging[:MOST_CHAINS]),
        caption="Left: the trace of each chain. Right: the ranks of each chain's draws among all draws. If chains "
        f"agree, they overlap on the left and stay near the dashed line on the right.{marks}",
        alt=f"{traces_in_words(quantities)} {ranks_in_words(quantities, rhats)}",
    )


def _growth(subject: Subject, quantities: dict[str, Quantity]) -> FigureItem:
    limit, growth = subject.diagnosis.min_ess, ess_growth(quantities)
    return FigureItem(
        draw_growth(growth, limit),
        caption="Bulk and tail ESS as the number of draws grows. Both should rise in a straight line and end above the "
        f"limit of {limit:g} (dashed).",
        alt=growth_in_words(growth, limit),
    )


def sampler(subject: Subject) -> Section | None:
    """Show pairs with divergences, and the energy. Return None if there are no chains."""
    if not subject.diagnosis.has_chains:
        return None
    parts: list[Part] = list(findings(subject))
    if (paired := _pairs(subject)) is not None:
        parts.append(paired)
    if (energy := _energy(subject)) is not None:
        parts.append(energy)
    else:
        parts.append("The energy is not shown, because `sample_stats` has no variable `energy`.")
    if (depth := subject.view.stat(schema.TREE_DEPTH)) is not None:
        limit = subject.view.number(schema.MAX_TREE_DEPTH)
        depths = tree_depths(subject.name, depth, np.inf if limit is None else int(limit))
        parts.append(Details("Tree depths", (depths,)))
    return Section("Sampler", parts=tuple(parts))


def tree_depths(name: str, depths: Quantity, limit: float) -> FigureItem:
    """Plot the share of draws at each tree depth, with bars at the limit in orange."""
    values, counts = np.unique(depths.astype(np.int64), return_counts=True)
    shares = counts / counts.sum()
    figure, (axes,) = new_panels(
        [name],
        columns=1,
        panel_size=(2.2, 1.9),
        margin=(0.4, 0.4),
        x_label="tree depth",
        y_label="share of draws",
    )
    colours = [CHAIN_COLOURS[5] if value >= limit else ACCENT for value in values]
    axes.bar(values, shares, width=0.8, color=colours)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    told = ", ".join(f"{100 * s:.0f} % at depth {d}" for d, s in zip(values, shares, strict=True))
    return FigureItem(
        figure,
        caption="NUTS tree depths. Each level doubles the number of gradients. Orange bars are at the limit, where "
        "trajectories were cut short.",
        alt=f"{name}: {told}.",
    )


def _pairs(subject: Subject) -> FigureItem | None:
    # Prefer entries that differ most at divergent draws, or otherwise the worst entries, from different variables.
    diverging = subject.view.diverging
    candidates = list(subject.worst[:CANDIDATES])
    scalars = [name for name in subject.worst if variable_of(name) == name][:12]
    candidates = list(dict.fromkeys([*candidates, *scalars]))
    if diverging is not None and 1 < diverging.sum() < diverging.size:
        apart = {}  # Deviation of the ranks of divergent draws from 1/2.
        for name, values in subject.several(candidates).items():
            ranks = np.argsort(np.argsort(values, axis=None)).reshape(values.shape) / values.size
            apart[name] = abs(float(np.median(ranks[diverging])) - 0.5)
        candidates = sorted(apart, key=lambda name: -apart[name])
    first_of = {variable_of(name): name for name in reversed(candidates)}
    ordered = [n for n in candidates if n in first_of.values()]
    ordered += [n for n in candidates if n not in ordered]
    quantities = distinct(subject.varying(ordered[:CANDIDATES]), PAIRED)
    if len(quantities) < 2:
        return None
    first = next(iter(quantities.values()))
    kept = np.zeros(first.shape[1], bool)  # Every k-th draw, and about as many divergent ones.
    kept[:: max(1, -(-first.size // POINTS))] = True
    if diverging is not None:
        there = np.flatnonzero(diverging.any(axis=0))
        kept[there[:: max(1, -(-len(there) // POINTS))]] = True
    shown = {name: values[:, kept] for name, values in quantities.items()}
    figure = draw_pair_grid(shown, None if diverging is None else diverging[:, kept])
    logs = [name for name, values in quantities.items() if is_wide(values)]
    scaled = f"; the scale of {listed(logs)} is logarithmic" if logs else ""
    marked = "Divergences were not recorded"
    if diverging is not None:
        several = f"{format_number(int(diverging.sum()))} divergent draws are marked by crosses"
        marked = several if diverging.any() else "No draw diverged"
    return FigureItem(
        figure,
        caption=f"{listed(list(quantities))} against each other, densities on the diagonal{scaled}. {marked}.",
        alt=pairs_in_words(quantities, diverging),
    )


def _energy(subject: Subject) -> FigureItem | None:
    energy = subject.stat(schema.ENERGY)
    if energy is None or not np.ptp(energy) or subject.diagnosis.sampler is None:
        return None
    judged = energy_in_words(subject.diagnosis.sampler.bfmi, subject.diagnosis.limits.bfmi)
    return FigureItem(
        draw_energy(energy),
        caption="The energy, and its change from draw to draw. If the changes vary much less than "
        f"the energy, the sampler explores the tails too slowly. {judged}",
        alt=judged,
    )


def fits(subject: Subject) -> Section | None:
    """Show the ELBO or training loss of a fit. Return None if there is nothing to show."""
    items = elbo_figure({subject.name: subject.view}), _loss(subject)
    figures = tuple(item for item in items if item is not None)
    notes = () if subject.diagnosis.has_chains else findings(subject)
    return Section("Optimisation", notes=notes, figures=figures) if figures or notes else None


def elbo_figure(posteriors: Mapping[str, Posterior]) -> FigureItem | None:
    """Plot the ELBO of all variational fits that recorded it."""
    recorded = {name: elbo_trace(as_view(posterior)) for name, posterior in posteriors.items()}
    traces = {n: trace for n, trace in recorded.items() if trace is not None and trace[1].size}
    if not traces:
        return None
    return FigureItem(
        draw_elbo(traces),
        caption="ELBO during optimisation. Larger is better. Compare only fits of the same model.",
        alt=" ".join(elbo_in_words(name, trace) for name, trace in traces.items()),
    )


def _loss(subject: Subject) -> FigureItem | None:
    training = subject.view.group(schema.TRAINING)
    if training is None or "loss" not in training:
        return None
    loss = np.asarray(training["loss"].transpose(..., "epoch").values, dtype=np.float64)
    loss = loss.reshape(-1, loss.shape[-1])
    if not loss.size or not np.isfinite(loss).any():
        return None
    ends = loss[:, -1]
    members = format_number(len(loss))
    low, high = (format_number(float(value)) for value in (np.nanmin(ends), np.nanmax(ends)))
    return FigureItem(
        draw_loss(loss),
        caption=f"Training loss of {members} members, in nats per observation or as used in training. Smaller is "
        "better.",
        alt=f"The losses of {members} members start between {format_number(float(np.nanmin(loss[:, 0])))} and "
        f"{format_number(float(np.nanmax(loss[:, 0])))} and end between {low} and {high} after "
        f"{format_number(loss.shape[1])} epochs.",
    )


def findings(subject: Subject) -> tuple[Note, ...]:
    """Return the remarks that the answer card does not show."""
    return tuple(
        Note(sentence, reason.flag)
        for reason in subject.verdict.own_remarks
        if reason.outcome in ("warned", "failed")
        for sentence in reason.sentences
    )
