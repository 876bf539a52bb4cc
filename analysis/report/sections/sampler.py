"""Difficulties of the sampler: pairs of parameters with divergences marked, and the energy."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import numpy as np
import xarray as xr
from matplotlib.ticker import MaxNLocator

from onebasin.base.table import format_number
from onebasin.posteriors import schema
from onebasin.posteriors.draws import variable_of

from ...page.page import Details, FigureItem, Part, Section
from ...plots.style import ACCENT, CHAIN_COLOURS, new_panels
from ...plots.theme import dataset_of, drawn, few
from ..subject import Quantity, Subject, findings, listed

PAIRED = 3
"""Parameters that are drawn against each other."""
POINTS = 1500
"""Draws that a scatter shows at most, besides those that diverged."""


def sampler(subject: Subject) -> Section | None:
    """Show pairs with divergences, and the energy; None where there are no chains."""
    if not subject.diagnosis.has_chains:
        return None
    parts: list[Part] = list(findings(subject))
    if (paired := _pairs(subject)) is not None:
        parts.append(paired)
    if (energy := _energy(subject)) is not None:
        parts.append(energy)
    else:
        parts.append("No energy is drawn: store `energy` in the group `sample_stats`.")
    if (depth := subject.view.stat(schema.TREE_DEPTH)) is not None:
        limit = subject.view.number(schema.MAX_TREE_DEPTH)
        depths = tree_depths(subject.name, depth, np.inf if limit is None else int(limit))
        parts.append(Details("Tree depths", (depths,)))
    return Section("Sampler", parts=tuple(parts))


def tree_depths(name: str, depths: Quantity, limit: float) -> FigureItem:
    """Draw how many draws of a posterior had each tree depth; bars at the limit have another colour."""
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
        caption="NUTS tree depths. One level more costs twice the gradients; bars at the limit, "
        "where trajectories were cut short, are orange.",
        alt=f"{name}: {told}.",
    )


def _pairs(subject: Subject) -> FigureItem | None:
    from arviz_plots import plot_pair

    # Entries that go most clearly with divergences, else the worst; one of a variable before a second one.
    diverging = subject.diverging
    candidates = list(subject.worst[:40])
    scalars = [name for name in subject.worst if variable_of(name) == name][:12]
    candidates = list(dict.fromkeys([*candidates, *scalars]))
    if diverging is not None and 1 < diverging.sum() < diverging.size:
        apart = {}  # how far from even the ranks of draws that diverged are
        for name, values in subject.several(candidates).items():
            ranks = np.argsort(np.argsort(values, axis=None)).reshape(values.shape) / values.size
            apart[name] = abs(float(np.median(ranks[diverging])) - 0.5)
        candidates = sorted(apart, key=lambda name: -apart[name])
    first_of = {variable_of(name): name for name in reversed(candidates)}
    ordered = [n for n in candidates if n in first_of.values()]
    ordered += [n for n in candidates if n not in ordered]
    quantities = subject.several(ordered[:PAIRED])
    if len(quantities) < 2:
        return None
    first = next(iter(quantities.values()))
    kept = np.zeros(first.shape[1], bool)  # every k-th draw, and each that diverged up to as many
    kept[:: max(1, -(-first.size // POINTS))] = True
    if diverging is not None:
        there = np.flatnonzero(diverging.any(axis=0))
        kept[there[:: max(1, -(-len(there) // POINTS))]] = True
    shown = {name: values[:, kept] for name, values in quantities.items()}
    figure = drawn(
        plot_pair,
        few(shown, diverging=None if diverging is None else diverging[:, kept]),
        height=1.5 * len(shown) + 0.5,
        width=1.7 * len(shown) + 0.6,
        visuals={
            "scatter": {"alpha": 0.3, "size": 6},
            "divergence": {"color": CHAIN_COLOURS[5], "alpha": 0.9, "size": 14},
        },
    )
    marked = "Divergences were not recorded"
    if diverging is not None:
        several = f"{format_number(int(diverging.sum()))} draws that diverged are marked in red"
        marked = several if diverging.any() else "No draw diverged"
    return FigureItem(
        figure,
        caption=f"{listed(list(quantities))} against each other, densities on the diagonal. {marked}.",
        alt=pairs_in_words(quantities, diverging),
    )


def _energy(subject: Subject) -> FigureItem | None:
    from arviz_plots import plot_energy

    energy = subject.stat(schema.ENERGY)
    if energy is None or not np.ptp(energy) or subject.diagnosis.sampler is None:
        return None
    bfmi, limit = subject.diagnosis.sampler.bfmi, subject.diagnosis.limits.bfmi
    told = ", ".join(format_number(value, decimals=2) for value in bfmi)
    low = [k for k, value in enumerate(bfmi) if value < limit]
    bad = f"below {limit:g} in chain {', '.join(map(str, low))}"
    judged = bad if low else f"at least {limit:g} in every chain"
    figure = drawn(
        plot_energy,
        xr.DataTree.from_dict({schema.SAMPLE_STATS: dataset_of({schema.ENERGY: energy})}),
        height=2.5,
        threshold=limit,
        visuals={"legend": False},
        legend=("energy", "its changes"),
    )
    figure.axes[0].yaxis.set_major_locator(MaxNLocator(integer=True))
    return FigureItem(
        figure,
        caption="Left, E-BFMI of each chain and its limit (dashed); right, the energy and its changes "
        "from draw to draw. "
        "Where the changes spread much less than the energy itself, the tails are explored too slowly.",
        alt=f"E-BFMI by chain: {told}, {judged}.",
    )


def pairs_in_words(quantities: Mapping[str, Quantity], diverging: np.ndarray | None) -> str:
    """Say how quantities go together, and where divergences lie."""
    from scipy.stats import spearmanr

    told = []
    for first, second in combinations(quantities, 2):
        r = spearmanr(quantities[first].ravel(), quantities[second].ravel()).statistic
        told.append(
            f"{first} and {second}: rank correlation {format_number(float(r), decimals=2)}."
        )
    if diverging is None or not diverging.any():
        told.append("Divergences were not recorded." if diverging is None else "No draw diverged.")
        return " ".join(told)
    count, total = format_number(int(diverging.sum())), format_number(diverging.size)
    sides = []
    for name, values in quantities.items():
        below = float((values[diverging] < np.median(values)).mean())
        side, share = ("below", below) if below >= 0.5 else ("above", 1 - below)
        median = format_number(float(np.median(values)))
        sides.append(f"their {name} is in {100 * share:.0f} % {side} its median {median}")
    told.append(f"{count} of {total} draws diverged; {'; '.join(sides)}.")
    return " ".join(told)
