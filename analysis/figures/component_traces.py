"""Traces of interchangeable components, one colour each, chain after chain, in one column or several side by side.

Convention: the horizontal axis goes through the draws of the first chain, then of the second, ...; a rule stands
between chains. All columns of a row share their vertical axis, so that what moved can be seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from .picture import Picture
from .style import (
    INK,
    MUTED,
    TEXT_SIZE,
    add_legend,
    chain_colour,
    literal,
    new_figure,
    style_axes,
)
from .trace_rank import envelope

POINTS = 1200
"""Of all lines' traces in a panel, at most."""
NUMBERED = 12
"""Chains that are numbered on the axis."""


@dataclass(frozen=True, eq=False)
class Column:
    """Draws of every row, under one heading."""

    title: str
    rows: tuple[Float[np.ndarray, "chain draw line"], ...]


def draw_columns(
    columns: Sequence[Column], titles: Sequence[str], labels: Sequence[Sequence[str]]
) -> Picture:
    """Draw the columns; a row's lines are called the same in all of them.

    Parameters
    ----------
    columns
        What is drawn, at least one.
    titles, labels
        What each row is called, and each line in it.
    """
    shared = len(set(map(tuple, labels))) == 1
    figure = new_figure(7.8 if len(columns) == 1 else 8.4, 1.55 * len(titles) + 0.85)
    grid = figure.subplots(len(titles), len(columns), squeeze=False, sharex=True, sharey="row")
    for place, column in enumerate(columns):
        for row, values in enumerate(column.rows):
            axes = style_axes(
                grid[row, place],
                title=column.title if row == 0 else "",
                y_label=titles[row] if place == 0 else "",
                x_label=_x_label(values) if row == len(titles) - 1 else "",
            )
            _draw(axes, values)
            if not shared and place == len(columns) - 1:
                _add_row_legend(axes, labels[row])
    if shared and len(labels[0]) > 1:
        add_legend(figure, [_handle(k) for k in range(len(labels[0]))], labels[0], columns=8)
    return figure


def _x_label(values: np.ndarray) -> str:
    return "draws of each chain, in order" if len(values) > 1 else "draw"


def _draw(axes: Axes, values: Float[np.ndarray, "chain draw line"]) -> None:
    chains, draws, lines = values.shape
    points = max(60, POINTS // chains)
    for chain in range(chains):
        for line in range(lines):
            trace = values[chain, :, line]
            shown = envelope(trace, points=points)
            axes.plot(
                chain * draws + shown + 1,
                trace[shown],
                color=chain_colour(line),
                linewidth=0.8,
                alpha=0.85,
            )
    axes.set_xlim(1, max(chains * draws, 2))
    axes.locator_params(axis="y", nbins=4)
    if chains > 1:
        _part_chains(axes, chains, draws)


def _part_chains(axes: Axes, chains: int, draws: int) -> None:
    for chain in range(1, chains):
        axes.axvline(chain * draws + 0.5, color=MUTED, linewidth=0.7)
    middles = (np.arange(chains) + 0.5) * draws
    names = [f"chain {k}" if chains <= 5 else str(k) for k in range(chains)]
    every = max(1, -(-chains // NUMBERED))
    axes.set_xticks(middles[::every], names[::every])
    axes.tick_params(axis="x", length=0)


def _handle(line: int) -> Line2D:
    return Line2D([], [], color=chain_colour(line), linewidth=2.5)


def _add_row_legend(axes: Axes, labels: Sequence[str]) -> None:
    axes.legend(
        [_handle(k) for k in range(len(labels))],
        [literal(label) for label in labels],
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
        frameon=False,
        fontsize=TEXT_SIZE - 1,
        labelcolor=INK,
        handlelength=1.0,
    )
