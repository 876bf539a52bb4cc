"""Trace and rank histogram of scalar quantities, one row each, one colour per chain.

Convention: the rank plot is that of Vehtari et al. 2021 (section 4.3): draws are ranked over all
chains, ties get average ranks, and where chains agree every chain's histogram is flat.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import rankdata

from .style import (
    INK,
    MUTED,
    POINTS_TO_RASTERISE,
    TEXT_SIZE,
    add_legend,
    chain_colour,
    new_figure,
    style_axes,
)


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
        raise ValueError(
            f"`draws` of `{name}` have shape {draws.shape} and must be finite numbers by "
            "(chain, draw)."
        )
    ranks = rankdata(draws).reshape(draws.shape)
    edges = np.linspace(0.5, draws.size + 0.5, bins + 1)
    counts = np.stack([np.histogram(chain, bins=edges)[0] for chain in ranks])
    return TraceRank(name, draws, counts / (draws.shape[1] / bins))


def plot_trace_rank(quantities: Sequence[TraceRank], *, title: str = "") -> Figure:
    """Draw traces on the left and rank histograms on the right.

    Parameters
    ----------
    quantities
        What to draw, one row each.
    title
        Title over the figure.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Raises
    ------
    ValueError
        If there is nothing to draw.
    """
    if not quantities:
        raise ValueError("`quantities` is empty: give at least one `trace_rank(name, draws)`.")
    rows = len(quantities)
    figure = new_figure(8.0, 1.55 * rows + 0.75)
    grid = figure.subplots(rows, 2, squeeze=False, width_ratios=(1.9, 1.0))
    for row, quantity in enumerate(quantities):
        last = row == rows - 1
        _draw_trace(grid[row, 0], quantity, x_label="draw" if last else "")
        _draw_ranks(grid[row, 1], quantity, x_label="rank among all draws" if last else "")
    chains = max(quantity.draws.shape[0] for quantity in quantities)
    if chains > 1:
        add_legend(figure, grid[0, 0].lines[:chains], [f"chain {c}" for c in range(chains)])
    if title:
        figure.suptitle(title, fontsize=TEXT_SIZE + 2, color=INK)
    return figure


def _draw_trace(axes: Axes, quantity: TraceRank, *, x_label: str) -> None:
    style_axes(axes, y_label=quantity.name, x_label=x_label)
    num_draws = quantity.draws.shape[1]
    for chain, values in enumerate(quantity.draws):
        axes.plot(
            np.arange(1, num_draws + 1),
            values,
            color=chain_colour(chain),
            linewidth=0.6,
            alpha=0.75,
            rasterized=quantity.draws.size > POINTS_TO_RASTERISE,
        )
    axes.set_xlim(1, max(num_draws, 2))
    axes.locator_params(axis="y", nbins=4)


def _draw_ranks(axes: Axes, quantity: TraceRank, *, x_label: str) -> None:
    style_axes(axes, x_label=x_label, y_label="density")
    edges = np.linspace(0, quantity.draws.size, quantity.rank_share.shape[1] + 1)
    axes.axhline(1.0, color=MUTED, linewidth=0.8, linestyle=(0, (4, 3)))
    for chain, heights in enumerate(quantity.rank_share):
        axes.stairs(heights, edges, color=chain_colour(chain), linewidth=1.2)
    axes.set_xlim(0, quantity.draws.size)
    axes.set_ylim(0, max(2.0, 1.08 * float(quantity.rank_share.max())))
    axes.locator_params(nbins=3)
