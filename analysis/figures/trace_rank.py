"""Trace and rank histogram of scalar quantities, one row each, one colour per chain.

Convention: the rank plot is that of Vehtari et al. 2021 (section 4.3): draws are ranked over all
chains, ties get average ranks, and where chains agree every chain's histogram is flat. A long trace
is drawn by the smallest and largest draw of every few, which looks the same and weighs less.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from scipy.stats import rankdata

from onebasin.base.errors import ArgumentError

from .by_arviz import shortened
from .picture import Picture
from .style import (
    INK,
    MUTED,
    TEXT_SIZE,
    add_chain_legend,
    chain_colour,
    literal,
    new_figure,
    style_axes,
)

LONGEST = 22  # characters of a name beside its trace
POINTS_SHOWN = 400  # of a trace, whose panel is about 400 pixels wide


@dataclass(frozen=True, eq=False)
class TraceRank:
    """One quantity's draws and the histogram of their ranks.

    Attributes
    ----------
    name
        What the quantity is called on its axis.
    draws
        The draws, in order.
    rank_share
        Per chain, the height of each rank bin relative to a flat histogram.
    """

    name: str
    draws: Float[np.ndarray, "chain draw"]
    rank_share: Float[np.ndarray, "chain bin"]


def trace_rank(name: str, draws: Float[np.ndarray, "chain draw"], *, bins: int = 20) -> TraceRank:
    """Rank the draws of one quantity over all chains.

    Parameters
    ----------
    name
        Name for the axis.
    draws
        The draws.
    bins
        Bins of the rank histogram.

    Returns
    -------
    TraceRank
        What `plot_trace_rank` draws.

    Raises
    ------
    ValueError
        If the draws are not (chain, draw) or not finite.
    """
    draws = np.asarray(draws, dtype=np.float64)
    if draws.ndim != 2 or not draws.size or not np.isfinite(draws).all():
        raise ArgumentError(
            f"`draws` of `{name}` have shape {draws.shape} and must be finite numbers by "
            "(chain, draw)."
        )
    ranks = rankdata(draws).reshape(draws.shape)
    edges = np.linspace(0.5, draws.size + 0.5, bins + 1)
    counts = np.stack([np.histogram(chain, bins=edges)[0] for chain in ranks])
    return TraceRank(name, draws, counts / (draws.shape[1] / bins))


def plot_trace_rank(quantities: Sequence[TraceRank], *, title: str = "") -> Picture:
    """Draw traces on the left and rank histograms on the right.

    Parameters
    ----------
    quantities
        What to draw, one row each.
    title
        Title over the figure.
    """
    if not quantities:
        raise ArgumentError("`quantities` is empty: give at least one `trace_rank(name, draws)`.")
    rows = len(quantities)
    figure = new_figure(8.0, 1.55 * rows + 0.75)
    grid = figure.subplots(rows, 2, squeeze=False, width_ratios=(1.9, 1.0))
    for row, quantity in enumerate(quantities):
        last = row == rows - 1
        _draw_trace(grid[row, 0], quantity, x_label="draw" if last else "")
        _draw_ranks(grid[row, 1], quantity, x_label="rank among all draws" if last else "")
        for axes in grid[row]:
            axes.tick_params(labelbottom=last)
    chains = max(quantity.draws.shape[0] for quantity in quantities)
    add_chain_legend(figure, chains)
    if title:
        figure.suptitle(literal(title), fontsize=TEXT_SIZE + 2, color=INK)
    return figure


def envelope(
    values: Float[np.ndarray, " draw"], *, points: int = POINTS_SHOWN
) -> Int[np.ndarray, " point"]:
    """Return the places of the smallest and largest of every few draws, in order.

    All places where there are no more than `points` draws.
    """
    if values.size <= points:
        return np.arange(values.size)
    edges = np.linspace(0, values.size, points // 2 + 1).astype(np.int64)
    places = [
        start + extreme(values[start:stop])
        for start, stop in pairwise(edges)
        for extreme in (np.argmin, np.argmax)
    ]
    return np.unique(np.asarray(places, dtype=np.int64))


def _draw_trace(axes: Axes, quantity: TraceRank, *, x_label: str) -> None:
    style_axes(axes, y_label=shortened(quantity.name, LONGEST), x_label=x_label)
    num_draws = quantity.draws.shape[1]
    for chain, values in enumerate(quantity.draws):
        shown = envelope(values)
        axes.plot(shown + 1, values[shown], color=chain_colour(chain), linewidth=0.6, alpha=0.75)
    axes.set_xlim(1, max(num_draws, 2))
    axes.locator_params(axis="y", nbins=4)


def _draw_ranks(axes: Axes, quantity: TraceRank, *, x_label: str) -> None:
    style_axes(axes, x_label=x_label, y_label="density")
    edges = np.linspace(0, quantity.draws.size, quantity.rank_share.shape[1] + 1)
    axes.axhline(1.0, color=MUTED, linewidth=0.8, linestyle=(0, (4, 3)))
    for chain, heights in enumerate(quantity.rank_share):
        axes.stairs(heights, edges, baseline=None, color=chain_colour(chain), linewidth=1.2)
    axes.set_xlim(0, quantity.draws.size)
    axes.set_ylim(0, max(2.0, 1.08 * float(quantity.rank_share.max())))
    axes.locator_params(nbins=3)
