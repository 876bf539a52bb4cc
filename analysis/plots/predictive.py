"""Predictions against data: bands over one input, means against data, or predicted data sets among the observed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..figures.picture import Picture
from ..figures.predictive_band import Curve, plot_predictive_band, predictive_band
from ..posterior.view import View
from .given import Posteriors, views_of

PLACES = 120


def plot_predictive(
    posteriors: Posteriors,
    *,
    x: Any = None,
    y: Any = None,
    truth: Callable[[np.ndarray], np.ndarray] | None = None,
    seed: int = 0,
) -> Picture:
    """Draw what posteriors predict, over the data.

    Parameters
    ----------
    posteriors : DataTree, path, what a sampler returned, or a mapping of str to these
        A posterior, or several by name.
    x : array (obs, in), optional
        Inputs of a network to predict at; by default those that it was fitted to.
    y : array (obs,) or (obs, out), optional
        What was observed at `x`.
    truth : callable, optional
        The true function of a network's one input, from inputs (obs, in) to values (obs,).
    seed : int
        Of the noise.

    Returns
    -------
    matplotlib.figure.Figure
        A panel a posterior.

    Raises
    ------
    ValueError
        If a posterior has nothing to predict with, or `x` does not fit the network.

    Examples
    --------
    >>> figure = ob.plot_predictive({"NUTS": weights})
    """
    views = views_of(posteriors)
    bands = {name: _band(view, x, seed) for name, view in views.items()}
    first = next(iter(views.values()))
    data = Curve(np.asarray(first.x)[:, 0], np.asarray(first.y).reshape(len(first.x), -1)[:, 0])
    places = next(iter(bands.values())).coordinate
    true = None if truth is None else Curve(places, np.asarray(truth(places[:, None])).ravel())
    return plot_predictive_band(bands, data=data, truth=true).on_paper("")


def _band(view: View, x: Any, seed: int):
    from onebasin.models.networks.prediction import predict

    from ..predictive.points import sigma_of

    own = np.asarray(view.x if x is None else x, float)
    places = np.linspace(own.min(), own.max(), PLACES)
    draws = {name: view.values(name) for name in view.variables}
    function = np.asarray(predict(view.network, draws, places[:, None]), np.float64)[..., 0]
    noise = np.random.default_rng(seed).normal(size=function.shape)
    return predictive_band(places, function + sigma_of(view.network, draws)[..., None] * noise)
