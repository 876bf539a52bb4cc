"""Marginal distributions and pairs: intervals, densities, prior and posterior, and quantities against each other.

Parameters come in the model's order. Source of the pairs: Pourzanjani, Jiang and Petzold 2017, Figure 1 (left): W1[1,1]
against W2[1], counted from 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float, Shaped
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from onebasin.base.checks import check_class, check_count, checks_arguments
from onebasin.base.errors import ArgumentError
from onebasin.base.table import format_number
from onebasin.base.text import dotted
from onebasin.posteriors import schema
from onebasin.posteriors.draws import choose_variables, lay_out_columns, variable_of
from onebasin.posteriors.rhat_ess import mean_ranks
from onebasin.posteriors.view import Posterior, View, as_view

from .posteriors import Posteriors, titled, views_of
from .style import (
    ACCENT,
    CHAIN_COLOURS,
    GRID,
    INK,
    POINTS_TO_RASTERISE,
    TEXT_SIZE,
    Picture,
    add_chain_legend,
    add_legend,
    chain_colour,
    literal,
    new_figure,
    new_panels,
    shortened,
    style_axes,
)

Quantity = Float[np.ndarray, "chain draw"]
Curve = tuple[np.ndarray, np.ndarray]
"""Places, and what is drawn over them."""
WIDTH = 7.6
TINY = 1e-290
"""Range of numbers below which densities have no unit."""
LONGEST, LONGEST_IN_FOREST = 26, 44
"""Characters of a name over a panel, and in a row."""
COLOURED = len(CHAIN_COLOURS)
"""Modes that have a colour of their own; lighter ones are grey."""


def density(values: np.ndarray, *, bins: int = 256) -> Curve:
    """Estimate a density: a histogram of fine bins, smoothed by a normal one.

    Its width follows from the shortest interval with a fifth of the draws, which of modes apart lies in one. Numbers
    that are all the same have a spike.
    """
    from scipy.ndimage import gaussian_filter1d

    values = np.sort(values, axis=None).astype(np.float64)
    middle, scale = values[len(values) // 2], values[-1] - values[0]
    if not scale:
        return np.full(2, middle), np.array([0.0, 1.0])
    units = (values - middle) / scale  # of any size: squares of 1e200 are no doubles
    fifth = max(len(units) // 5, 1)
    spread = float(np.min(units[fifth:] - units[:-fifth])) / 0.507  # of a normal one, its sd
    width = 0.85 * (spread or float(units.std())) * len(units) ** -0.2
    low, high = units[0] - 3 * width, units[-1] + 3 * width
    counts, edges = np.histogram(units, bins=bins, range=(low, high))
    step = (high - low) / bins
    smooth = gaussian_filter1d(counts / (len(units) * step), width / step, mode="constant")
    smooth = smooth / scale if scale > TINY else smooth  # or it would be infinite
    return middle + scale * (edges[1:] - step / 2), smooth


def draw_curves(
    panels: Mapping[str, Sequence[Curve]],
    names: Sequence[str],
    *,
    height: float = 1.9,
    columns: int = 4,
    x_label: str = "",
    y_label: str = "",
    limit: float | None = None,
) -> Picture:
    """Draw a panel a quantity, with a curve for each of the names, of one colour in all panels.

    Without a label the vertical axis has no numbers and begins at zero, as that of densities does. `limit` is dashed.
    """
    columns = min(len(panels), columns)
    figure, grid = new_panels(
        [shortened(name, LONGEST) for name in panels],
        columns=columns,
        panel_size=(WIDTH / columns, height),
        margin=(0.0, 0.3),
        x_label=x_label,
        y_label=y_label,
        share_axes=False,
    )
    for place, (axes, curves) in enumerate(zip(grid, panels.values(), strict=True)):
        for number, (x, y) in enumerate(curves):
            axes.plot(x, y, color=chain_colour(number), linewidth=1.2)
        if limit is not None:
            axes.axhline(limit, color=INK, linewidth=0.8, linestyle=(0, (4, 3)))
        axes.locator_params(nbins=4)
        if not y_label:
            axes.set_ylim(bottom=0)
            axes.tick_params(left=False, labelleft=False)
        elif place % columns:
            axes.set_ylabel("")
    handles = [Line2D([], [], color=chain_colour(number)) for number in range(len(names))]
    if len(names) > 1:
        add_legend(figure, handles, names, columns=8)
    return figure


def chain_names(quantities: Mapping[str, Quantity]) -> list[str]:
    """Names of chains in a legend."""
    return [f"chain {chain}" for chain in range(len(next(iter(quantities.values()))))]


def draw_densities(quantities: Mapping[str, Quantity]) -> Picture:
    """Draw a panel a quantity, with the density of every chain."""
    panels = {name: [density(chain) for chain in values] for name, values in quantities.items()}
    return draw_curves(panels, chain_names(quantities))


def draw_forest(quantities: Mapping[str, Quantity]) -> Picture:
    """Draw medians and central 50 % and 90 % intervals, a row a quantity."""
    figure = new_figure(WIDTH, 0.26 * len(quantities) + 0.5)
    axes = style_axes(figure.subplots())
    rows = np.arange(len(quantities))
    ends = [np.quantile(v, [0.05, 0.25, 0.5, 0.75, 0.95]) for v in quantities.values()]
    low, first, middle, last, high = np.transpose(ends)
    axes.hlines(rows, low, high, color=ACCENT, linewidth=1.2)
    axes.hlines(rows, first, last, color=ACCENT, linewidth=3.0)
    axes.plot(middle, rows, "o", color=ACCENT, markerfacecolor="white", markersize=5)
    axes.set_yticks(rows, [literal(shortened(name, LONGEST_IN_FOREST)) for name in quantities])
    axes.set_ylim(len(quantities) - 0.4, -0.6)
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x", color=GRID, linewidth=0.6)
    return figure


@checks_arguments
def plot_forest(
    posterior: Posterior, *, var_names: str | Sequence[str] | None = None, rows: int = 24
) -> Picture:
    """Draw medians with the central 50 % and 90 % intervals of parameters, in the model's order.

    Parameters
    ----------
    posterior : DataTree, path, or what a sampler returned
        The posterior, in any form that `diagnose` takes; align it first if labels switch.
    var_names : str or sequence of str, optional
        The variables to draw; by default the parameters.
    rows : int
        The number of scalar parameters at most.

    Returns
    -------
    matplotlib.figure.Figure
        A row a parameter, in the parameters' own unit.

    Raises
    ------
    ValueError
        If a variable is unknown, or a draw is not finite.

    Examples
    --------
    >>> figure = ob.plot.forest(posterior)
    """
    quantities = first_quantities(posterior, var_names, rows)
    return draw_forest(quantities).on_paper(intervals(quantities))


@checks_arguments
def plot_densities(
    posterior: Posterior, *, var_names: str | Sequence[str] | None = None, rows: int = 12
) -> Picture:
    """Draw the marginal density of each parameter, one line a chain.

    Parameters
    ----------
    posterior : DataTree, path, or what a sampler returned
        The posterior, in any form that `diagnose` takes.
    var_names : str or sequence of str, optional
        The variables to draw; by default the parameters.
    rows : int
        The number of scalar parameters at most.

    Returns
    -------
    matplotlib.figure.Figure
        A panel a parameter. Where chains agree, their lines cover each other.

    Raises
    ------
    ValueError
        If a variable is unknown, or a draw is not finite.

    Examples
    --------
    >>> figure = ob.plot.densities(posterior, var_names="mu")
    """
    quantities = first_quantities(posterior, var_names, rows)
    told = f"Densities, chain by chain. {intervals(quantities)}"
    return draw_densities(quantities).on_paper(told)


@checks_arguments
def plot_prior(
    prior: xr.DataTree,
    posterior: Posterior,
    *,
    var_names: str | Sequence[str] | None = None,
    rows: int = 12,
) -> Picture:
    """Draw the prior density of each parameter next to its posterior one.

    Parameters
    ----------
    prior : DataTree
        What `ob.prior` returned.
    posterior : DataTree, path, or what a sampler returned
        A posterior of the same model, in any form that `ob.diagnose` takes.
    var_names : str or sequence of str, optional
        The variables to draw; by default those of both.
    rows : int
        The number of scalar parameters at most.

    Returns
    -------
    matplotlib.figure.Figure
        A panel a parameter, with both densities.

    Raises
    ------
    TypeError, ValueError
        If `prior` is no tree or has no group `prior`, a variable is unknown, or none is in both.

    Examples
    --------
    >>> figure = ob.plot.prior(ob.prior(target, draws=200), posterior, var_names="mu")
    """
    check_count("rows", rows)
    check_class("prior", prior, xr.DataTree, remedy="give what `ob.prior` returned")
    if schema.PRIOR not in prior.children:
        raise ArgumentError("`prior` has no group `prior`: give what `ob.prior` returned.")
    view, held = as_view(posterior), prior[schema.PRIOR].to_dataset()
    both = tuple(name for name in view.variables if name in held)
    chosen = choose_variables(both, var_names)
    draws = view.draws(chosen)
    before = lay_out_columns([held[name].transpose(*schema.SAMPLE_DIMS, ...) for name in chosen])
    shown = [name for name in draws.names if name in before.names][:rows]
    if not shown:
        raise ArgumentError("`prior` and `posterior` have no variable in common: give one model's.")
    panels = {n: [density(of.of(n)) for of in (before, draws)] for n in shown}
    figure = draw_curves(panels, ("prior", "posterior"))
    spreads = ((name, before.of(name).std(), draws.of(name).std()) for name in shown)
    told = "; ".join(f"{n} {format_number(a)}, then {format_number(b)}" for n, a, b in spreads)
    return figure.on_paper(f"Densities before and after the data. Standard deviations: {told}.")


def intervals_in_words(
    names: Sequence[str],
    low: Sequence[float],
    middle: Sequence[float],
    high: Sequence[float],
    *,
    most: int = 12,
) -> str:
    """Say where medians and intervals lie."""
    rows = list(zip(names, low, middle, high, strict=True))
    told = "; ".join(
        f"{name} {format_number(m)} ({format_number(a)} to {format_number(b)})"
        for name, a, m, b in rows[:most]
    )
    rest = f"; and {len(rows) - most} more" if len(rows) > most else ""
    return f"Medians, with where 90 % of draws lie: {told}{rest}."


def intervals(quantities: Mapping[str, Quantity]) -> str:
    """Say where the median of each quantity and 90 % of its draws lie."""
    ends = np.quantile(np.stack(list(quantities.values())), [0.05, 0.5, 0.95], axis=(1, 2))
    return intervals_in_words(list(quantities), *ends.tolist())


def first_quantities(
    posterior: Posterior, var_names: str | Sequence[str] | None, rows: int
) -> dict[str, Quantity]:
    """Draws of the first scalar parameters, by name."""
    check_count("rows", rows)
    view = as_view(posterior)
    parameters = [name for name in view.variables if view.kinds.of.get(name) == "parameter"]
    draws = view.draws(parameters or None if var_names is None else var_names)
    return {name: draws.of(name) for name in draws.names[:rows]}


@checks_arguments
def plot_pair(
    posteriors: Posteriors, first: str, second: str, *, share_axes: bool = True
) -> Picture:
    """Draw two scalar parameters against each other, chains in colours, for one or several posteriors.

    Parameters
    ----------
    posteriors : DataTree, path, what a sampler returned, or a mapping of str to these
        A posterior, or several by name.
    first, second : str
        Scalar parameters, such as ``W1[0,0]``: on the horizontal and on the vertical axis.
    share_axes : bool
        Whether all panels show the same ranges.

    Returns
    -------
    matplotlib.figure.Figure
        A panel a posterior; divergent transitions are marked by crosses.

    Raises
    ------
    ValueError
        If a posterior lacks one of them.

    Examples
    --------
    >>> figure = ob.plot.pair(posterior, "mu[0]", "mu[1]")
    """
    pairs, told = {}, []
    for name, view in views_of(posteriors).items():
        diverging = view.stat(schema.DIVERGING)
        pair = pairs[name] = Pair(_draws_of(view, first), _draws_of(view, second), diverging)
        ends = []
        for entry, values in ((first, pair.first), (second, pair.second)):
            low, high = np.quantile(values, [0.05, 0.95])
            ends.append(f"{entry} lies between {format_number(low)} and {format_number(high)}")
        r = rank_correlation(pair.first, pair.second)
        ends.append(f"rank correlation {format_number(r, decimals=2)}")
        if diverging is not None:
            ends.append(f"divergences: {int(np.sum(diverging))}")
        told.append(f"{name}: in 90 % of draws {ends[0]}, and {'; '.join(ends[1:])}.")
    figure = draw_pairs(titled(pairs), x_label=first, y_label=second, share_axes=share_axes)
    return figure.on_paper(" ".join(told))


def _draws_of(view: View, entry: str) -> np.ndarray:
    """Draws of one scalar parameter."""
    spelt = variable_of(entry, view.variables)
    variable = dotted(spelt)
    entry = variable + entry[len(spelt) :]  # labels of places may have slashes
    there = view.draws(variable) if variable in view.variables else None
    if there is None or entry not in there.names:
        known = ", ".join(there.names[:6] if there else view.variables[:6])
        raise ArgumentError(
            f"`{view.argument}` has no scalar parameter {entry!r}: choose one such as {known}."
        )
    return there.of(entry)


def rank_correlation(first: np.ndarray, second: np.ndarray) -> float:
    """Spearman's rank correlation; `scipy.stats`, which has it too, takes long to import."""
    return float(np.corrcoef(mean_ranks(first.ravel()), mean_ranks(second.ravel()))[0, 1])


@dataclass(frozen=True, eq=False)
class Pair:
    """The draws of two weights, and which of them diverged."""

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
    """Draw two quantities against each other, a panel a posterior; axes that are not shared are labelled in each."""
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
    """Draw groups of points, each in the colour of its number; where there are many, small and as an image."""
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
    """Draw quantities against each other below the diagonal, and their densities on it; what diverged is marked."""
    count, names = len(quantities), [shortened(name, LONGEST) for name in quantities]
    figure = new_figure(1.75 * count + 0.6, 1.5 * count + 0.4)
    grid = figure.subplots(count, count, squeeze=False, sharex="col")
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
                axes.plot(*density(values), color=ACCENT, linewidth=1.2)
                axes.set_ylim(bottom=0)
                axes.tick_params(left=False)
            elif column < row:
                draw_points(axes, [(others.ravel(), values.ravel())], chain_colour)
                if bad.any():
                    axes.plot(others[bad], values[bad], ".", color=CHAIN_COLOURS[5], markersize=4)
            axes.locator_params(nbins=3)
    return figure


def draw_modes(
    points: Mapping[str, Float[np.ndarray, "draw 2"]], *, x_label: str, y_label: str
) -> Picture:
    """Draw two quantities, one colour a mode, by its name in the legend, the heaviest mode first."""
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
