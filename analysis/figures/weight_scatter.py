"""Two weights against each other, one panel per posterior.

Source: Pourzanjani, Jiang and Petzold 2017, Figure 1 (left): W1[1,1] against W2[1], counted from 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .style import (
    GRID,
    POINTS_TO_RASTERISE,
    add_chain_legend,
    chain_colour,
    new_figure,
    panel_grid,
    style_axes,
    wrapped,
)

PANEL_WIDTH = 2.75  # inches


@dataclass(frozen=True, eq=False)
class WeightPair:
    """The draws of two weights."""

    first: Float[np.ndarray, "chain draw"]
    second: Float[np.ndarray, "chain draw"]


def plot_weight_scatter(
    pairs: Mapping[str, WeightPair],
    *,
    x_label: str = "W1[0,0]",
    y_label: str = "W2[0,0]",
    share_axes: bool = True,
    columns: int = 3,
) -> Figure:
    """Draw the scatter of two weights for several posteriors.

    Parameters
    ----------
    pairs
        The draws, by the posterior's name.
    x_label, y_label
        Names of the two weights.
    share_axes
        Whether all panels show the same ranges; otherwise each has its own, labelled ones.
    columns
        Panels in a row.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Raises
    ------
    ValueError
        If there is nothing to draw.
    """
    if not pairs:
        raise ValueError("`pairs` is empty: give the draws of at least one posterior.")
    rows, wide = panel_grid(len(pairs), columns=columns)
    figure = new_figure(PANEL_WIDTH * wide + 0.4, 2.6 * rows + 0.5)
    grid = figure.subplots(rows, wide, squeeze=False, sharex=share_axes, sharey=share_axes)
    panels = grid.ravel()
    for place, (name, pair) in enumerate(pairs.items()):
        below = place + wide >= len(pairs)
        style_axes(
            panels[place],
            title=wrapped(name, PANEL_WIDTH),
            x_label=x_label if below or not share_axes else "",
            y_label=y_label if place % wide == 0 or not share_axes else "",
        )
        panels[place].tick_params(labelbottom=below or not share_axes)
        _draw_pair(panels[place], pair)
    for empty in panels[len(pairs) :]:
        empty.set_visible(False)
    add_chain_legend(figure, max(pair.first.shape[0] for pair in pairs.values()))
    return figure


def _draw_pair(axes: Axes, pair: WeightPair) -> None:
    size = 9.0 if pair.first.size <= 1000 else 4.0
    for chain, (first, second) in enumerate(zip(pair.first, pair.second, strict=True)):
        axes.scatter(
            first,
            second,
            s=size,
            color=chain_colour(chain),
            alpha=0.35,
            linewidths=0,
            rasterized=pair.first.size > POINTS_TO_RASTERISE,
        )
    axes.grid(axis="x", visible=True, color=GRID, linewidth=0.6)
    axes.locator_params(nbins=5)
