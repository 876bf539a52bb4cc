"""Predictive mean with its epistemic and its total standard deviation along one input, over the data.

Convention: bands are of one standard deviation on either side of the mean, as in Figure 1 of Kurle, Januschowski,
Gasthaus and Wang 2021. Where there are data, what lies outside their range is shaded, and the vertical axis shows at
most twice the range of the values observed on either side of it, beyond which a network's prior would flatten all else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from .picture import Picture
from .predictive_band import Curve, Line, band_panels, draw_bands, draw_curves
from .style import GRID, add_legend

_REACH = 2.0
"""Ranges of the observed values that the vertical axis shows at most on either side of them."""


@dataclass(frozen=True, eq=False)
class UncertaintyBand:
    """A predictive distribution's mean and standard deviations along one input, which increases."""

    coordinate: Line
    mean: Line
    epistemic: Line
    total: Line


def plot_uncertainty_bands(
    bands: Mapping[str, UncertaintyBand],
    *,
    data: Curve | None = None,
    truth: Curve | None = None,
    x_label: str = "x",
    y_label: str = "y",
    columns: int = 2,
) -> Picture:
    """Draw mean, epistemic and total bands over the data, one panel per posterior.

    Parameters
    ----------
    bands
        The bands, by the posterior's name.
    data
        Observed points, drawn in every panel; what lies outside their range is shaded.
    truth
        The true function, drawn in every panel.
    x_label, y_label
        Names of the axes, with units.
    columns
        Panels in a row.
    """
    figure, panels = band_panels(bands, columns=columns, x_label=x_label, y_label=y_label)
    for axes, band in zip(panels, bands.values(), strict=True):
        spreads = ((band.total, 0.18, "total: ± 1 sd"), (band.epistemic, 0.34, "epistemic: ± 1 sd"))
        ends = ((band.mean - sd, band.mean + sd, alpha, label) for sd, alpha, label in spreads)
        draw_bands(axes, band.coordinate, band.mean, ends)
        draw_curves(axes, data, truth)
        if data is not None:
            _shade_outside(axes, band, data)
        axes.set_xlim(band.coordinate[0], band.coordinate[-1])
    limits = _limits(bands, data)
    if np.isfinite(limits).all():  # panels share their axes
        panels[0].set_ylim(*limits)
    add_legend(figure, *panels[0].get_legend_handles_labels(), columns=3)
    return figure


def _shade_outside(axes: Axes, band: UncertaintyBand, data: Curve) -> None:
    low, high = float(np.min(data.x)), float(np.max(data.x))
    first, last = float(band.coordinate[0]), float(band.coordinate[-1])
    label = "outside the data"
    for start, end in ((first, min(low, last)), (max(high, first), last)):
        if start < end:
            axes.axvspan(start, end, color=GRID, alpha=0.45, linewidth=0, zorder=0, label=label)
            label = ""


def _limits(bands: Mapping[str, UncertaintyBand], data: Curve | None) -> tuple[float, float]:
    """Ends of the vertical axis: what is drawn, as far as it does not lie too far from the data."""
    lows = [np.min(band.mean - band.total) for band in bands.values()]
    highs = [np.max(band.mean + band.total) for band in bands.values()]
    low, high = float(min(lows)), float(max(highs))
    if data is not None:
        least, most = float(np.min(data.y)), float(np.max(data.y))
        reach = _REACH * (most - least)
        low, high = max(min(low, least), least - reach), min(max(high, most), most + reach)
    margin = 0.04 * (high - low)
    return low - margin, high + margin
