"""Failure rates of alignment against how far components lie apart."""

from __future__ import annotations

from typing import cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from onebasin.analysis.figures.style import INK, TEXT_SIZE, chain_colour, new_figure, style_axes

from .alignment_failures import RULES, FailureRates


def plot_failure_rates(rates: FailureRates, *, ax: Axes | None = None) -> Figure:
    """Draw failure rates against separation: means over repeats, the least and the largest as whiskers.

    Parameters
    ----------
    rates : FailureRates
        What was measured.
    ax : Axes, optional
        Where to draw; on a figure of its own by default.
    """
    figure = new_figure(6.4, 3.6) if ax is None else cast(Figure, ax.get_figure(root=True))
    ax = ax or figure.subplots()
    style_axes(ax, x_label="separation of neighbouring means (sds)", y_label="draws labelled wrong")
    for place, (rule, found) in enumerate(rates.rates.items()):
        middle = found.mean(axis=0)
        reach = np.stack([middle - found.min(axis=0), found.max(axis=0) - middle])
        ax.errorbar(
            rates.separations,
            middle,
            yerr=reach,
            color=chain_colour(place),
            marker="o",
            markersize=3.5,
            linewidth=1.1,
            elinewidth=0.8,
            label=RULES[rule],
        )
    best = rates.optimal.mean(axis=0)
    ax.plot(rates.separations, best, color=INK, linestyle=(0, (4, 2)), label="best possible")
    ax.set_ylim(0.0, 1.0)
    ax.legend(frameon=False, fontsize=TEXT_SIZE, labelcolor=INK)
    return figure
