"""Predictions of networks of one input along it, with bands, over the data."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from onebasin.posteriors.view import View

from ...page.page import FigureItem
from ...plots.bands import PLACES, Curve, band_in_words, draw_predictive_bands, network_bands

MOST = 8


def bands(views: Mapping[str, View]) -> FigureItem | None:
    """Draw predictive bands of regression networks of one input that keep their data; None for anything else."""
    drawn = {name: view for name, view in views.items() if _can_be_drawn(view)}
    if not drawn:
        return None
    first = next(iter(drawn.values()))
    x, y = np.asarray(first.x, float)[:, 0], first.y
    places = np.linspace(x.min(), x.max(), PLACES)
    made = network_bands(dict(list(drawn.items())[:MOST]), places)
    data = Curve(x, np.asarray(y, float).reshape(len(x), -1)[:, 0]) if y is not None else None
    return FigureItem(
        draw_predictive_bands(made, data=data),
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
