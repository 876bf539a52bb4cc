"""Histogram of NUTS tree depths, one panel per posterior."""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Num
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from .style import ACCENT, CHAIN_COLOURS, new_panels


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
    """
    if not depths:
        raise ValueError("`depths` is empty: give the tree depths of at least one posterior.")
    figure, panels = new_panels(
        depths,
        columns=columns,
        panel_size=(2.2, 1.9),
        margin=(0.4, 0.4),
        x_label="tree depth",
        y_label="share of draws",
    )
    for axes, depth in zip(panels, depths.values(), strict=True):
        values, counts = np.unique(np.asarray(depth, dtype=np.int64), return_counts=True)
        capped = values >= max_tree_depth if max_tree_depth is not None else values < 0
        colours = [CHAIN_COLOURS[5] if cap else ACCENT for cap in capped]
        axes.bar(values, counts / counts.sum(), width=0.8, color=colours)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    return figure
