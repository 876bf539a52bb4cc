"""Differences of ECDFs from that of uniform numbers, with simultaneous bands, a panel each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from .picture import Picture
from .style import ACCENT, MUTED, literal, new_figure, style_axes

COLUMNS = 3


class Panel(NamedTuple):
    """One quantity: its name, where its ECDF is looked at, the ECDF there, and whether it leaves the band."""

    name: str
    points: Float[np.ndarray, " point"]
    ecdf: Float[np.ndarray, " point"]
    outside: bool


def draw_calibration(
    panels: Sequence[Panel], lower: Float[np.ndarray, " point"], upper: Float[np.ndarray, " point"]
) -> Picture:
    """Draw a panel a quantity, with the band that they share.

    Parameters
    ----------
    panels : sequence of Panel
        At least one.
    lower, upper : array (point,)
        Of the ECDF.
    """
    columns = min(COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    figure = new_figure(2.7 * columns + 0.5, 1.9 * rows + 0.4)
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    for place, axes in enumerate(grid.ravel()):
        if place >= len(panels):
            axes.set_visible(False)
            continue
        name, points, ecdf, outside = panels[place]
        x, ends = np.concatenate([[0], points, [1]]), [0.0]
        low, high = (np.concatenate([ends, side - points, ends]) for side in (lower, upper))
        style_axes(axes)
        axes.fill_between(x, low, high, color=MUTED, alpha=0.25, linewidth=0, step="mid")
        axes.axhline(0, color=MUTED, linewidth=0.8)
        difference = np.concatenate([ends, ecdf - points, ends])
        axes.step(x, difference, where="mid", color=ACCENT, linewidth=2.0 if outside else 1.2)
        axes.set_title(literal(f"{name}: outside" if outside else name), fontsize=9, loc="left")
        axes.set_xlim(0, 1)
        if place + columns >= len(panels):
            axes.set_xlabel("share of draws below the truth")
            axes.tick_params(labelbottom=True)
    for axes in grid[:, 0]:
        axes.set_ylabel("ECDF − uniform")
    return figure
