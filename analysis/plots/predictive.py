"""Predictions against data: bands over one input, means against data, reliability, or predicted data sets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from onebasin.base.checks import check_seed
from onebasin.base.errors import ArgumentError
from onebasin.base.numbers import format_number
from onebasin.posteriors import schema
from onebasin.posteriors.view import View

from ..figures.against_data import Intervals, Reliability, draw_intervals, draw_reliability
from ..figures.picture import Picture
from ..figures.predictive_band import Curve, plot_predictive_band, predictive_band
from ..figures.predictive_check import Check, draw_checks
from ..predictive.classification import class_log_probability
from ..predictive.drawn import draw_regression, few_draws
from ..predictive.points import Points
from ..report.sections.bands import band_in_words
from .given import Posteriors, titled, views_of

if TYPE_CHECKING:
    from onebasin.models.networks.bayesian import BayesianNetwork


PLACES = 120
"""Places along an input at which a band is computed."""
POINTS = 400
"""Points that are drawn at most, where each has an interval."""
VARIABLES = 4
"""Predicted variables that are drawn at most, where a posterior has several."""

Function = Callable[[np.ndarray], Any]


def plot_predictive(
    posteriors: Posteriors,
    *,
    x: Any = None,
    y: Any = None,
    truth: Function | None = None,
    output: int = 0,
    seed: int = 0,
) -> Picture:
    """Draw what posteriors predict, against the data.

    Parameters
    ----------
    posteriors : DataTree, path, what a sampler returned, or a mapping of str to these
        A posterior, or several by name; all of networks of one kind, or none of networks.
    x : array (obs, in), optional
        Inputs of networks; by default those that the first of them was fitted to and keeps. Where there is one input,
        a band goes from the smallest to the largest of them.
    y : array (obs,) or (obs, out), optional
        Targets or labels at `x`.
    truth : callable, optional
        The true function, from inputs (obs, 1) to values (obs,), of a regression with one input.
    output : int
        Which output of a regression, counted from 0.
    seed : int
        Of the noise.

    Returns
    -------
    matplotlib.figure.Figure
        A panel a posterior. Of a regression with one input: mean, 50 % and 95 % bands with noise, over the data; with
        several: mean and 95 % interval of every prediction against what was observed. Of a classifier: how often its
        most probable class is right, by its probability. Of any other model: predicted data sets (group
        `posterior_predictive`) among the observed one, a panel a variable.

    Raises
    ------
    ValueError
        If networks are mixed with other posteriors, inputs or predictions are missing, or `x` and `y` do not fit.

    Examples
    --------
    >>> figure = ob.plot_predictive({"NUTS": weights})
    """
    check_seed(seed)
    views = views_of(posteriors)
    first = next(iter(views.values()))
    if any((view.network is None) != (first.network is None) for view in views.values()):
        raise ArgumentError(
            "`posteriors` hold both networks and posteriors of other models: draw them apart."
        )
    model = first.network
    if model is None:
        if x is not None or y is not None or truth is not None:
            raise ArgumentError(
                f"`{first.argument}` is of no network that could predict at `x`: leave `x`, `y` and `truth` out."
            )
        return _checks(views)
    points = _points(first, model, x, y)
    if not 0 <= output < model.network.out_dim:
        raise ArgumentError(
            f"`output` is {output}, and the network has {model.network.out_dim}: choose one of them, from 0."
        )
    if model.is_classifier:
        return _reliability(views, points)
    if model.network.in_dim == 1:
        return _bands(views, points, truth, output, seed)
    if truth is not None:
        raise ArgumentError(
            f"`truth` is drawn over one input, and the network has {model.network.in_dim}: leave it out."
        )
    return _intervals(views, points, output, seed)


def _points(view: View, model: BayesianNetwork, x: Any, y: Any) -> Points:
    """Inputs, and what was observed there."""
    if x is None and y is not None:
        raise ArgumentError("`y` is given without `x`: give the inputs that it belongs to.")
    if x is None and view.x is None:
        raise ArgumentError(f"`{view.argument}` keeps no inputs to predict at: give `x`.")
    return Points.of(model, view.x if x is None else x, view.y if x is None else y)


def _bands(
    views: Mapping[str, View], points: Points, truth: Function | None, output: int, seed: int
) -> Picture:
    places = np.linspace(points.x.min(), points.x.max(), PLACES)
    bands = {}
    for name, view in views.items():
        drawn = draw_regression(view, places[:, None], output=output, seed=seed)
        bands[name] = predictive_band(places, drawn.draws, mean=drawn.mean)
    data = None
    if points.y is not None:
        observed = points.y.reshape(len(points.x), -1)[:, output].astype(np.float64)
        data = Curve(points.x[:, 0].astype(np.float64), observed)
    true = None if truth is None else truth_at(truth, places)
    figure = plot_predictive_band(titled(bands), data=data, truth=true)
    return figure.on_paper(" ".join(band_in_words(n, band, data) for n, band in bands.items()))


def truth_at(truth: Function, places: np.ndarray) -> Curve:
    """The true function along one input.

    Raises
    ------
    ValueError
        If it does not return one value for each place.
    """
    values = np.asarray(truth(places[:, None]), np.float64)
    if values.size != places.size:
        raise ArgumentError(
            f"`truth` returned an array of shape {values.shape} for {places.size} inputs of shape "
            f"({places.size}, 1): return one value for each."
        )
    return Curve(places, values.ravel())


def _observed(points: Points) -> np.ndarray:
    if points.y is None:
        raise ArgumentError(
            "`y` is missing, and there is nothing to hold predictions against: give it."
        )
    return points.y


def _intervals(views: Mapping[str, View], points: Points, output: int, seed: int) -> Picture:
    every = max(1, -(-len(points.x) // POINTS))
    observed = _observed(points).reshape(len(points.x), -1)[::every, output].astype(np.float64)
    found, told = {}, []
    for name, view in views.items():
        drawn = draw_regression(view, points.x[::every], output=output, seed=seed)
        low, high = np.quantile(drawn.draws, [0.025, 0.975], axis=(0, 1))
        found[name] = Intervals(drawn.mean, low, high, observed)
        error = float(np.sqrt(np.mean((drawn.mean - observed) ** 2)))
        share = 100 * float(found[name].inside.mean())
        told.append(
            f"{name}: {share:.0f} % of {observed.size} observations lie in their 95 % intervals; the root mean "
            f"squared error of the mean is {format_number(error)}."
        )
    return draw_intervals(titled(found), label="y").on_paper(" ".join(told))


def _reliability(views: Mapping[str, View], points: Points) -> Picture:
    from onebasin.models.networks.prediction import predict  # here: it loads JAX

    labels = _observed(points)
    found, told = {}, []
    for name, view in views.items():
        assert view.network is not None
        logits = predict(view.network, few_draws(view), points.x)
        probability = np.exp(class_log_probability(logits))
        right = probability.argmax(axis=-1) == labels
        confidence = np.asarray(probability.max(axis=-1), np.float64)
        found[name] = Reliability(confidence, right)
        told.append(
            f"{name}: the most probable class is right in {100 * right.mean():.0f} % of {right.size} cases, and its "
            f"probability is {100 * confidence.mean():.0f} % on average."
        )
    return draw_reliability(titled(found)).on_paper(" ".join(told))


def _checks(views: Mapping[str, View]) -> Picture:
    checks: dict[str, Check] = {}
    for name, view in views.items():
        own = _checks_of(view)
        several = len(views) > 1 and len(own) > 1
        for check in own:
            title = f"{name}: {check.name}" if several else name if len(views) > 1 else check.name
            checks[title] = check
    told = [_check_in_words(title, check) for title, check in checks.items()]
    return draw_checks(checks if len(checks) > 1 else {"": next(iter(checks.values()))}).on_paper(
        " ".join(told)
    )


def _checks_of(view: View) -> list[Check]:
    """What is both predicted and observed, all finite, of the same shape."""
    predicted, observed = (
        view.group(name) for name in (schema.POSTERIOR_PREDICTIVE, schema.OBSERVED_DATA)
    )
    found = []
    if predicted is not None and observed is not None:
        for name in map(str, predicted.data_vars):
            if name in observed and observed[name].dtype.kind in "biuf":
                data = np.asarray(observed[name].values, np.float64)
                draws = predicted[name].transpose(*schema.SAMPLE_DIMS, ...).values
                if draws.shape[2:] == data.shape and data.size:
                    flat = draws.reshape(-1, data.size).astype(np.float64)
                    if np.isfinite(data).all() and np.isfinite(flat).all():
                        found.append(Check(name, data.ravel(), flat))
    if not found:
        kept = view.parsed(schema.LEFT_OUT)
        why = kept.get(schema.POSTERIOR_PREDICTIVE) if isinstance(kept, dict) else None
        reason = f" ({str(why).rstrip('.')})" if why else ""
        raise ArgumentError(
            f"`{view.argument}` holds no predicted data beside the observed{reason}: keep them in the groups "
            "`posterior_predictive` and `observed_data`, under one name and finite."
        )
    return found[:VARIABLES]


def _check_in_words(title: str, check: Check) -> str:
    low, high = np.quantile(check.predicted, [0.05, 0.95], axis=0)
    inside = 100 * float(((check.observed >= low) & (check.observed <= high)).mean())
    told = []
    for word, of in (("mean", np.mean), ("standard deviation", np.std)):
        ends = np.quantile(of(check.predicted, axis=1), [0.05, 0.95])
        told.append(
            f"the observed {word} is {format_number(float(of(check.observed)))}, predicted are "
            f"{format_number(float(ends[0]))} to {format_number(float(ends[1]))}"
        )
    return (
        f"{title}: {'; '.join(told)}; {inside:.0f} % of observations lie in their 90 % intervals."
    )
