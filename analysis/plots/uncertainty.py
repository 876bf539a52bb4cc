"""Predictions of regressions along one input, inside the data's range and outside it, with both kinds of uncertainty.

Convention: bands are of one standard deviation on either side of the mean, as in Figure 1 of Kurle, Januschowski,
Gasthaus and Wang 2021. Where there are data, what lies outside their range is shaded, and the vertical axis shows at
most twice the range of the values observed on either side of it, beyond which a network's prior would flatten all else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from onebasin.base.checks import check_count, checks_arguments
from onebasin.base.errors import ArgumentError
from onebasin.base.table import format_number

from ..predictive.predictions import Points, inputs_of, inside_range, network_of
from .bands import PLACES, Curve, Function, Line, band_panels, draw_bands, draw_curves, truth_at
from .posteriors import Posteriors, titled, views_of
from .style import GRID, Picture, add_legend

_REACH = 2.0
"""Ranges of the observed values that the vertical axis shows at most on either side of them."""


@checks_arguments
def plot_uncertainty(
    posteriors: Posteriors,
    x: Any = None,
    *,
    truth: Function | None = None,
    output: int = 0,
    columns: int = 2,
) -> Picture:
    """Draw what networks predict along one input, with epistemic and total standard deviations, beyond the data too.

    Parameters
    ----------
    posteriors : DataTree, path, what a sampler returned, or a mapping of str to these
        A posterior, or several by name; of regressions with one input.
    x : array (obs, in), optional
        Bands go from the smallest to the largest of these inputs; by default half a range beyond the data on either
        side.
    truth : callable, optional
        The true function, from inputs (obs, 1) to values (obs,).
    output : int
        Which output, counted from 0.
    columns : int
        Panels in a row.

    Returns
    -------
    matplotlib.figure.Figure
        A panel a posterior: the predictive mean with one standard deviation on either side, epistemic and total, over
        the data that the first posterior keeps; outside their range the ground is shaded. The vertical axis ends where
        bands are further from the data than twice the range of what was observed.

    Raises
    ------
    ValueError
        If a posterior is of no network, of a classifier, or of one with several inputs or fewer outputs, if `x` is not
        given and no inputs were kept, or if `columns` is no count.

    References
    ----------
    Kurle, Januschowski, Gasthaus and Wang 2021, On symmetries in variational Bayesian neural nets, Figure 1.

    Examples
    --------
    >>> figure = ob.plot.uncertainty({"NUTS": weights}, truth=lambda x: np.sin(3 * x[:, 0]))
    """
    from onebasin.models.networks.prediction import predict_with_noise  # here: it loads JAX

    check_count("columns", columns)
    views = views_of(posteriors)
    for view in views.values():
        model = network_of(view)
        if model.is_classifier or model.network.in_dim != 1:
            inputs = f"a network of {model.network.in_dim} inputs"
            of = "a classifier" if model.is_classifier else inputs
            raise ArgumentError(
                f"`{view.argument}` is of {of}, and bands are drawn of a regression along its one input."
            )
        if not 0 <= output < model.network.out_dim:
            raise ArgumentError(
                f"`output` is {output}, and the network has {model.network.out_dim}: choose one of them, from 0."
            )
    first = next(iter(views.values()))
    data = None
    if first.x is not None and first.y is not None:
        x_kept = np.asarray(first.x, np.float64)[:, 0]
        targets = np.asarray(first.y, np.float64).reshape(len(x_kept), -1)
        data = Curve(x_kept, targets[:, output])
    along = Points.of(network_of(first), inputs_of(first, x), None).x
    low, high = float(along.min()), float(along.max())
    beyond = (high - low) / 2 if x is None else 0.0
    places = np.linspace(low - beyond, high + beyond, PLACES)
    true = None if truth is None else truth_at(truth, places)
    bands = {}
    for name, view in views.items():
        draws = {variable: view.values(variable) for variable in view.variables}
        means, sds = predict_with_noise(network_of(view), draws, places[:, None])
        means, sds = (part[..., output].astype(np.float64) for part in (means, sds))
        epistemic = means.std(axis=(0, 1))
        total = np.hypot(epistemic, np.sqrt(np.square(sds).mean(axis=(0, 1))))
        bands[name] = UncertaintyBand(places, means.mean(axis=(0, 1)), epistemic, total)
    figure = draw_uncertainty(titled(bands), data=data, truth=true, columns=columns)
    told = []
    for name, band in bands.items():
        where: Mapping[str, np.ndarray] = {"over all": np.ones(len(band.mean), bool)}
        if data is not None:
            inside = inside_range(band.coordinate[:, None], data.x[:, None])
            where = {"inside the data's range": inside, "outside it": ~inside}
        sizes = [
            f"epistemic {_rms(band.epistemic[rows])} and total {_rms(band.total[rows])} {place}"
            for place, rows in where.items()
            if rows.any()
        ]
        told.append(f"{name}: standard deviations (root mean square) are {', '.join(sizes)}.")
    return figure.on_paper(" ".join(told))


def _rms(values: np.ndarray) -> str:
    return format_number(float(np.sqrt(np.mean(values**2))))


@dataclass(frozen=True, eq=False)
class UncertaintyBand:
    """A predictive distribution's mean and standard deviations along one input, which increases."""

    coordinate: Line
    mean: Line
    epistemic: Line
    total: Line


def draw_uncertainty(
    bands: Mapping[str, UncertaintyBand],
    *,
    data: Curve | None = None,
    truth: Curve | None = None,
    columns: int = 2,
) -> Picture:
    """Draw mean, epistemic and total bands, one panel a posterior; what lies outside the data's range is shaded."""
    figure, panels = band_panels(bands, columns=columns)
    for axes, band in zip(panels, bands.values(), strict=True):
        spreads = ((band.total, 0.18, "total: ± 1 sd"), (band.epistemic, 0.34, "epistemic: ± 1 sd"))
        ends = ((band.mean - sd, band.mean + sd, alpha, label) for sd, alpha, label in spreads)
        draw_bands(axes, band.coordinate, band.mean, ends)
        draw_curves(axes, data, truth)
        if data is not None:
            low, high = float(np.min(data.x)), float(np.max(data.x))
            first, last = float(band.coordinate[0]), float(band.coordinate[-1])
            label = "outside the data"
            for start, end in ((first, min(low, last)), (max(high, first), last)):
                if start < end:
                    axes.axvspan(
                        start, end, color=GRID, alpha=0.45, linewidth=0, zorder=0, label=label
                    )
                    label = ""
        axes.set_xlim(band.coordinate[0], band.coordinate[-1])
    # The axis shows what is drawn, as far as it does not lie too far from the data.
    lows = [np.min(band.mean - band.total) for band in bands.values()]
    highs = [np.max(band.mean + band.total) for band in bands.values()]
    low, high = float(min(lows)), float(max(highs))
    if data is not None:
        least, most = float(np.min(data.y)), float(np.max(data.y))
        reach = _REACH * (most - least)
        low, high = max(min(low, least), least - reach), min(max(high, most), most + reach)
    margin = 0.04 * (high - low)
    limits = low - margin, high + margin
    if np.isfinite(limits).all():  # panels share their axes
        panels[0].set_ylim(*limits)
    add_legend(figure, *panels[0].get_legend_handles_labels(), columns=3)
    return figure
