"""Histogram of NUTS tree depths, one panel per posterior."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Num
from matplotlib.ticker import MaxNLocator

from onebasin.base.errors import ArgumentError

from .style import ACCENT, CHAIN_COLOURS, Picture, new_panels


@dataclass(frozen=True, eq=False)
class DepthShares:
    """The depths that occurred, and the share of draws that had each."""

    depth: Int[np.ndarray, " depth"]
    share: Float[np.ndarray, " depth"]


def depth_shares(depths: Num[np.ndarray, "chain draw"]) -> DepthShares:
    """Count the tree depths of all draws."""
    values, counts = np.unique(np.asarray(depths, dtype=np.int64), return_counts=True)
    return DepthShares(values, counts / counts.sum())


def draw_tree_depths(
    depths: Mapping[str, DepthShares],
    *,
    max_tree_depth: int | None = None,
    columns: int = 4,
) -> Picture:
    """Draw how many draws had each tree depth, a panel a posterior; a depth of k costs up to 2^k - 1 gradients.

    Bars at `max_tree_depth` have another colour.
    """
    if not depths:
        raise ArgumentError("`depths` is empty: give the tree depths of at least one posterior.")
    figure, panels = new_panels(
        depths,
        columns=columns,
        panel_size=(2.2, 1.9),
        margin=(0.4, 0.4),
        x_label="tree depth",
        y_label="share of draws",
    )
    for axes, shares in zip(panels, depths.values(), strict=True):
        capped = shares.depth >= (np.inf if max_tree_depth is None else max_tree_depth)
        colours = [CHAIN_COLOURS[5] if cap else ACCENT for cap in capped]
        axes.bar(shares.depth, shares.share, width=0.8, color=colours)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    return figure


def depths_in_words(name: str, shares: DepthShares) -> str:
    """Say how often every depth occurred."""
    told = ", ".join(
        f"{100 * s:.0f} % at depth {d}" for d, s in zip(shares.depth, shares.share, strict=True)
    )
    return f"{name}: {told}."
