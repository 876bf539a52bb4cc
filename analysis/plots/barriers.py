"""The loss on the line between draws of a network, as they came and with hidden units matched."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from ..alignment.between import Barriers, barriers
from ..figures.picture import Picture
from ..figures.style import ACCENT, CHAIN_COLOURS, INK, add_legend, new_figure, style_axes
from ..posterior.view import Posterior

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
    >>> figure = ob.plot_barriers(ob.barriers(weights, pairs=2, num_points=5))
    >>> len(figure.axes)
    2
    """
    found = posterior if isinstance(posterior, Barriers) else barriers(posterior)
    figure = new_figure(8.0, 3.1)
    left, right = figure.subplots(1, 2, width_ratios=(1.3, 1.0))
    style_axes(left, x_label="from the first draw to the second", y_label="rise of the loss (nats)")
    style_axes(right, x_label="transpositions", y_label="barrier (nats)")
    for barrier, colour, label in (
        (found.as_they_came, _BEFORE, "as they came"),
        (found.aligned, _AFTER, "second aligned to the first"),
    ):
        lines = left.plot(
            barrier.position, barrier.excess.T, color=colour, linewidth=1.1, alpha=0.8
        )
        lines[0].set_label(label)
        right.plot(
            found.transpositions, barrier.height, "o", color=colour, markersize=5, alpha=0.85
        )
    _join(right, found)
    left.axhline(0.0, color=INK, linewidth=0.6)
    right.set_ylim(bottom=min(0.0, right.get_ylim()[0]))
    add_legend(figure, *left.get_legend_handles_labels())
    return figure.on_paper(found.sentence)


def _join(axes: Axes, found: Barriers) -> None:
    before, after = found.as_they_came.height, found.aligned.height
    axes.vlines(
        found.transpositions,
        np.minimum(before, after),
        np.maximum(before, after),
        color=INK,
        linewidth=0.4,
    )
    axes.xaxis.get_major_locator().set_params(integer=True)
