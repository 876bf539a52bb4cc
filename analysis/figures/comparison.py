"""Dots of several posteriors, a panel a measure, beside the floor or the truth's own value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from .by_arviz import shortened
from .picture import Picture
from .style import (
    ACCENT,
    INK,
    MUTED,
    TEXT_SIZE,
    add_legend,
    literal,
    new_figure,
    style_axes,
)

LONGEST = 22
"""Characters of a posterior's name."""


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
    """Draw a panel a measure, posteriors in rows, the truth's own in ink.

    Parameters
    ----------
    panels
        Values by posterior's name.
    rows
        The names, from top to bottom.
    truth, floor
        Names of what the others are held against. Of a distance, which the truth has none of, the floor stands in its
        row, hollow: the truth's halves from each other.
    """
    columns = min(2, len(panels))
    lines = -(-len(panels) // columns)
    figure = new_figure(3.8 * columns + 0.8, lines * (0.32 * len(rows) + 0.8) + 0.35)
    grid = figure.subplots(lines, columns, squeeze=False, sharey=True).ravel()
    labels = [f"{shortened(name, LONGEST)} (truth)" if name == truth else name for name in rows]
    for axes, (measure, values) in zip(grid, panels.items(), strict=False):
        style_axes(axes, x_label=measure.label)
        axes.set_yticks(range(len(rows)), [literal(shortened(n, LONGEST + 8)) for n in labels])
        axes.tick_params(axis="y", length=0, labelsize=TEXT_SIZE)
        axes.set_ylim(len(rows) - 0.5, -0.8)
        _draw(axes, measure, values, rows, truth, floor)
    for empty in grid[len(panels) :]:
        empty.set_visible(False)
    _add_legend(figure, panels, truth)
    return figure


def _draw(
    axes: Axes, measure: Measure, values: pd.Series, rows: Sequence[str], truth: str, floor: str
) -> None:
    own, limit = float(values.get(truth, np.nan)), float(values.get(floor, np.nan))
    is_distance = bool(np.isnan(own))
    for place, name in enumerate(rows):
        hollow = is_distance and name == truth
        value = limit if hollow else float(values[name])
        if np.isfinite(value):
            _mark(axes, place, value, INK if name == truth else ACCENT, hollow=hollow)
    marked = measure.ideal if measure.ideal is not None else limit if is_distance else own
    if np.isfinite(marked):
        axes.axvline(marked, color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
    axes.margins(x=0.16)
    shown = values[values.notna()]
    if is_distance and shown.min() > 0 and shown.max() > 20 * shown.min():
        axes.set_xscale("log")
        return
    if is_distance:
        axes.axvline(0.0, color=INK, linewidth=0.6, zorder=1)
    axes.locator_params(axis="x", nbins=5)


def _mark(axes: Axes, place: int, value: float, colour: str, *, hollow: bool) -> None:
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
    )


def _add_legend(figure: Picture, panels: Mapping[Measure, pd.Series], truth: str) -> None:
    handles: list[Line2D] = []
    labels: list[str] = []
    if any(np.isnan(float(values.get(truth, np.nan))) for values in panels.values()):
        handles.append(
            Line2D([], [], color=INK, marker="o", markerfacecolor="none", linestyle="none")
        )
        labels.append("floor: the truth's halves, from each other")
    handles.append(Line2D([], [], color=MUTED, linewidth=0.9, linestyle=(0, (4, 3))))
    labels.append("floor, truth's own score, or right coverage")
    add_legend(figure, handles, labels, columns=2)
