"""Distances to the nearest equivalent mode over the width, beside the bounds."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes

from onebasin.analysis.figures.style import MUTED, add_legend, chain_colour, new_figure, style_axes
from onebasin.analysis.report import FigureItem

from .proximity import mean_bound, theorem_bound
from .proximity_measures import SOURCES, ProximityResults
from .widths_pictures import beside, plain_numbers, set_widths

LEAST = 1e-3
"""Distances below this are not shown: pairs of units that training has made equal, at zero or nearly."""

Series = list[tuple[int, Float[np.ndarray, " network"]]]


def picture(results: ProximityResults) -> FigureItem:
    """Draw distances and separations over the width."""
    figure = new_figure(7.6, 3.9)
    left, right = figure.subplots(1, 2)
    style_axes(left, title="nearest copy", x_label="hidden units", y_label="distance / ||w||")
    style_axes(right, title="least separation", x_label="hidden units", y_label="sds of q")
    _bounds(left, results)
    for place, source in enumerate(results.sources):
        look = (chain_colour(place), beside(place, len(results.sources)), SOURCES[source])
        _points(left, results.over_widths(source), *look)
        near = [(w, results.found[source, w].separation) for w, _ in results.over_widths(source)]
        _points(right, [(w, s) for w, s in near if not np.isnan(s).all()], *look)
    if results.threshold is not None:
        right.axhline(results.threshold, color=MUTED, linewidth=0.8, linestyle="--")
    left.set_yscale("log")
    left.set_ylim(bottom=max(LEAST, left.get_ylim()[0]))
    plain_numbers(left)
    right.set_ylim(bottom=0)
    for axes in (left, right):
        set_widths(axes, results.widths)
    add_legend(figure, *left.get_legend_handles_labels(), columns=3)
    return FigureItem(
        figure,
        caption="Left: distance of networks to their nearest permuted copy, relative to ||w||: medians, and bars "
        "from the least to the largest, beside Theorem 3.1 and two bounds that are sharper at these widths; what "
        f"is below {LEAST:g} (dead units, all alike) is not shown. Right: half the distance between a mode and its "
        "copy in standard deviations of q, for the two units where it is least; dashed: what it takes for one "
        "Gaussian between two modes to have an optimum at a mode. Marks are moved apart a little.",
        alt="Relative distance to the nearest equivalent mode against hidden units with bounds; least separation of "
        "two units in standard deviations",
    )


def _bounds(axes: Axes, results: ProximityResults) -> None:
    widths = np.geomspace(max(results.widths[0], 2), results.widths[-1], 60)
    curves = {
        "2 / √(H − 1)": ([mean_bound(w) for w in widths], "--"),
        "Theorem 3.1": ([theorem_bound(w, results.part_dim) for w in widths], ":"),
    }
    for label, (values, dash) in curves.items():
        axes.plot(widths, values, dash, color=MUTED, label=label)
    axes.axhline(2.0, color=MUTED, linewidth=0.8, label="triangle inequality")


def _points(axes: Axes, found: Series, colour: str, shift: float, label: str) -> None:
    if not found:
        return
    middle = np.array([np.median(values) for _, values in found])
    ends = np.array([[values.min(), values.max()] for _, values in found]).T
    axes.errorbar(
        [width * shift for width, _ in found],
        middle,
        yerr=np.abs(ends - middle),
        fmt="o-",
        color=colour,
        markersize=4,
        linewidth=1.0,
        elinewidth=0.8,
        capsize=2,
        label=label,
    )
