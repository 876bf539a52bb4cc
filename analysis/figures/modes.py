"""Draws of a posterior that was put together from modes: two quantities, one colour a mode."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float
from matplotlib.lines import Line2D

from onebasin.base.errors import ArgumentError

from .picture import Picture
from .style import (
    CHAIN_COLOURS,
    GRID,
    add_legend,
    chain_colour,
    new_figure,
    style_axes,
)
from .weight_scatter import draw_points

COLOURED = len(CHAIN_COLOURS)
"""Modes that have a colour of their own; lighter ones are grey."""


def plot_modes(
    points: Mapping[str, Float[np.ndarray, "draw 2"]], *, x_label: str, y_label: str
) -> Picture:
    """Draw two quantities, by mode.

    Parameters
    ----------
    points
        The draws of every mode, by its name in the legend, the heaviest first.
    x_label, y_label
        Names of the two quantities.
    """
    if not points:
        raise ArgumentError("`points` is empty: give the draws of at least one mode.")
    figure = new_figure(4.6, 3.9)
    axes = style_axes(figure.subplots(), x_label=x_label, y_label=y_label)
    draw_points(axes, [(drawn[:, 0], drawn[:, 1]) for drawn in points.values()], _colour)
    handles = [
        Line2D([], [], color=_colour(number), marker="o", markersize=5, linestyle="none")
        for number in range(min(len(points), COLOURED))
    ]
    add_legend(figure, handles, list(points)[:COLOURED], columns=2)
    return figure


def _colour(number: int) -> str:
    return chain_colour(number) if number < COLOURED else GRID
