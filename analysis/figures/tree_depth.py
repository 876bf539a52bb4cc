"""Histogram of NUTS tree depths, one panel per posterior."""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Num
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from .style import ACCENT, CHAIN_COLOURS, new_figure, panel_grid, style_axes, wrapped

PANEL_WIDTH = 2.2  # inches


def plot_tree_depth(
    depths: Mapping[str, Num[np.ndarray, "chain draw"]],
    *,
    max_tree_depth: int | None = None,
    columns: int = 4,
) -> Figure:
    """Draw how many draws had each tree depth; a depth of k costs up to 2^k - 1 gradients.

    Parameters
    ----------
    depths
        Tree depth of every draw, by the posterior's name.
    max_tree_depth
        The limit; bars at the limit are drawn in another colour.
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
    if not depths:
        raise ValueError("`depths` is empty: give the tree depths of at least one posterior.")
    rows, wide = panel_grid(len(depths), columns=columns)
    figure = new_figure(PANEL_WIDTH * wide + 0.4, 1.9 * rows + 0.4)
    grid = figure.subplots(rows, wide, squeeze=False, sharex=True, sharey=True)
    panels = grid.ravel()
    for place, (name, depth) in enumerate(depths.items()):
        values, counts = np.unique(np.asarray(depth, dtype=np.int64), return_counts=True)
        capped = values >= max_tree_depth if max_tree_depth is not None else values < 0
        colours = [CHAIN_COLOURS[5] if cap else ACCENT for cap in capped]
        axes = style_axes(
            panels[place],
            title=wrapped(name, PANEL_WIDTH),
            x_label="tree depth" if place + wide >= len(depths) else "",
            y_label="share of draws" if place % wide == 0 else "",
        )
        axes.bar(values, counts / counts.sum(), width=0.8, color=colours)
        axes.tick_params(labelbottom=place + wide >= len(depths))
        axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    for empty in panels[len(depths) :]:
        empty.set_visible(False)
    return figure
