"""Plots of regressions along one coordinate, with the data: predictive bands, or epistemic and total uncertainty.

The coordinate is the only input, or a line through input space that the caller chooses. Predictive bands are central
and include the observation noise if the draws do. For a network, they use only as many draws as a picture needs. Each
draw has the same noise value at all points, so the distribution at each point is correct and the band has smooth edges.

Bands of uncertainty extend one standard deviation to either side of the mean, as in Figure 1 of Kurle, Januschowski,
Gasthaus and Wang 2021. The region outside the data's range is shaded. The vertical axis extends beyond the observed
values by at most twice their range, because wide prior bands would flatten everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes

from onebasin.base.checks import check_count, checks_arguments
from onebasin.base.errors import ArgumentError
from onebasin.base.table import format_number
from onebasin.posteriors.view import View

from ..predictive.predictions import Points, inputs_of, inside_range, network_of
from ..predictive.scores import central_interval
from .posteriors import Posteriors, titled, views_of
from .style import ACCENT, CHAIN_COLOURS, GRID, INK, Picture, add_legend, new_panels

Line = Float[np.ndarray, " obs"]
Function = Callable[[np.ndarray], Any]
PLACES = 120
"""Number of points along an input at which a band is computed."""


@dataclass(frozen=True, eq=False)
class PredictiveBand:
    """A predictive distribution along an increasing coordinate: its mean and the ends of two bands."""

    coordinate: Line
    mean: Line
    inner: tuple[Line, Line]  # The 50 % band.
    outer: tuple[Line, Line]  # The 95 % band.


@dataclass(frozen=True, eq=False)
class Curve:
    """Points (x, y) of data or of a true function."""

    x: Line
    y: Line


def predictive_band(
    coordinate: Line, draws: Float[np.ndarray, "chain draw obs"], *, mean: Line | None = None
) -> PredictiveBand:
    """Summarise predictive draws of one output along a coordinate, after sorting it.

    `mean` is the predictive mean, if known without noise; by default the mean of the draws.
    """
    coordinate, draws = np.asarray(coordinate, np.float64), np.asarray(draws, np.float64)
    order = np.argsort(coordinate)
    draws = draws[..., order]
    inner, outer = (central_interval(draws[..., None], probability=p) for p in (0.5, 0.95))
    return PredictiveBand(
        coordinate[order],
        draws.mean(axis=(0, 1)) if mean is None else np.asarray(mean, np.float64)[order],
        (inner[0][:, 0], inner[1][:, 0]),
        (outer[0][:, 0], outer[1][:, 0]),
    )


def network_bands(
    views: Mapping[str, View], places: Line, *, output: int = 0, seed: int = 0
) -> dict[str, PredictiveBand]:
    """Predict, with noise, along the only input of regression networks, for each posterior."""
    bands = {}
    for name, view in views.items():
        mean, draws = draw_regression(view, places[:, None], output=output, seed=seed)
        bands[name] = predictive_band(places, draws, mean=mean)
    return bands


def draw_predictive_bands(
    bands: Mapping[str, PredictiveBand],
    *,
    data: Curve | None = None,
    truth: Curve | None = None,
    x_label: str = "x",
    columns: int = 2,
) -> Picture:
    """Plot predictive bands, one panel per posterior, with the data and the true function."""
    figure, panels = band_panels(bands, columns=columns, x_label=x_label)
    for axes, band in zip(panels, bands.values(), strict=True):
        ends = ((*band.outer, 0.18, "95 %"), (*band.inner, 0.34, "50 %"))
        draw_bands(axes, band.coordinate, band.mean, ends)
        draw_curves(axes, data, truth)
        axes.locator_params(nbins=5)
    add_legend(figure, *panels[0].get_legend_handles_labels(), columns=5)
    return figure


def band_panels(
    bands: Mapping[str, object], *, columns: int, x_label: str = "x"
) -> tuple[Picture, list[Axes]]:
    """Create a figure with a panel for the bands of each posterior."""
    return new_panels(
        bands,
        columns=columns,
        panel_size=(3.9, 2.7) if len(bands) > 1 else (5.8, 3.2),
        margin=(0.3, 0.5),
        x_label=x_label,
        y_label="y",
    )


def draw_bands(
    axes: Axes, coordinate: Line, mean: Line, bands: Iterable[tuple[Line, Line, float, str]]
) -> None:
    """Plot bands, the widest first, and the mean as a line."""
    for low, high, alpha, label in bands:
        axes.fill_between(
            coordinate, low, high, color=ACCENT, alpha=alpha, linewidth=0, label=label
        )
    axes.plot(coordinate, mean, color=ACCENT, linewidth=1.8, label="predictive mean")


def draw_curves(axes: Axes, data: Curve | None, truth: Curve | None) -> None:
    """Plot the true function as a line and data as dots."""
    if truth is not None:
        order = np.argsort(truth.x)
        axes.plot(
            np.asarray(truth.x)[order],
            np.asarray(truth.y)[order],
            color=CHAIN_COLOURS[5],
            linewidth=1.4,
            linestyle=(0, (4, 2)),
            label="true function",
        )
    if data is not None:
        axes.scatter(data.x, data.y, s=9, color=INK, alpha=0.6, linewidths=0, label="data")


def band_in_words(name: str, band: PredictiveBand, data: Curve | None) -> str:
    """Describe the mean and the 95 % band at both ends and in the middle, and the share of data in the band."""
    ends = ", ".join(
        f"{format_number(float(band.mean[k]))} (95 % band {format_number(float(band.outer[0][k]))} to "
        f"{format_number(float(band.outer[1][k]))}) at {format_number(float(band.coordinate[k]))}"
        for k in (0, len(band.mean) // 2, len(band.mean) - 1)
    )
    told = f"{name}: the mean is {ends}."
    if data is None:
        return told
    low, high = (np.interp(data.x, band.coordinate, end) for end in band.outer)
    inside = 100 * float(((data.y >= low) & (data.y <= high)).mean())
    return f"{told} {inside:.0f} % of the data lie in the 95 % band."


def truth_at(truth: Function, places: np.ndarray) -> Curve:
    """Evaluate the true function along one input. Reject it unless it returns one value per point."""
    values = np.asarray(truth(places[:, None]), np.float64)
    if values.size != places.size:
        raise ArgumentError(
            f"`truth` must return one value for each input, but returned an array of shape {values.shape} for inputs "
            f"of shape ({places.size}, 1)."
        )
    return Curve(places, values.ravel())


DRAWS = 1000
"""Largest number of draws to use, over all chains."""


def draw_regression(
    view: View, x: Float[np.ndarray, "obs in"], *, output: int, seed: int
) -> tuple[Float[np.ndarray, " obs"], Float[np.ndarray, "chain draw obs"]]:
    """Predict one output of a network with a Gaussian likelihood.

    Return the mean over draws without noise, and the draws with noise.
    """
    from onebasin.models.networks.bayesian import predict_with_noise  # It loads JAX.

    assert view.network is not None
    draws = few_draws(view)
    function, sigma = (
        part[..., output].astype(np.float64) for part in predict_with_noise(view.network, draws, x)
    )
    noise = np.random.default_rng(seed).normal(size=function.shape[:2])
    predicted = function + sigma * noise[..., None]
    return function.mean(axis=(0, 1)), predicted


def few_draws(view: View) -> dict[str, np.ndarray]:
    """Return every k-th draw of all variables, about `DRAWS` in total."""
    every = max(1, -(-view.num_chains * view.num_draws // DRAWS))
    return {name: view.values(name)[:, ::every] for name in view.variables}


def check_output(output: int, num_outputs: int) -> None:
    """Reject the number of an output that a network does not have."""
    if not 0 <= output < num_outputs:
        raise ArgumentError(
            f"`output` is {output}, but the network has {num_outputs} output(s). Give the number of an output, "
            "counted from 0."
        )


_REACH = 2.0
"""Largest extension of the vertical axis beyond the observed values, in multiples of their range."""


@checks_arguments
def plot_uncertainty(
    posteriors: Posteriors,
    x: Any = None,
    *,
    truth: Function | None = None,
    output: int = 0,
    columns: int = 2,
) -> Picture:
    """Plot predictions of networks along one input, in and beyond the data, with epistemic and total uncertainty.

    Parameters
    ----------
    posteriors : DataTree, path, what a sampler returned, or a mapping of str to these
        A posterior, or several by name, of regression networks with one input.
    x : array (obs, in), optional
        Bands extend from the smallest to the largest of these inputs; by default half a range beyond the data on each
        side.
    truth : callable, optional
        The true function, from inputs (obs, 1) to values (obs,).
    output : int
        The output to plot, counted from 0.
    columns : int
        Number of panels in a row.

    Returns
    -------
    matplotlib.figure.Figure
        One panel per posterior: the predictive mean plus and minus one standard deviation (epistemic and total), with
        the data stored in the first posterior. The region outside the range of the data is shaded. The vertical axis
        extends beyond the observed values by at most twice their range.

    Raises
    ------
    ValueError
        If a posterior does not belong to a regression network with one input, if there is no such `output`, if `x` is
        neither given nor stored, or if `columns` is not a positive whole number.

    References
    ----------
    Kurle, Januschowski, Gasthaus and Wang 2021, On symmetries in variational Bayesian neural nets, Figure 1.

    Examples
    --------
    >>> figure = ob.plot.uncertainty({"NUTS": weights}, truth=lambda x: np.sin(3 * x[:, 0]))
    """
    from onebasin.models.networks.bayesian import predict_with_noise  # It loads JAX.

    check_count("columns", columns)
    views = views_of(posteriors)
    for view in views.values():
        model = network_of(view)
        if model.is_classifier or model.network.in_dim != 1:
            inputs = f"a network with {model.network.in_dim} inputs"
            of = "a classifier" if model.is_classifier else inputs
            raise ArgumentError(
                f"`{view.argument}` is the posterior of {of}, but bands need a regression network with one input. "
                "Give the posterior of such a network."
            )
        check_output(output, model.network.out_dim)
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
            where = {"inside the range of the data": inside, "outside it": ~inside}
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
    """The mean and standard deviations of a predictive distribution along an increasing input."""

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
    """Plot the mean with epistemic and total bands, one panel per posterior. Shade the region outside the data."""
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
    # Show everything that is not too far from the data.
    lows = [np.min(band.mean - band.total) for band in bands.values()]
    highs = [np.max(band.mean + band.total) for band in bands.values()]
    low, high = float(min(lows)), float(max(highs))
    if data is not None:
        least, most = float(np.min(data.y)), float(np.max(data.y))
        reach = _REACH * (most - least)
        low, high = max(min(low, least), least - reach), min(max(high, most), most + reach)
    margin = 0.04 * (high - low)
    limits = low - margin, high + margin
    if np.isfinite(limits).all():  # All panels share their axes.
        panels[0].set_ylim(*limits)
    add_legend(figure, *panels[0].get_legend_handles_labels(), columns=3)
    return figure
