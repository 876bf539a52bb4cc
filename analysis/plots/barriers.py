"""The loss on the line between draws of a network, as they came and with hidden units matched."""

from __future__ import annotations

import numpy as np
from matplotlib.ticker import MaxNLocator

from onebasin.posteriors.view import Posterior

from ..alignment.barriers import Barriers, barriers
from .style import ACCENT, CHAIN_COLOURS, INK, MUTED, Picture, add_legend, new_figure, style_axes

_BEFORE, _AFTER = CHAIN_COLOURS[1], ACCENT


def plot_barriers(posterior: Posterior | Barriers) -> Picture:
    """Draw the loss between draws, as they came and aligned, and how high its barriers are.

    Parameters
    ----------
    posterior : Barriers, or posterior
        What `barriers` returned; or a network's posterior, of which `barriers` is asked with its defaults.

    Returns
    -------
    matplotlib.figure.Figure
        Left: the rise of the loss above the straight line between its ends, a line a pair. Right: each pair's barrier
        against the transpositions that matched its units.

    Raises
    ------
    ValueError
        As `barriers`.

    Examples
    --------
    >>> figure = ob.plot.barriers(ob.networks.barriers(weights, pairs=2, num_points=5))
    >>> len(figure.axes)
    2
    """
    found = posterior if isinstance(posterior, Barriers) else barriers(posterior)
    figure = new_figure(8.0, 3.2)
    left, right = figure.subplots(1, 2, width_ratios=(1.3, 1.0))
    style_axes(
        left,
        x_label="from the first draw to the second",
        y_label="rise of the loss (nats per obs.)",
    )
    style_axes(
        right, x_label="transpositions that alignment made", y_label="barrier (nats per obs.)"
    )
    # Pairs of equal counts stand side by side, so that none hides another.
    beside = found.transpositions.astype(np.float64)
    for count in np.unique(found.transpositions):
        same = np.flatnonzero(found.transpositions == count)
        beside[same] += (
            0.6 * (np.arange(len(same)) - (len(same) - 1) / 2) / max(len(found.transpositions), 1)
        )
    for barrier, colour, label in (
        (found.as_they_came, _BEFORE, "as they came"),
        (found.aligned, _AFTER, "second draw aligned to the first"),
    ):
        lines = left.plot(
            barrier.position, barrier.excess.T, color=colour, linewidth=1.2, alpha=0.8
        )
        lines[0].set_label(label)
        right.plot(beside, barrier.height, "o", color=colour, markersize=5, zorder=3)
    before, after = found.as_they_came.height, found.aligned.height
    right.vlines(beside, after, before, color=MUTED, linewidth=0.7)
    # Heights of unlike size: a logarithmic axis, linear near zero.
    heights = np.concatenate([before, after])
    known = heights[np.isfinite(heights)]
    top = float(known.max(initial=0.0))
    if top > 0 and float(known.min()) < top / 20:
        near = 10.0 ** np.floor(np.log10(top / 300))
        right.set_yscale("symlog", linthresh=near, linscale=0.4)
        right.set_ylim(bottom=min(0.0, float(known.min())), top=2 * top)
        right.axhline(0.0, color=INK, linewidth=0.6, zorder=1)
    right.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    right.set_xlim(float(beside.min()) - 0.5, float(beside.max()) + 0.5)
    left.axhline(0.0, color=INK, linewidth=0.6, zorder=1)
    add_legend(figure, *left.get_legend_handles_labels())
    return figure.on_paper(found.sentence)
