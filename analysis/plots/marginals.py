"""Plots of marginal distributions: intervals, densities, prior and posterior."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import xarray as xr
from matplotlib.lines import Line2D

from onebasin.base.checks import check_class, check_count, checks_arguments
from onebasin.base.errors import ArgumentError
from onebasin.base.table import format_number
from onebasin.posteriors import schema
from onebasin.posteriors.draws import choose_variables, lay_out_columns, variable_of
from onebasin.posteriors.view import Posterior, as_view

from ..diagnostics.result import Diagnosis
from .posteriors import Drawn, Posteriors, Quantity, take_several
from .style import (
    ACCENT,
    DASHED,
    GRID,
    INK,
    MUTED,
    Picture,
    add_legend,
    chain_colour,
    literal,
    new_figure,
    new_panels,
    shortened,
    style_axes,
)

Curve = tuple[np.ndarray, np.ndarray]
"""Positions on the horizontal axis, and values."""
WIDTH = 7.6
TINY = 1e-290
"""Range below which densities are not divided by their unit."""
LONGEST_OVER, LONGEST_IN_FOREST = 26, 44
"""Maximum length of names above a panel and next to a row, in characters."""


def density(values: np.ndarray, *, bins: int = 256) -> Curve:
    """Estimate a density by smoothing a fine histogram with a normal kernel.

    The width of the kernel follows from the shortest interval that contains a fifth of the draws. This interval lies in
    one mode even if there are several. Constant numbers give a spike.
    """
    from scipy.ndimage import gaussian_filter1d

    values = np.sort(values, axis=None).astype(np.float64)
    middle, scale = values[len(values) // 2], values[-1] - values[0]
    if not scale:
        return np.full(2, middle), np.array([0.0, 1.0])
    units = (values - middle) / scale  # Squares of 1e200 overflow.
    fifth = max(len(units) // 5, 1)
    spread = float(np.min(units[fifth:] - units[:-fifth])) / 0.507  # The sd, if normal.
    width = 0.85 * (spread or float(units.std())) * len(units) ** -0.2
    low, high = units[0] - 3 * width, units[-1] + 3 * width
    counts, edges = np.histogram(units, bins=bins, range=(low, high))
    step = (high - low) / bins
    smooth = gaussian_filter1d(counts / (len(units) * step), width / step, mode="constant")
    smooth = smooth / scale if scale > TINY else smooth  # It could be infinite.
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
    """Plot one panel per quantity, with one curve for each name.

    Without `y_label`, the vertical axis has no numbers and starts at zero, as for densities. `limit` is a dashed line.
    """
    columns = min(len(panels), columns)
    figure, grid = new_panels(
        [shortened(name, LONGEST_OVER) for name in panels],
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
            axes.axhline(limit, **DASHED)
        axes.locator_params(axis="y", nbins=4)
        axes.locator_params(axis="x", nbins=3 if columns > 2 else 5)
        if not y_label:
            axes.set_ylim(bottom=0)
            axes.tick_params(left=False, labelleft=False)
        elif place % columns:
            axes.set_ylabel("")
    handles = [Line2D([], [], color=chain_colour(number)) for number in range(len(names))]
    if len(names) > 1:
        add_legend(figure, handles, names, columns=8)
    return figure


def ecdf_less_uniform(values: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the ECDF of numbers in [0, 1] at `x`, minus the uniform CDF."""
    return np.searchsorted(np.sort(values), x, side="right") / values.size - x


def draw_ecdfs(
    panels: Mapping[str, Sequence[Curve]],
    names: Sequence[str],
    bands: Iterable[float],
    *,
    x_label: str,
    height: float = 1.9,
) -> Picture:
    """Plot ECDF differences in rows of two panels, over grey bands with the given half widths."""
    figure = draw_curves(
        panels,
        names,
        columns=2,
        height=height,
        x_label=x_label,
        y_label="ECDF − uniform",
        limit=0.0,
    )
    for axes, width in zip(figure.axes, bands, strict=False):
        axes.axhspan(-width, width, color=MUTED, alpha=0.2, linewidth=0)
    return figure


def chain_names(quantities: Mapping[str, Quantity]) -> list[str]:
    """Return the names of chains for a legend."""
    return [f"chain {chain}" for chain in range(len(next(iter(quantities.values()))))]


def draw_forest(posteriors: Mapping[str, Mapping[str, Quantity]]) -> Picture:
    """Plot medians and central 50 % and 90 % intervals, one row per quantity, one colour per posterior.

    Quantities of similar size share an axis. A quantity that would shrink to a dot there gets a separate axis.
    """
    names = list(next(iter(posteriors.values())))
    several = len(posteriors) > 1
    ends = {
        key: np.transpose([np.quantile(values[n], [0.05, 0.25, 0.5, 0.75, 0.95]) for n in names])
        for key, values in posteriors.items()
    }
    stacked = np.stack(list(ends.values()))
    panels = _axes_of(names, stacked[:, 0].min(axis=0), stacked[:, 4].max(axis=0))
    row_height = 0.26 + 0.1 * (len(posteriors) - 1)
    figure = new_figure(WIDTH, row_height * len(names) + 0.35 * len(panels) + 0.35)
    grid = figure.subplots(
        len(panels), 1, squeeze=False, height_ratios=[len(panel) for panel in panels]
    )
    for axes, panel in zip(grid.ravel(), panels, strict=True):
        style_axes(axes)
        rows = np.arange(len(panel))
        for place, (low, first, middle, last, high) in enumerate(ends.values()):
            colour, shift = chain_colour(place), (place - (len(ends) - 1) / 2) * 0.22
            axes.hlines(rows + shift, low[panel], high[panel], color=colour, linewidth=1.2)
            axes.hlines(rows + shift, first[panel], last[panel], color=colour, linewidth=3.0)
            size = 4 if several else 5
            axes.plot(middle[panel], rows + shift, "o", color=colour, mfc="white", markersize=size)
        labels = [literal(shortened(names[k], LONGEST_IN_FOREST)) for k in panel]
        axes.set_yticks(rows, labels)
        axes.set_ylim(len(panel) - 0.4, -0.6)
        axes.grid(axis="y", visible=False)
        axes.grid(axis="x", color=GRID, linewidth=0.6)
    kinds = [
        Line2D([], [], color=INK if several else ACCENT, linewidth=width) for width in (3.0, 1.2)
    ]
    colours = [Line2D([], [], color=chain_colour(k), marker="o") for k in range(len(ends))]
    keys = list(ends) if several else []
    add_legend(figure, [*colours[: len(keys)], *kinds], [*keys, "50 %", "90 %"], columns=6)
    return figure


APART = 12.0
"""Ratio of axis length to interval length above which the interval is too short to read."""


def _axes_of(names: Sequence[str], low: np.ndarray, high: np.ndarray) -> list[np.ndarray]:
    """Divide rows into panels so that intervals are readable. Keep the entries of a variable together."""
    of = [variable_of(name) for name in names]
    groups = [
        [k for k, each in enumerate(of) if each == variable] for variable in dict.fromkeys(of)
    ]
    panels: list[list[int]] = []
    for group in groups:
        both = [*panels[-1], *group] if panels else group
        widths = (
            [np.median(high[rows] - low[rows]) for rows in (panels[-1], group)] if panels else [0]
        )
        whole = high[both].max() - low[both].min()
        if panels and whole <= APART * min(widths):
            panels[-1] += group
        else:
            panels.append(group)
    return [np.array(panel) for panel in panels]


@checks_arguments
def plot_forest(
    posteriors: Posteriors,
    *,
    var_names: str | Sequence[str] | None = None,
    rows: int = 24,
    align: bool = True,
    diagnosis: Diagnosis | None = None,
) -> Picture:
    """Plot medians with the central 50 % and 90 % intervals of parameters, in the order of the model.

    Parameters
    ----------
    posteriors : DataTree, path, what a sampler returned, or a mapping of str to these
        A posterior, in any form that `diagnose` accepts, or several by name.
    var_names : str or sequence of str, optional
        The variables to plot; by default the parameters.
    rows : int
        Maximum number of scalar parameters.
    align : bool
        Whether to align draws if `diagnose` finds the posterior usable after alignment. Several posteriors then get the
        labelling of the first. A line above the panels says which draws are shown.
    diagnosis : Diagnosis, optional
        The result of `diagnose` for the first posterior, if you have it; it is then not computed again.

    Returns
    -------
    matplotlib.figure.Figure
        One row per parameter, in the units of the parameter. Parameters of very different size have separate axes.

    Raises
    ------
    ValueError
        If a variable is unknown, or a draw is not finite.

    Examples
    --------
    >>> figure = ob.plot.forest({"NUTS": posterior, "again": posterior})
    """
    found = take_several(posteriors, var_names, rows, align=align, diagnosis=diagnosis)
    first = next(iter(found.values()))
    figure = draw_forest({name: drawn.values for name, drawn in found.items()})
    return figure.on_paper(first.alt(_several_in_words(found)), first.head)


@checks_arguments
def plot_densities(
    posteriors: Posteriors,
    *,
    var_names: str | Sequence[str] | None = None,
    rows: int = 12,
    align: bool = True,
    diagnosis: Diagnosis | None = None,
) -> Picture:
    """Plot the marginal density of each parameter, with one line per chain, or per posterior if there are several.

    Parameters
    ----------
    posteriors, var_names, rows, align, diagnosis : see `forest`
        Same as in `forest`.

    Returns
    -------
    matplotlib.figure.Figure
        One panel per parameter. If chains or posteriors agree, their lines overlap.

    Raises
    ------
    ValueError
        If a variable is unknown, or a draw is not finite.

    Examples
    --------
    >>> figure = ob.plot.densities(posterior, var_names="mu")
    """
    found = take_several(posteriors, var_names, rows, align=align, diagnosis=diagnosis)
    first = next(iter(found.values()))
    if len(found) == 1:
        curves = {n: [density(chain) for chain in values] for n, values in first.values.items()}
        names, lines = chain_names(first.values), "one per chain"
    else:
        curves = {n: [density(each.values[n]) for each in found.values()] for n in first.values}
        names, lines = list(found), "one per posterior"
    told = f"Densities, {lines}. {_several_in_words(found)}"
    return draw_curves(curves, names).on_paper(first.alt(told), first.head)


def _several_in_words(found: Mapping[str, Drawn]) -> str:
    """Describe the medians and intervals of each posterior."""
    if len(found) == 1:
        return intervals(next(iter(found.values())).values)
    return " ".join(f"{name}: {intervals(drawn.values)}" for name, drawn in found.items())


@checks_arguments
def plot_prior(
    prior: xr.DataTree,
    posterior: Posterior,
    *,
    var_names: str | Sequence[str] | None = None,
    rows: int = 12,
) -> Picture:
    """Plot the prior and posterior densities of each parameter.

    Parameters
    ----------
    prior : DataTree
        The result of `ob.prior`.
    posterior : DataTree, path, or what a sampler returned
        A posterior of the same model, in any form that `ob.diagnose` accepts.
    var_names : str or sequence of str, optional
        The variables to plot; by default all that prior and posterior share.
    rows : int
        Maximum number of scalar parameters.

    Returns
    -------
    matplotlib.figure.Figure
        One panel per parameter, with both densities, each divided by its maximum.

    Raises
    ------
    TypeError, ValueError
        If `prior` is not a tree or has no group `prior`, if a variable is unknown, or if no variable is in both.

    Examples
    --------
    >>> figure = ob.plot.prior(ob.prior(target, draws=200), posterior, var_names="mu")
    """
    check_count("rows", rows)
    check_class("prior", prior, xr.DataTree, remedy="give the result of `ob.prior`")
    if schema.PRIOR not in prior.children:
        raise ArgumentError("`prior` has no group `prior`: give the result of `ob.prior`.")
    view, held = as_view(posterior), prior[schema.PRIOR].to_dataset()
    both = tuple(name for name in view.variables if name in held)
    chosen = choose_variables(both, var_names)
    draws = view.draws(chosen)
    before = lay_out_columns([held[name].transpose(*schema.SAMPLE_DIMS, ...) for name in chosen])
    shown = [name for name in draws.names if name in before.names][:rows]
    if not shown:
        raise ArgumentError(
            "`prior` and `posterior` have no variable in common: give a prior and a posterior of the same model."
        )
    curves = {n: [density(of.of(n)) for of in (before, draws)] for n in shown}
    panels = {n: [(x, y / (y.max() or 1.0)) for x, y in own] for n, own in curves.items()}
    figure = draw_curves(panels, ("prior", "posterior"))
    spreads = ((name, before.of(name).std(), draws.of(name).std()) for name in shown)
    told = "; ".join(f"{n} {format_number(a)}, then {format_number(b)}" for n, a, b in spreads)
    return figure.on_paper(f"Prior and posterior densities. Standard deviations: {told}.")


def intervals_in_words(
    names: Sequence[str],
    low: Sequence[float],
    middle: Sequence[float],
    high: Sequence[float],
    *,
    most: int = 12,
) -> str:
    """Describe medians and intervals of named quantities."""
    rows = list(zip(names, low, middle, high, strict=True))
    told = "; ".join(
        f"{name} {format_number(m)} ({format_number(a)} to {format_number(b)})"
        for name, a, m, b in rows[:most]
    )
    rest = f"; and {len(rows) - most} more" if len(rows) > most else ""
    return f"Medians and 90 % intervals: {told}{rest}."


def intervals(quantities: Mapping[str, Quantity]) -> str:
    """Describe the median and 90 % interval of each quantity."""
    ends = np.quantile(np.stack(list(quantities.values())), [0.05, 0.5, 0.95], axis=(1, 2))
    return intervals_in_words(list(quantities), *ends.tolist())
