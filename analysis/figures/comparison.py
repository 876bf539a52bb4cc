"""Dots of several posteriors, a panel a measure, beside the floor or the truth's own value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from .picture import Picture
from .style import ACCENT, GRID, INK, MUTED, TEXT_SIZE, new_figure, style_axes


@dataclass(frozen=True)
class Measure:
    """What a panel shows.

    Attributes
    ----------
    label
        With its unit.
    better
        Which values are better, where that can be said.
    ideal
        The value that is right.
    """

    label: str
    better: Literal["smaller", "larger", ""] = ""
    ideal: float | None = None


def draw_comparison(
    panels: Mapping[Measure, pd.Series], rows: Sequence[str], *, truth: str, floor: str
) -> Picture:
    """Draw a panel a measure, posteriors in rows.

    Parameters
    ----------
    panels
        Values by posterior's name.
    rows
        The names, from top to bottom.
    truth, floor
        Names of what the others are held against.
    """
    columns = min(2, len(panels))
    lines = -(-len(panels) // columns)
    figure = new_figure(4.0 * columns + 0.6, lines * (0.3 * len(rows) + 0.95))
    grid = figure.subplots(lines, columns, squeeze=False, sharey=True).ravel()
    for axes, (measure, values) in zip(grid, panels.items(), strict=False):
        _draw(axes, measure, values, rows, truth, floor)
    for empty in grid[len(panels) :]:
        empty.set_visible(False)
    return figure


def _draw(
    axes: Axes, measure: Measure, values: pd.Series, rows: Sequence[str], truth: str, floor: str
) -> None:
    style_axes(axes, x_label=measure.label)
    own, limit = float(values.get(truth, np.nan)), float(values.get(floor, np.nan))
    marked = measure.ideal if measure.ideal is not None else own
    if np.isfinite(marked):
        axes.axvline(marked, color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)))
    elif np.isfinite(limit):
        axes.axvspan(min(0.0, limit), max(0.0, limit), color=GRID, linewidth=0)
    for place, name in enumerate(rows):
        colour = INK if name == truth else ACCENT
        axes.plot(values[name], place, "o", color=colour, markersize=6)
    axes.set_yticks(range(len(rows)), rows, fontsize=TEXT_SIZE, color=INK)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.locator_params(axis="x", nbins=5)
