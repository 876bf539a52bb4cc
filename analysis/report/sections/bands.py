"""What networks of one input predict along it, with bands, over the data."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from onebasin.base.numbers import format_number
from onebasin.posteriors.view import View

from ...figures.predictive_band import Curve, PredictiveBand, plot_predictive_band, predictive_band
from ...page.page import FigureItem

PLACES = 80
MOST = 8


def bands(views: Mapping[str, View]) -> FigureItem | None:
    """Draw predictive bands of regression networks of one input that keep their data; None for anything else."""
    drawn = {name: view for name, view in views.items() if _can_be_drawn(view)}
    if not drawn:
        return None
    first = next(iter(drawn.values()))
    x, y = np.asarray(first.x, float)[:, 0], first.y
    places = np.linspace(x.min(), x.max(), PLACES)
    made = {name: _band(view, places) for name, view in list(drawn.items())[:MOST]}
    data = Curve(x, np.asarray(y, float).reshape(len(x), -1)[:, 0]) if y is not None else None
    return FigureItem(
        plot_predictive_band(made, data=data),
        caption="Predictions with noise along the input, over the data: mean, 50 % and 95 % bands.",
        alt=" ".join(band_in_words(name, band, data) for name, band in made.items()),
    )


def _can_be_drawn(view: View) -> bool:
    if view.network is None or view.x is None:
        return False
    from onebasin.models.networks.likelihood import Gaussian  # here: it loads JAX

    model, x = view.network, view.x
    return (
        not model.is_classifier
        and isinstance(model.likelihood, Gaussian)
        and model.network.in_dim == 1
        and bool(np.isfinite(x).all())
    )


def _band(view: View, places: np.ndarray) -> PredictiveBand:
    from ...predictive.drawn import draw_regression  # brings JAX along

    drawn = draw_regression(view, places[:, None])
    return predictive_band(places, drawn.draws, mean=drawn.mean)


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
