"""Dot plot of one number per run, such as the smallest ESS, for a grid of runs."""

import math
from collections.abc import Mapping

from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, ScalarFormatter

from onebasin.analysis.figures.style import (
    ACCENT,
    CHAIN_COLOURS,
    GRID,
    INK,
    TEXT_SIZE,
    add_legend,
    new_figure,
    style_axes,
)
from onebasin.base.errors import ArgumentError


def plot_cells(
    values: Mapping[str, Mapping[str, float]],
    *,
    x_label: str,
    limit: float | None = None,
    log_scale: bool = False,
) -> Figure:
    """Draw one dot per run, runs in rows and groups by colour.

    Parameters
    ----------
    values
        For each group (a colour) a number per row; NaN where there is none.
    x_label
        What the number is, with its unit.
    limit
        A threshold to mark.
    log_scale
        Whether the axis is logarithmic.
    """
    rows = list(dict.fromkeys(row for group in values.values() for row in group))
    if not rows:
        raise ArgumentError("`values` is empty: give a number for at least one run.")
    figure = new_figure(7.2, 0.34 * len(rows) + 1.2)
    axes = style_axes(figure.subplots(), x_label=x_label)
    markers = "osD^vP"
    handles = [
        axes.plot(
            [group.get(row, math.nan) for row in rows],
            range(len(rows)),
            linestyle="none",
            marker=markers[place % len(markers)],
            markersize=6.5,
            color=(ACCENT, *CHAIN_COLOURS[1:])[place % len(CHAIN_COLOURS)],
        )[0]
        for place, group in enumerate(values.values())
    ]
    if limit is not None:
        axes.axvline(limit, color=INK, linewidth=0.9, linestyle=(0, (4, 3)))
    if log_scale:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_yticks(range(len(rows)), rows, fontsize=TEXT_SIZE, color=INK)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.grid(axis="both", color=GRID, linewidth=0.6)
    if len(values) > 1:
        add_legend(figure, handles, list(values))
    return figure
