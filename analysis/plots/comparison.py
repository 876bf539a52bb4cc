"""Posteriors compared with one of them: their distances, and how they score, a panel a measure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D

from onebasin.base.checks import check_class, checks_arguments
from onebasin.base.errors import ArgumentError
from onebasin.base.table import format_number

from ..compare.comparison import FLOOR, Comparison
from .style import (
    ACCENT,
    INK,
    MUTED,
    PAPER,
    TEXT_SIZE,
    Picture,
    add_legend,
    literal,
    new_figure,
    shortened,
    style_axes,
)

LONGEST = 22
"""Characters of a posterior's name."""


MEASURES = {
    "total_variation": "total variation of predictions",
    "agreement": "agreement of classes",
    "mean_distance": "distance of mean predictions (sds)",
    "max_abs_d": "largest difference of means (sds)",
    "energy": "energy distance of draws",
    "mmd": "maximum mean discrepancy",
    "log_score": "log score (nats)",
    "rmse": "RMSE (units of y)",
    "crps": "CRPS (units of y)",
    "coverage_50": "coverage of 50 % intervals",
    "coverage_95": "coverage of 95 % intervals",
    "accuracy": "accuracy",
    "calibration_error": "calibration error",
    "brier": "Brier score",
    "mutual_information": "mutual information (nats)",
    "single_draw_accuracy": "accuracy of one draw",
}
"""Labels of the table's columns, with units."""
_IDEAL = {"coverage_50": 0.5, "coverage_95": 0.95}
"""The value that is right, where there is one."""
_DEFAULT = {
    "regression": ("mean_distance", "energy", "log_score", "coverage_95"),
    "classification": ("total_variation", "energy", "log_score", "calibration_error"),
    "parameters": ("max_abs_d", "energy"),
}


@checks_arguments
def plot_comparison(comparison: Comparison, *, measures: Sequence[str] | None = None) -> Picture:
    """Draw what `compare` found: a row a posterior, a panel a measure.

    Parameters
    ----------
    comparison : Comparison
        What `compare` returned.
    measures : sequence of str, optional
        Columns of its table; by default distances, and scores where predictions were scored.

    Returns
    -------
    matplotlib.figure.Figure
        The baseline of distances is hollow, in the truth's row: the truth's halves from each other, below which nothing
        can be told apart. Dashed: the baseline, the truth's own score, or the coverage that is right.

    Raises
    ------
    TypeError
        If it is not what `compare` returned.
    ValueError
        If a measure is no column of the table, or there is none.

    Examples
    --------
    >>> other = ob.approximations.fit_gaussian(ob.align(posterior).posterior).sample(300)
    >>> comparison = ob.compare({"NUTS": posterior, "Gaussian": other}, truth="NUTS", permutations=99)
    >>> figure = ob.plot.comparison(comparison, measures=["energy"])
    """
    check_class("comparison", comparison, Comparison, remedy="give what `compare` returned")
    table = comparison.table
    known = [name for name in MEASURES if name in table and table[name].notna().any()]
    unknown = [name for name in measures or () if name not in known]
    if unknown:
        raise ArgumentError(
            f"`measures` asks for {unknown[0]!r}, which the comparison does not have; choose among {', '.join(known)}."
        )
    default = (name for name in _DEFAULT[comparison.kind] if name in known)
    chosen = list(dict.fromkeys(measures or default))
    if not chosen:
        raise ArgumentError(
            "`comparison` holds no number: compare with weights=True, or give `x` and `y`."
        )
    rows = [str(name) for name in table.index if name != FLOOR]
    figure = _draw(table[chosen], rows, comparison.truth)
    told = []
    for name in chosen:
        values = table[name]
        shown = {row: values[row] for row in rows} | {"the baseline": values.get(FLOOR)}
        numbers = [f"{row} {format_number(v)}" for row, v in shown.items() if pd.notna(v)]
        told.append(f"{MEASURES[name]}: {', '.join(numbers)}.")
    return figure.on_paper(f"Compared with {comparison.truth}. {' '.join(told)}")


def _draw(table: pd.DataFrame, rows: Sequence[str], truth: str) -> Picture:
    """Draw a panel a measure, posteriors in rows from top to bottom, the truth's own in ink.

    The truth has no distance from itself: the baseline, its halves from each other, stands in its row, hollow.
    """
    columns = min(2, table.shape[1])
    lines = -(-table.shape[1] // columns)
    figure = new_figure(3.8 * columns + 0.8, lines * (0.32 * len(rows) + 0.8) + 0.35)
    grid = figure.subplots(lines, columns, squeeze=False, sharey=True).ravel()
    labels = [f"{shortened(name, LONGEST)} (truth)" if name == truth else name for name in rows]
    for axes, (measure, values) in zip(grid, table.items(), strict=False):
        style_axes(axes, x_label=MEASURES[str(measure)])
        axes.set_yticks(range(len(rows)), [literal(shortened(n, LONGEST + 8)) for n in labels])
        axes.tick_params(axis="y", length=0, labelsize=TEXT_SIZE)
        axes.set_ylim(len(rows) - 0.5, -0.8)
        own, limit = float(values.get(truth, np.nan)), float(values.get(FLOOR, np.nan))
        is_distance = bool(np.isnan(own))
        for place, name in enumerate(rows):
            hollow = is_distance and name == truth
            value = limit if hollow else float(values[name])
            if np.isfinite(value):
                colour = INK if name == truth else ACCENT
                face = "none" if hollow else colour
                axes.plot(value, place, "o", color=colour, markerfacecolor=face, markersize=6)
                axes.annotate(
                    f"{value:.3g}".replace("-", "\N{MINUS SIGN}"),
                    (value, place),
                    (0, 6),
                    textcoords="offset points",
                    ha="center",
                    fontsize=TEXT_SIZE - 2,
                    color=INK,
                    # Its ground ends the dashed line.
                    bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 0.5},
                )
        marked = _IDEAL.get(str(measure), limit if is_distance else own)
        if np.isfinite(marked):
            axes.axvline(marked, color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
        axes.margins(x=0.16)
        shown = values[values.notna()]
        if is_distance and shown.min() > 0 and shown.max() > 20 * shown.min():
            axes.set_xscale("log")
            continue
        if is_distance:
            axes.axvline(0.0, color=INK, linewidth=0.6, zorder=1)
        axes.locator_params(axis="x", nbins=5)
    for empty in grid[table.shape[1] :]:
        empty.set_visible(False)
    handles = [Line2D([], [], color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)))]
    names = ["baseline, truth's own score, or right coverage"]
    if table.reindex([truth]).isna().any(axis=None):
        circle = Line2D([], [], color=INK, marker="o", markerfacecolor="none", linestyle="none")
        handles.insert(0, circle)
        names.insert(0, "baseline: the truth's halves, from each other")
    add_legend(figure, handles, names, columns=2)
    return figure
