"""Traces of interchangeable components, one colour each, chain after chain, in one column or several side by side.

Convention: the horizontal axis goes through the draws of the first chain, then of the second, ...; a rule stands
between chains. All columns of a row share their vertical axis, so that what moved can be seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from .by_arviz import shortened
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
"""Of one line's traces in all panels of a row, at most."""
LONGEST = 22
"""Characters of a label."""
NUMBERED = 12
"""Chains that are numbered on the axis."""


@dataclass(frozen=True, eq=False)
class Lines:
    """What a row of panels shows, the same lines in all of them.

    Attributes
    ----------
    title
        What the row is called.
    labels
        What each line is called.
    of
        How many there are, of which these are some.
    """

    title: str
    labels: tuple[str, ...]
    of: int


@dataclass(frozen=True, eq=False)
class Column:
    """Draws of every row, under one heading."""

    title: str
    rows: tuple[Float[np.ndarray, "chain draw _"], ...]


@dataclass(frozen=True)
class Kind:
    """What the draws are.

    Attributes
    ----------
    group, draw
        What a chain is called, and a draw.
    follow
        Whether one draw follows from another; if not, they are drawn as points.
    """

    group: str = "chain"
    draw: str = "draw"
    follow: bool = True


def draw_columns(columns: Sequence[Column], rows: Sequence[Lines], kind: Kind) -> Picture:
    """Draw the columns.

    Parameters
    ----------
    columns
        What is drawn, at least one.
    rows
        What the lines of each row are called.
    kind
        What the draws are.
    """
    several = {(row.labels, row.of) for row in rows if len(row.labels) > 1}
    figure = new_figure(7.8 if len(columns) == 1 else 8.6, 1.5 * len(rows) + 0.9)
    grid = figure.subplots(len(rows), len(columns), squeeze=False, sharex=True, sharey="row")
    for place, column in enumerate(columns):
        for number, (row, values) in enumerate(zip(rows, column.rows, strict=True)):
            axes = style_axes(
                grid[number, place],
                title=column.title if number == 0 else "",
                y_label=shortened(row.title, LONGEST) if place == 0 else "",
                x_label=_x_label(kind, len(values)) if number == len(rows) - 1 else "",
            )
            _draw(axes, values, kind, POINTS // len(columns))
            if len(several) > 1 and len(row.labels) > 1 and place == len(columns) - 1:
                _add_row_legend(axes, row)
    if len(several) == 1:
        _add_shared_legend(figure, next(row for row in rows if len(row.labels) > 1))
    return figure


def _x_label(kind: Kind, groups: int) -> str:
    return f"{kind.draw}s of each {kind.group}, in order" if groups > 1 else kind.draw


def _draw(axes: Axes, values: Float[np.ndarray, "chain draw line"], kind: Kind, most: int) -> None:
    chains, draws, lines = values.shape
    points = max(40, most // chains)
    for chain in range(chains):
        for line in range(lines):
            trace = values[chain, :, line]
            colour = chain_colour(line) if lines > 1 else INK
            if kind.follow:
                shown = envelope(trace, points=points)
                style: dict[str, Any] = {"linewidth": 0.8, "alpha": 0.85}
            else:
                shown = np.arange(0, draws, max(1, -(-draws // points)))
                style = {
                    "linestyle": "none",
                    "marker": ".",
                    "markersize": 3 if chains * draws > 200 else 7,
                }
            axes.plot(chain * draws + shown + 1, trace[shown], color=colour, **style)
    axes.set_xlim(0.5, chains * draws + 0.5)
    axes.locator_params(axis="y", nbins=4)
    if chains > 1:
        _part_chains(axes, chains, draws, kind.group)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))


def _part_chains(axes: Axes, chains: int, draws: int, group: str) -> None:
    for chain in range(1, chains):
        axes.axvline(chain * draws + 0.5, color=MUTED, linewidth=0.7)
    middles = (np.arange(chains) + 0.5) * draws
    names = [f"{group} {k}" if chains <= 5 else str(k) for k in range(chains)]
    every = max(1, -(-chains // NUMBERED))
    axes.set_xticks(middles[::every], names[::every])
    axes.tick_params(axis="x", length=0)


def _handle(line: int) -> Line2D:
    return Line2D([], [], color=chain_colour(line), linewidth=2.5)


def _names(row: Lines) -> tuple[list[str], str]:
    """Labels for a legend, and its heading where they are some of many."""
    labels = [literal(shortened(label, LONGEST)) for label in row.labels]
    return labels, f"{len(labels)} of {row.of}" if len(labels) < row.of else ""


def _add_shared_legend(figure: Picture, row: Lines) -> None:
    labels, heading = _names(row)
    handles = [_handle(k) for k in range(len(labels))]
    if heading:
        handles, labels = [Line2D([], [], linestyle="none"), *handles], [f"{heading}:", *labels]
    add_legend(figure, handles, labels, columns=5)


def _add_row_legend(axes: Axes, row: Lines) -> None:
    labels, heading = _names(row)
    legend = axes.legend(
        [_handle(k) for k in range(len(labels))],
        labels,
        title=heading or None,
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
        frameon=False,
        fontsize=TEXT_SIZE - 1,
        labelcolor=INK,
        handlelength=1.0,
        labelspacing=0.3,
    )
    legend.get_title().set(fontsize=TEXT_SIZE - 1, color=MUTED)
