"""Accuracy or error against the share of weights that a pruned network keeps, one line per curve.

Convention: the share is on a logarithmic axis, in percent, as most of what happens does at small shares; a
level that keeps nothing is not drawn. Source: Xiao, Liu and Bamler 2023, Figure 5, right.
"""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from onebasin.studies.compact_representation.pruning import PruningCurve

from .style import MUTED, add_legend, chain_colour, new_figure, style_axes

_LABELS = {"accuracy": "accuracy", "rmse": "RMSE (units of y)"}


def plot_pruning_curve(
    curves: Mapping[str, PruningCurve], *, reference: float | None = None
) -> Figure:
    """Draw pruning curves.

    Parameters
    ----------
    curves
        The curves, by name; all of one measure.
    reference
        What the posterior itself reaches, as a dashed line.

    Raises
    ------
    ValueError
        If there is nothing to draw, or measures differ.
    """
    measures = {curve.measure for curve in curves.values()}
    if len(measures) != 1:
        raise ValueError(
            f"`curves` holds the measures {', '.join(sorted(measures)) or 'of nothing'}; give at least "
            "one curve, and curves of one measure."
        )
    figure = new_figure(5.2, 3.2)
    axes = style_axes(
        figure.subplots(), x_label="weights kept (%)", y_label=_LABELS[measures.pop()]
    )
    for place, curve in enumerate(curves.values()):
        order = np.argsort(curve.keep, kind="stable")
        order = order[curve.keep[order] > 0]
        axes.plot(
            100 * curve.keep[order],
            curve.score[order],
            color=chain_colour(place),
            linewidth=1.2,
            marker=".",
        )
    handles, labels = list(axes.lines), list(curves)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda percent, _: f"{percent:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    if reference is not None:
        line = axes.axhline(reference, color=MUTED, linewidth=1.0, linestyle=(0, (4, 2)))
        handles, labels = [*handles, line], [*labels, "posterior"]
    add_legend(figure, handles, labels, columns=4)
    return figure
