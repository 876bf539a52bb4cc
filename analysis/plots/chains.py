"""Traces and ranks of chains, and scatter plots of two parameters, of several in a matrix, and of modes.

Rank histograms follow Vehtari et al. 2021 (section 4.3). Draws are ranked over all chains, and ties get average ranks.
If chains agree, the histogram of each chain is flat. For a long trace, only the smallest and largest draws of each
short stretch are plotted, which looks the same. Scatter plots of two weights follow Pourzanjani, Jiang and Petzold
2017, Figure 1 (left).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from onebasin.base.checks import checks_arguments
from onebasin.base.errors import ArgumentError
from onebasin.base.table import format_number
from onebasin.base.text import dotted
from onebasin.posteriors import schema
from onebasin.posteriors.draws import variable_of
from onebasin.posteriors.rhat_ess import bulk_ess, mean_ranks, rhat
from onebasin.posteriors.view import Posterior, View

from ..diagnostics.result import Diagnosis
from .marginals import chain_names, density, draw_ecdfs, ecdf_less_uniform, intervals
from .posteriors import Drawn, Posteriors, Quantity, take, titled, views_of
from .style import (
    ACCENT,
    CHAIN_COLOURS,
    GRID,
    INK,
    LONGEST,
    MUTED,
    POINTS_TO_RASTERISE,
    TEXT_SIZE,
    Picture,
    add_chain_legend,
    add_legend,
    chain_colour,
    log_scale,
    new_figure,
    new_panels,
    shortened,
    style_axes,
)

POINTS_SHOWN = 400  # Points per trace, for a panel of about 400 pixels.


@checks_arguments
def plot_traces(
    posterior: Posterior,
    *,
    var_names: str | Sequence[str] | None = None,
    rows: int = 4,
    align: bool = True,
    diagnosis: Diagnosis | None = None,
) -> Picture:
    """Plot traces and rank histograms of the log density and of the worst parameters, chain by chain.

    Parameters
    ----------
    posterior : DataTree, path, or what a sampler returned
        The posterior, in any form that `diagnose` accepts.
    var_names : str or sequence of str, optional
        The variables to plot; by default the log density and the parameters with the largest R-hat.
    rows : int
        Maximum number of quantities.
    align : bool
        Whether to align draws if `diagnose` finds the posterior usable after alignment. A line above the panels says
        which draws are shown.
    diagnosis : Diagnosis, optional
        The result of `diagnose` for this posterior, if you have it, which saves time.

    Returns
    -------
    matplotlib.figure.Figure
        If chains agree, the rank histogram of each chain lies near the dashed line. Marks under a trace show divergent
        transitions.

    Raises
    ------
    ValueError
        If a variable is unknown, or a draw is not finite.

    Examples
    --------
    >>> figure = ob.plot.traces(posterior, rows=2)
    """
    drawn = take(posterior, var_names, rows, align=align, diagnosis=diagnosis, worst=True)
    lp = drawn.view.stat(schema.LP)
    quantities = dict(drawn.values)
    if var_names is None and lp is not None and np.isfinite(lp).all():
        quantities = dict(list({schema.LP: lp, **quantities}.items())[:rows])
        drawn = replace(drawn, values={n: v for n, v in quantities.items() if n in drawn.values})
    figure = draw_traces(quantities, drawn.view.diverging)
    return figure.on_paper(drawn.alt(traces_in_words(quantities)), drawn.head)


@checks_arguments
def plot_ranks(
    posterior: Posterior,
    *,
    var_names: str | Sequence[str] | None = None,
    rows: int = 4,
    align: bool = True,
    diagnosis: Diagnosis | None = None,
) -> Picture:
    """Plot the distribution of each chain's ranks among all draws, as the difference from a uniform distribution.

    Parameters
    ----------
    posterior, var_names, rows, align, diagnosis : see `traces`
        Same as in `traces`, but by default the first parameters are plotted.

    Returns
    -------
    matplotlib.figure.Figure
        One panel per parameter, with its R-hat and a grey band. If chains agree, all curves stay within the bands in
        about 95 % of runs. The bands are those of Kolmogorov and Smirnov, with the bulk ESS as the number of
        independent draws and a Bonferroni correction for the number of chains and panels.

    Raises
    ------
    ValueError
        If a variable is unknown, a draw is not finite, or there is only one chain.

    References
    ----------
    Säilynoja, Bürkner and Vehtari 2022, Statistics and Computing 32 (ECDF differences of ranks).

    Examples
    --------
    >>> figure = ob.plot.ranks(posterior, var_names="mu")
    """
    drawn = take(posterior, var_names, rows, align=align, diagnosis=diagnosis)
    quantities = drawn.values
    if len(next(iter(quantities.values()))) < 2:
        raise ArgumentError(
            "`posterior` has only one chain, but a rank plot needs at least two. Use `ob.plot.traces`, or sample "
            "with more chains."
        )
    rhats = rhat(np.stack(list(quantities.values()))).tolist()
    panels, x = {}, np.linspace(0, 1, 101)
    for (name, values), found in zip(quantities.items(), rhats, strict=True):
        ranks = mean_ranks(values.ravel()).reshape(values.shape) / values.size
        title = f"{name}, R-hat {format_number(found, decimals=3)}"
        panels[title] = [(x, ecdf_less_uniform(chain, x)) for chain in ranks]
    names = chain_names(quantities)
    figure = draw_ecdfs(panels, names, rank_bands(quantities), x_label="rank")
    told = ranks_in_words(quantities, dict(zip(quantities, rhats, strict=True)))
    return figure.on_paper(drawn.alt(told), drawn.head)


def rank_bands(quantities: Mapping[str, Quantity], level: float = 0.95) -> list[float]:
    """Return half the width of each quantity's band, or infinity if its ESS is unknown.

    The ECDF of a chain with n independent draws, minus that of all m chains, behaves like a Brownian bridge with
    variance (1 - 1/m) / n. Its supremum exceeds c with a probability of about 2 exp(-2 c^2 n) (Kolmogorov).
    """
    values = np.stack(list(quantities.values()))
    chains, draws = values.shape[1:]
    each = (1 - level) / (chains * len(values))
    with np.errstate(invalid="ignore", divide="ignore"):
        independent = np.minimum(bulk_ess(values) / chains, draws)
        widths = np.sqrt(-np.log(each / 2) / 2 * (1 - 1 / chains) / independent)
    return np.nan_to_num(widths, nan=np.inf).tolist()


def rank_shares(
    draws: Float[np.ndarray, "chain draw"], *, bins: int = 20
) -> Float[np.ndarray, "chain bin"]:
    """Rank the draws of one quantity over all chains. Return each chain's rank histogram, relative to a flat one."""
    ranks = mean_ranks(draws.ravel()).reshape(draws.shape)
    edges = np.linspace(0.5, draws.size + 0.5, bins + 1)
    counts = np.stack([np.histogram(chain, bins=edges)[0] for chain in ranks])
    return counts / (draws.shape[1] / bins)


def draw_traces(
    quantities: Mapping[str, Quantity], diverging: Bool[np.ndarray, "chain draw"] | None = None
) -> Picture:
    """Plot traces (left) and rank histograms (right), one row per quantity, with divergent draws marked."""
    if not quantities:
        raise ArgumentError(
            "`quantities` is empty. Give a mapping from names to draws, with at least one entry."
        )
    rows = len(quantities)
    figure = new_figure(8.0, 1.55 * rows + 0.75)
    grid = figure.subplots(rows, 2, squeeze=False, width_ratios=(1.9, 1.0))
    for row, (name, draws) in enumerate(quantities.items()):
        last = row == rows - 1
        trace, ranks = grid[row]
        rank_share = rank_shares(draws)
        style_axes(trace, y_label=shortened(name, LONGEST), x_label="draw" if last else "")
        style_axes(ranks, y_label="density", x_label="rank among all draws" if last else "")
        ranks.axhline(1.0, color=MUTED, linewidth=0.8, linestyle=(0, (4, 3)))
        edges = np.linspace(0, draws.size, rank_share.shape[1] + 1)
        for chain, (values, heights) in enumerate(zip(draws, rank_share, strict=True)):
            colour, shown = chain_colour(chain), envelope(values)
            trace.plot(shown + 1, values[shown], color=colour, linewidth=0.6, alpha=0.75)
            ranks.stairs(heights, edges, baseline=None, color=colour, linewidth=1.2)
        if diverging is not None and diverging.any():
            places = np.flatnonzero(diverging.any(axis=0)) + 1
            trace.plot(
                places,
                np.zeros(len(places)),
                "|",
                color=INK,
                markersize=7,
                transform=trace.get_xaxis_transform(),
                clip_on=False,
            )
        trace.set_xlim(1, max(draws.shape[1], 2))
        trace.locator_params(axis="y", nbins=4)
        ranks.set_xlim(0, draws.size)
        ranks.set_ylim(0, max(2.0, 1.08 * float(rank_share.max())))
        ranks.locator_params(nbins=3)
        for axes in grid[row]:
            axes.tick_params(labelbottom=last)
    add_chain_legend(figure, max(len(draws) for draws in quantities.values()))
    return figure


def envelope(
    values: Float[np.ndarray, " draw"], *, points: int = POINTS_SHOWN
) -> Int[np.ndarray, " point"]:
    """Return, in order, the positions of the smallest and largest draws of each short stretch.

    Return all positions if there are at most `points` draws.
    """
    if values.size <= points:
        return np.arange(values.size)
    edges = np.linspace(0, values.size, points // 2 + 1).astype(np.int64)
    places = [
        start + extreme(values[start:stop])
        for start, stop in pairwise(edges)
        for extreme in (np.argmin, np.argmax)
    ]
    return np.unique(np.asarray(places, dtype=np.int64))


def ranks_in_words(quantities: Mapping[str, Quantity], rhats: Mapping[str, float]) -> str:
    """Describe, for each quantity, the chain whose ranks are furthest from uniform."""
    told = []
    for name, values in quantities.items():
        order = np.argsort(np.argsort(values, axis=None)).reshape(values.shape) / values.size
        mean, rhat = order.mean(axis=1), rhats.get(name, np.nan)
        chain = int(np.abs(mean - 0.5).argmax())
        known = "" if np.isnan(rhat) else f" (R-hat {format_number(rhat, decimals=3)})"
        side = "high" if mean[chain] > 0.5 else "low"
        place = f"at rank {100 * mean[chain]:.0f} % on average, where 50 % is expected"
        if len(values) < 2:
            told.append(f"{name}: only one chain, whose ranks are always uniform.")
        elif abs(mean[chain] - 0.5) < 0.05:
            told.append(f"{name}: no chain lies higher or lower than the others{known}.")
        else:
            told.append(f"{name}: chain {chain} lies {side}, {place}{known}.")
    return " ".join(told)


def traces_in_words(quantities: Mapping[str, Quantity], group: str = "chain") -> str:
    """Describe where the draws of each quantity lie, by chain if chains differ."""
    sentences = []
    for name, values in quantities.items():
        low, middle, high = np.quantile(values, [0.05, 0.5, 0.95], axis=1)
        if len(values) > 1 and np.ptp(middle) >= 0.25 * np.median(high - low):
            medians = ", ".join(map(format_number, middle.tolist()))
            sentences.append(f"{name}: medians by {group} {medians}.")
        else:
            ends = f"{format_number(low.min())} and {format_number(high.max())}"
            centre = format_number(float(np.median(values)))
            sentences.append(f"{name}: around {centre}, between {ends} in 90 % of draws.")
    return " ".join(sentences)


@checks_arguments
def plot_pair(
    posteriors: Posteriors,
    *entries: str,
    share_axes: bool = True,
    align: bool = True,
    diagnosis: Diagnosis | None = None,
) -> Picture:
    """Plot scalar parameters against each other: two parameters of one or more posteriors, or a matrix of more.

    Parameters
    ----------
    posteriors : DataTree, path, what a sampler returned, or a mapping of str to these
        A posterior, or several by name. For more than two parameters, give only one posterior.
    *entries : str
        Scalar parameters, such as ``W1[0,0]``: two for the horizontal and vertical axes, or at least three for a
        matrix. By default a matrix shows the four worst parameters by R-hat and ESS.
    share_axes : bool
        Whether all panels of two parameters have the same axis ranges.
    align, diagnosis : see `forest`
        Same as in `forest`.

    Returns
    -------
    matplotlib.figure.Figure
        One panel per posterior, or a matrix with densities on the diagonal. Crosses mark divergences. A matrix uses
        logarithmic axes for positive parameters that span a factor of more than 20.

    Raises
    ------
    ValueError
        If a posterior lacks one of the parameters, or if only one parameter is given.

    Examples
    --------
    >>> figure = ob.plot.pair(posterior, "mu[0]", "mu[1]")
    >>> matrix = ob.plot.pair(posterior)
    """
    if len(entries) == 1:
        raise ArgumentError(
            "`entries` names only one parameter. Name at least two parameters, or omit `entries`."
        )
    views = views_of(posteriors)
    if len(entries) == 2:
        return _two(views, *entries, share_axes=share_axes, align=align, diagnosis=diagnosis)
    if len(views) > 1:
        raise ArgumentError(
            "`posteriors` contains several posteriors, but a matrix shows only one. Give one posterior, or name two "
            "parameters."
        )
    (view,) = views.values()
    if entries:
        names = [_entry(view, name) for name in entries]
        drawn = _scalars(view, names, align=align, diagnosis=diagnosis)
    else:
        drawn = take(view, None, MATRIX, align=align, diagnosis=diagnosis, worst=True)
    told = pairs_in_words(drawn.values, view.diverging)
    figure = draw_pair_grid(drawn.values, view.diverging)
    return figure.on_paper(drawn.alt(told), drawn.head)


COLOURED = len(CHAIN_COLOURS)
"""Number of modes with distinct colours. Modes of lower weight are grey."""
MATRIX = 4
"""Default number of parameters in a scatter matrix."""


def _scalars(view: View, names: Sequence[str], **options: Any) -> Drawn:
    """Return the draws of the given scalar parameters, in the given order."""
    variables = list(dict.fromkeys(variable_of(name, view.variables) for name in names))
    return take(view, variables, len(names), entries=names, **options)


def _two(
    views: Mapping[str, View],
    first: str,
    second: str,
    *,
    share_axes: bool,
    align: bool,
    diagnosis: Diagnosis | None,
) -> Picture:
    """Plot two parameters against each other, one panel per posterior."""
    pairs, told, taken = {}, [], []
    for name, view in views.items():
        names = [_entry(view, entry) for entry in (first, second)]
        drawn = _scalars(view, names, align=align, diagnosis=diagnosis)
        taken.append(drawn)
        one, other = (drawn.values[entry] for entry in names)
        pairs[name] = Pair(one, other, view.diverging)
        both = {first: one, second: other}
        words = f"{intervals(both)} {pairs_in_words(both, view.diverging)}"
        told.append(f"{name}: {words}" if len(views) > 1 else words)
    figure = draw_pairs(titled(pairs), x_label=first, y_label=second, share_axes=share_axes)
    head = next((drawn for drawn in taken if drawn.head), taken[0])
    return figure.on_paper(head.alt(" ".join(told)), head.head)


def _entry(view: View, entry: str) -> str:
    """Return the name of a scalar parameter as it is written in the posterior."""
    spelt = variable_of(entry, view.variables)
    variable = dotted(spelt)
    entry = variable + entry[len(spelt) :]  # Names of entries may contain slashes.
    there = view.draws(variable) if variable in view.variables else None
    if there is None or entry not in there.names:
        known = ", ".join(there.names[:6] if there else view.variables[:6])
        raise ArgumentError(
            f"`{view.argument}` has no scalar parameter {entry!r}. Choose a parameter such as {known}."
        )
    return entry


def pairs_in_words(quantities: Mapping[str, Quantity], diverging: np.ndarray | None) -> str:
    """Describe the correlations between quantities and where divergences occur."""
    ranks = {name: mean_ranks(values.ravel()) for name, values in quantities.items()}
    told = []
    for first, second in combinations(quantities, 2):
        r = float(np.corrcoef(ranks[first], ranks[second])[0, 1])
        told.append(f"{first} and {second}: rank correlation {format_number(r, decimals=2)}.")
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


@dataclass(frozen=True, eq=False)
class Pair:
    """Draws of two quantities, with a mask of divergent draws."""

    first: Float[np.ndarray, "chain draw"]
    second: Float[np.ndarray, "chain draw"]
    diverging: Shaped[np.ndarray, "chain draw"] | None = None


def draw_pairs(
    pairs: Mapping[str, Pair],
    *,
    x_label: str = "W1[0,0]",
    y_label: str = "W2[0,0]",
    share_axes: bool = True,
    columns: int = 3,
) -> Picture:
    """Plot two quantities against each other, one panel per posterior."""
    figure, panels = new_panels(
        pairs,
        columns=columns,
        panel_size=(2.75, 2.6) if len(pairs) > 1 else (4.6, 3.6),
        margin=(0.4, 0.5),
        x_label=x_label,
        y_label=y_label,
        share_axes=share_axes,
    )
    for axes, pair in zip(panels, pairs.values(), strict=True):
        draw_points(axes, list(zip(pair.first, pair.second, strict=True)), chain_colour)
        if pair.diverging is not None and (bad := pair.diverging.astype(bool)).any():
            axes.plot(
                pair.first[bad], pair.second[bad], "x", color=INK, markersize=5, label="divergent"
            )
            axes.legend(frameon=False, fontsize=TEXT_SIZE, labelcolor=INK)
    add_chain_legend(figure, max(pair.first.shape[0] for pair in pairs.values()))
    return figure


def draw_points(
    axes: Axes,
    groups: Sequence[tuple[Float[np.ndarray, " _"], Float[np.ndarray, " _"]]],
    colour: Callable[[int], str],
) -> None:
    """Plot groups of points in different colours. If there are many points, make them small and draw an image."""
    total = sum(len(first) for first, _ in groups)
    for number, (first, second) in enumerate(groups):
        axes.scatter(
            first,
            second,
            s=9.0 if total <= 1000 else 4.0,
            color=colour(number),
            alpha=0.35,
            linewidths=0,
            rasterized=total > POINTS_TO_RASTERISE,
        )
    axes.grid(axis="x", visible=True, color=GRID, linewidth=0.6)
    axes.locator_params(nbins=5)


def draw_pair_grid(
    quantities: Mapping[str, Quantity], diverging: Bool[np.ndarray, "chain draw"] | None
) -> Picture:
    """Plot scatter plots below the diagonal and densities on it, with divergent draws marked."""
    count, names = len(quantities), [shortened(name, LONGEST) for name in quantities]
    figure = new_figure(1.75 * count + 0.6, 1.5 * count + 0.4)
    grid = figure.subplots(count, count, squeeze=False)
    is_log = [is_wide(values) for values in quantities.values()]
    bad = np.zeros((1, 1), bool) if diverging is None else diverging
    for row, values in enumerate(quantities.values()):
        for column, others in enumerate(quantities.values()):
            axes = style_axes(
                grid[row, column],
                x_label=names[column] if row == count - 1 else "",
                y_label=names[row] if column == 0 < row else "",
            )
            axes.set_visible(column <= row)
            axes.tick_params(labelbottom=row == count - 1, labelleft=column == 0 < row)
            if column == row:
                x, y = density(np.log(values) if is_log[row] else values)
                axes.plot(np.exp(x) if is_log[row] else x, y, color=ACCENT, linewidth=1.2)
                axes.set_ylim(bottom=0)
                axes.tick_params(left=False)
            elif column < row:
                draw_points(axes, [(others.ravel(), values.ravel())], chain_colour)
                if bad.any():
                    axes.plot(others[bad], values[bad], "x", color=INK, markersize=4)
            axes.locator_params(nbins=3)
            if is_log[column]:
                log_scale(axes, "x", labels=3)
            if column < row and is_log[row]:
                log_scale(axes, "y")
    return figure


FACTOR = 20.0
"""Ratio of the 99 % to the 1 % quantile above which a positive quantity gets a logarithmic axis."""


def is_wide(values: Quantity) -> bool:
    """Check whether a quantity is positive and spans a range that needs a logarithmic axis."""
    low, high = np.quantile(values, [0.01, 0.99])
    return bool(values.min() > 0 and high > FACTOR * low)


def draw_modes(
    points: Mapping[str, Float[np.ndarray, "draw 2"]], *, x_label: str, y_label: str
) -> Picture:
    """Plot two quantities with one colour per mode, the heaviest mode first."""
    figure = new_figure(4.6, 3.9)
    axes = style_axes(figure.subplots(), x_label=x_label, y_label=y_label)
    draw_points(axes, [(drawn[:, 0], drawn[:, 1]) for drawn in points.values()], _colour)
    handles = [
        Line2D([], [], color=_colour(number), marker="o", markersize=5, linestyle="none")
        for number in range(min(len(points), COLOURED))
    ]
    add_legend(figure, handles, list(points)[:COLOURED], columns=2)
    return figure


def _colour(number: int) -> str:
    return chain_colour(number) if number < COLOURED else GRID
