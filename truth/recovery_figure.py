"""Aligned posteriors against the truth that made the data."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from onebasin.analysis.figures.style import ACCENT, INK, MUTED, new_panels
from onebasin.base.errors import ArgumentError

from .alignment_recovery import Recovery


def plot_recovery(found: Mapping[str, Recovery]) -> Figure:
    """Draw posterior means and 95 % intervals against true values, a panel each.

    Parameters
    ----------
    found : mapping of str to Recovery
        Title of the panel to what is drawn in it.

    Raises
    ------
    ValueError
        If there is nothing to draw.
    """
    if not found:
        raise ArgumentError("`found` is empty: give the recovery of at least one posterior.")
    figure, panels = new_panels(
        list(found),
        columns=3,
        panel_size=(2.6, 2.3),
        margin=(0.4, 0.4),
        x_label="truth",
        y_label="aligned posterior",
        share_axes=False,
    )
    for axes, gap in zip(panels, found.values(), strict=True):
        ends = [min(gap.truth.min(), gap.low.min()), max(gap.truth.max(), gap.high.max())]
        axes.plot(ends, ends, color=MUTED, linewidth=0.8, linestyle=(0, (4, 3)))
        axes.vlines(gap.truth, gap.low, gap.high, color=ACCENT, linewidth=0.8, alpha=0.6)
        axes.plot(gap.truth, gap.mean, "o", color=INK, markersize=2.5)
    return figure
