"""Predictive mean with its 50 % and 95 % bands along one coordinate, over the data.

Convention: the coordinate is a single input, or any line through input space that the caller has
laid; bands are central and include the observation noise where the draws do. Of a network they are of so many draws as
a picture needs, and noise is one number a draw, the same at all points: every point's own distribution is what it
should be, and a band along a line has smooth edges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes

from onebasin.base.errors import ArgumentError
from onebasin.base.table import format_number
from onebasin.posteriors.view import View

from ..predictive.scores import central_interval
from .style import ACCENT, CHAIN_COLOURS, INK, Picture, add_legend, new_panels

Line = Float[np.ndarray, " obs"]
Function = Callable[[np.ndarray], Any]
PLACES = 120
"""Places along an input at which a band is computed."""


@dataclass(frozen=True, eq=False)
class PredictiveBand:
    """A predictive distribution along one coordinate, which increases: its mean, and the ends of two bands."""

    coordinate: Line
    mean: Line
    inner: tuple[Line, Line]  # The 50 % band.
    outer: tuple[Line, Line]  # The 95 % band.


@dataclass(frozen=True, eq=False)
class Curve:
    """Points (x, y): data, or a true function."""

    x: Line
    y: Line


def predictive_band(
    coordinate: Line, draws: Float[np.ndarray, "chain draw obs"], *, mean: Line | None = None
) -> PredictiveBand:
    """Summarise predictive draws of one output along a coordinate, in any order; the band is sorted by it.

    `mean` is the predictive mean where it is known without the error that noise brings; by default the draws'.
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
    """Predict along the one input of regression networks, with noise, by the posterior's name."""
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
    """Draw predictive bands, one panel a posterior, over the data and the true function."""
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
    """Lay out a panel for each posterior's bands."""
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
    """Draw bands, the widest first, each by its ends, its opacity and its label; and the mean as a line over them."""
    for low, high, alpha, label in bands:
        axes.fill_between(
            coordinate, low, high, color=ACCENT, alpha=alpha, linewidth=0, label=label
        )
    axes.plot(coordinate, mean, color=ACCENT, linewidth=1.8, label="predictive mean")


def draw_curves(axes: Axes, data: Curve | None, truth: Curve | None) -> None:
    """Draw what predictions are compared with: the true function as a line, data as dots."""
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
    """Say where the mean and the 95 % band lie at both ends and in the middle, and how many of the data lie in it."""
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
    """Evaluate the true function along one input; refuse it unless it returns one value for each place."""
    values = np.asarray(truth(places[:, None]), np.float64)
    if values.size != places.size:
        raise ArgumentError(
            f"`truth` returned an array of shape {values.shape} for {places.size} inputs of shape "
            f"({places.size}, 1): return one value for each."
        )
    return Curve(places, values.ravel())


DRAWS = 1000
"""Draws of all chains that are taken at most."""


def draw_regression(
    view: View, x: Float[np.ndarray, "obs in"], *, output: int, seed: int
) -> tuple[Float[np.ndarray, " obs"], Float[np.ndarray, "chain draw obs"]]:
    """Predict one output at some points by a posterior of a network with a Gaussian likelihood.

    Returns its mean over draws, without noise, and draws with noise.
    """
    from onebasin.models.networks.prediction import predict_with_noise  # here: it loads JAX

    assert view.network is not None
    draws = few_draws(view)
    function, sigma = (
        part[..., output].astype(np.float64) for part in predict_with_noise(view.network, draws, x)
    )
    noise = np.random.default_rng(seed).normal(size=function.shape[:2])
    predicted = function + sigma * noise[..., None]
    return function.mean(axis=(0, 1)), predicted


def few_draws(view: View) -> dict[str, np.ndarray]:
    """Every k-th draw of all variables."""
    every = max(1, -(-view.num_chains * view.num_draws // DRAWS))
    return {name: view.values(name)[:, ::every] for name in view.variables}
