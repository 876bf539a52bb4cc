"""Plots that compare predictions with data, and plots of predictions for new data.

Data are compared with bands over one input, with intervals, by a reliability diagram, or with predicted data sets. The
latter are shown as densities or, for integers and few values, as cumulative shares. Predictions for new data are
plotted over an input, or in one row per number.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float
from matplotlib.axes import Axes

from onebasin.base.checks import check_count, check_seed, checks_arguments
from onebasin.base.errors import ArgumentError
from onebasin.base.table import format_number
from onebasin.posteriors import schema
from onebasin.posteriors.draws import choose_variables, lay_out_columns
from onebasin.posteriors.view import Posterior, View, as_view

from ..predictive.predictions import Points
from ..predictive.scores import class_log_probability
from .bands import (
    PLACES,
    Curve,
    Function,
    band_in_words,
    check_output,
    draw_predictive_bands,
    draw_regression,
    few_draws,
    network_bands,
    truth_at,
)
from .marginals import (
    density,
    draw_ecdfs,
    draw_forest,
    ecdf_less_uniform,
    intervals,
    intervals_in_words,
)
from .posteriors import Posteriors, titled, views_of
from .style import ACCENT, CHAIN_COLOURS, INK, MUTED, Picture, add_legend, new_panels

FEW = 30
"""Number of observations below which a density estimate is too rough."""
SHOWN = 50
"""Number of predicted data sets to plot."""
VARIABLES = 4
"""Largest number of predicted variables to plot."""


@dataclass(frozen=True, eq=False)
class PredictedAndObserved:
    """The observed values of a variable, and predicted data sets of the same size."""

    name: str
    observed: Float[np.ndarray, " obs"]
    predicted: Float[np.ndarray, "draw obs"]

    @property
    def is_binary(self) -> bool:
        """Check whether data are binary. Then the share of ones is plotted."""
        return bool(np.isin(self.observed, (0, 1)).all() and np.isin(self.predicted, (0, 1)).all())

    @property
    def is_stepped(self) -> bool:
        """Check whether to plot cumulative shares."""
        whole = np.array_equal(self.observed, np.round(self.observed))
        return whole or self.observed.size < FEW


def draw_checks(checks: Mapping[str, PredictedAndObserved]) -> Picture:
    """Plot checks in one panel each, by title."""
    figure, panels = new_panels(
        list(checks),
        columns=2,
        panel_size=(3.9, 2.4) if len(checks) > 1 else (5.8, 2.7),
        margin=(0.3, 0.5),
        x_label="",
        y_label="",
        share_axes=False,
    )
    for axes, check in zip(panels, checks.values(), strict=True):
        if check.is_binary:
            _draw_shares(axes, check)
            continue
        every = max(1, -(-len(check.predicted) // SHOWN))
        # A single outlier must not hide the range of most values.
        ends = np.quantile(check.predicted, [0.001, 0.999])
        low = min(float(check.observed.min()), float(ends[0]))
        high = max(float(check.observed.max()), float(ends[1]))
        margin = 0.04 * (high - low) or 1.0
        low, high = low - margin, high + margin
        for place, values in enumerate(check.predicted[::every]):
            label = f"{len(check.predicted[::every])} predicted data sets" if place == 0 else None
            x, y = _curve(values, check.is_stepped, low, high)
            axes.plot(x, y, color=ACCENT, linewidth=0.6, alpha=0.35, label=label)
        x, y = _curve(check.observed, check.is_stepped, low, high)
        axes.plot(x, y, color=INK, linewidth=1.6, label="observed")
        axes.set_xlabel(axes.get_xlabel() or check.name)
        axes.set_ylabel("cumulative share" if check.is_stepped else "density")
        axes.set_xlim(low, high)
        axes.set_ylim(bottom=0)
        axes.locator_params(nbins=5)
    handles = {
        label: handle
        for axes in panels
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    add_legend(figure, list(handles.values()), list(handles))
    return figure


def _draw_shares(axes: Axes, check: PredictedAndObserved) -> None:
    """Plot a histogram of the share of ones in predicted data sets, with the observed share."""
    shares, size = check.predicted.mean(axis=1), check.observed.size
    observed = float(check.observed.mean())
    low, high = min(shares.min(), observed), max(shares.max(), observed)
    step = max(1, round((high - low) * size / 30)) / size
    edges = np.arange(low - step / 2, high + step, step).tolist()
    weights = np.full(shares.size, 1 / shares.size)
    axes.hist(shares, edges, weights=weights, color=ACCENT, alpha=0.5, label="predicted data sets")
    axes.axvline(observed, color=INK, linewidth=1.6, label="observed")
    axes.set_xlabel(f"share of ones in {check.name}")
    axes.set_ylabel("share of data sets")


def _curve(
    values: np.ndarray, stepped: bool, low: float, high: float
) -> tuple[np.ndarray, np.ndarray]:
    if stepped:
        ordered = np.sort(values)
        x = np.repeat(np.concatenate([[low], ordered, [high]]), 2)[1:-1]
        return x, np.repeat(np.arange(len(ordered) + 1) / len(ordered), 2)
    return density(values)


def predictive_checks(views: Mapping[str, View]) -> Picture:
    """Plot predicted and observed data for variables that have both."""
    checks: dict[str, PredictedAndObserved] = {}
    for name, view in views.items():
        own = checks_of(view)
        several = len(views) > 1 and len(own) > 1
        for check in own:
            title = f"{name}: {check.name}" if several else name if len(views) > 1 else check.name
            checks[title] = check
    titled = checks if len(checks) > 1 else {"": next(iter(checks.values()))}
    return draw_checks(titled).on_paper(check_in_words(checks.values(), checks))


def check_in_words(
    checks: Iterable[PredictedAndObserved], titles: Iterable[str] | None = None
) -> str:
    """Describe predicted and observed means and spreads, and the coverage of intervals."""
    told, checks = [], list(checks)
    for title, check in zip(titles or [c.name for c in checks], checks, strict=True):
        low, high = np.quantile(check.predicted, [0.05, 0.95], axis=0)
        inside = 100 * float(((check.observed >= low) & (check.observed <= high)).mean())
        sizes = []
        for word, of in (("mean", np.mean), ("standard deviation", np.std)):
            ends = np.quantile(of(check.predicted, axis=1), [0.05, 0.95])
            sizes.append(
                f"the observed {word} is {format_number(float(of(check.observed)))}, predicted values range from "
                f"{format_number(float(ends[0]))} to {format_number(float(ends[1]))}"
            )
        share = f"{inside:.0f} % of observations lie in their 90 % intervals"
        told.append(f"{title}: {'; '.join(sizes)}; {share}.")
    return " ".join(told)


COUNTED, MOST_VALUES = 400, 2**22
"""Largest number of predicted data sets, and of values, to read. If there are more, every k-th draw is read."""


def checks_of(view: View) -> list[PredictedAndObserved]:
    """Find variables whose predictions and observations are finite and have the same shape."""
    predicted, observed = (
        view.group(name) for name in (schema.POSTERIOR_PREDICTIVE, schema.OBSERVED_DATA)
    )
    found = []
    if predicted is not None and observed is not None:
        for name in map(str, predicted.data_vars):
            if name in observed and observed[name].dtype.kind in "biuf":
                data = np.asarray(observed[name].values, np.float64)
                draws = predicted[name].transpose(*schema.SAMPLE_DIMS, ...)
                most = max(SHOWN, min(COUNTED, MOST_VALUES // max(data.size, 1)))
                every = max(1, -(-draws.shape[0] * draws.shape[1] // most))
                some = draws[:, ::every].values
                if some.shape[2:] == data.shape and data.size:
                    flat = some.reshape(-1, data.size).astype(np.float64)
                    if np.isfinite(data).all() and np.isfinite(flat).all():
                        found.append(PredictedAndObserved(name, data.ravel(), flat))
    if not found:
        kept = view.parsed(schema.LEFT_OUT)
        why = kept.get(schema.POSTERIOR_PREDICTIVE) if isinstance(kept, dict) else None
        reason = f" ({str(why).rstrip('.')})" if why else ""
        raise ArgumentError(
            f"`{view.argument}` has no predictions that can be compared with observed data{reason}. Store "
            "predictions and data under the same name and with finite values, in the groups `posterior_predictive` "
            "and `observed_data`."
        )
    return found[:VARIABLES]


POINTS = 400
"""Largest number of points to plot with intervals."""
BINS = 10
"""Number of bins in a reliability diagram."""
_OUTSIDE = CHAIN_COLOURS[5]


@checks_arguments
def plot_predictive(
    posteriors: Posteriors,
    *,
    x: Any = None,
    y: Any = None,
    truth: Function | None = None,
    output: int = 0,
    seed: int = 0,
) -> Picture:
    """Plot predictions of posteriors together with the data.

    Parameters
    ----------
    posteriors : DataTree, path, what a sampler returned, or a mapping of str to these
        A posterior, or several by name. Either all or none must belong to networks, and networks must be of one kind.
    x : array (obs, in), optional
        Inputs of networks; by default the training inputs stored in the first posterior. If networks have one input,
        bands extend from its smallest to its largest value.
    y : array (obs,) or (obs, out), optional
        Targets or labels at `x`. Without them, bands are plotted with the training data.
    truth : callable, optional
        The true function of a regression with one input, from inputs (obs, 1) to values (obs,).
    output : int
        The output of a regression to plot, counted from 0.
    seed : int
        Seed of the noise.

    Returns
    -------
    matplotlib.figure.Figure
        One panel per posterior. For a regression with one input: mean, 50 % and 95 % bands with noise, over the data.
        With several inputs: mean and 95 % interval of every prediction against the observed value. For a classifier:
        how often the most probable class is right, by its probability. For other models: the observed data and data
        sets from the group `posterior_predictive`, one panel per variable.

    Raises
    ------
    ValueError
        If networks are mixed with other posteriors, if inputs or predictions are missing, or if `x` and `y` do not fit.

    Examples
    --------
    >>> figure = ob.plot.predictive({"NUTS": weights})
    """
    check_seed(seed)
    views = views_of(posteriors)
    first = next(iter(views.values()))
    if any((view.network is None) != (first.network is None) for view in views.values()):
        raise ArgumentError(
            "`posteriors` has networks and other models: plot each kind separately."
        )
    model = first.network
    if model is None:
        if x is not None or y is not None or truth is not None:
            raise ArgumentError(
                f"`{first.argument}` is not the posterior of a network: omit `x`, `y` and `truth`."
            )
        return predictive_checks(views)
    if x is None and y is not None:
        raise ArgumentError("`y` is given without `x`: give the inputs `x` as well.")
    if x is None and first.x is None:
        raise ArgumentError(f"`{first.argument}` contains no inputs for predictions. Give `x`.")
    points = Points.of(model, first.x if x is None else x, first.y if x is None else y)
    check_output(output, model.network.out_dim)
    if model.is_classifier:
        return _reliability(views, points)
    if model.network.in_dim == 1:
        # At new `x` without `y`, plot the training data.
        fitted = first.x is not None and points.y is None
        data = Points.of(model, first.x, first.y) if fitted else points
        return _bands(views, points.x, data, truth, output, seed)
    if truth is not None:
        raise ArgumentError(
            f"`truth` can be plotted only for networks with one input, but this network has {model.network.in_dim} "
            "inputs. Omit `truth`."
        )
    return _intervals(views, points, output, seed)


def _bands(
    views: Mapping[str, View],
    x: np.ndarray,
    points: Points,
    truth: Function | None,
    output: int,
    seed: int,
) -> Picture:
    places = np.linspace(x.min(), x.max(), PLACES)
    bands = network_bands(views, places, output=output, seed=seed)
    data = None
    if points.y is not None:
        there = (places[0] <= points.x[:, 0]) & (points.x[:, 0] <= places[-1])
        observed = points.y.reshape(len(points.x), -1)[there, output].astype(np.float64)
        data = Curve(points.x[there, 0].astype(np.float64), observed) if there.any() else None
    true = None if truth is None else truth_at(truth, places)
    figure = draw_predictive_bands(titled(bands), data=data, truth=true)
    return figure.on_paper(" ".join(band_in_words(n, band, data) for n, band in bands.items()))


def _observed(points: Points) -> np.ndarray:
    if points.y is None:
        raise ArgumentError("`y` is missing. Give the observed outputs to compare with.")
    return points.y


def _intervals(views: Mapping[str, View], points: Points, output: int, seed: int) -> Picture:
    """Plot predictive intervals against observations, with the line of equality, one panel per posterior."""
    every = max(1, -(-len(points.x) // POINTS))
    observed = _observed(points).reshape(len(points.x), -1)[::every, output].astype(np.float64)
    figure, panels = _squares(titled(views), x_label="observed y", y_label="predicted y")
    told = []
    for axes, (name, view) in zip(panels, views.items(), strict=True):
        mean, draws = draw_regression(view, points.x[::every], output=output, seed=seed)
        low, high = np.quantile(draws, [0.025, 0.975], axis=(0, 1))
        inside = (low <= observed) & (observed <= high)
        _draw_equal(axes, float(observed.min()), float(observed.max()))
        for chosen, colour, words in (
            (inside, ACCENT, "95 % interval"),
            (~inside, _OUTSIDE, "95 % interval that misses"),
        ):
            ends = low[chosen], high[chosen]
            axes.vlines(
                observed[chosen], *ends, color=colour, linewidth=1.0, alpha=0.6, label=words
            )
        axes.plot(observed, mean, "o", color=INK, markersize=2.5, label="mean")
        axes.locator_params(nbins=5)
        error = float(np.sqrt(np.mean((mean - observed) ** 2)))
        told.append(
            f"{name}: {100 * inside.mean():.0f} % of {observed.size} observations lie in their 95 % intervals; the "
            f"root mean squared error of the mean is {format_number(error)}."
        )
    add_legend(figure, *panels[0].get_legend_handles_labels(), columns=2)
    return figure.on_paper(" ".join(told))


def _reliability(views: Mapping[str, View], points: Points) -> Picture:
    """Plot accuracy against confidence, with 95 % intervals and the line of equality, one panel per posterior."""
    from onebasin.models.networks.bayesian import predict  # Imported late, because it loads JAX.

    labels = _observed(points)
    figure, panels = _squares(
        titled(views),
        x_label="probability of the most probable class",
        y_label="share of cases in which it is right",
    )
    told = []
    for axes, (name, view) in zip(panels, views.items(), strict=True):
        assert view.network is not None
        logits = predict(view.network, few_draws(view), points.x)
        probability = np.exp(class_log_probability(logits))
        right = probability.argmax(axis=-1) == labels
        most = np.asarray(probability.max(axis=-1), np.float64)
        confidence, accuracy, count = in_bins(most, right)
        # Approximate 95 % interval of a share (Agresti and Coull 1998): two standard errors, after adding four cases.
        middle = (accuracy * count + 2) / (count + 4)
        error = 2 * np.sqrt(middle * (1 - middle) / (count + 4))
        low, high = np.maximum(middle - error, 0.0), np.minimum(middle + error, 1.0)
        _draw_equal(axes, 0, 1)
        axes.vlines(confidence, low, high, color=ACCENT, linewidth=1.2, alpha=0.6)
        axes.plot(
            confidence, accuracy, "o-", color=ACCENT, linewidth=1.2, markersize=4, label="accuracy"
        )
        least = min(float(confidence.min()), float(low.min()))
        axes.set_xlim(max(0.0, float(confidence.min()) - 0.05), 1.02)
        axes.set_ylim(max(0.0, least - 0.05), 1.02)
        axes.locator_params(nbins=5)
        told.append(
            f"{name}: the most probable class is right in {100 * right.mean():.0f} % of {right.size} cases, and its "
            f"probability is {100 * most.mean():.0f} % on average."
        )
    add_legend(figure, *panels[0].get_legend_handles_labels(), columns=2)
    return figure.on_paper(" ".join(told))


def in_bins(
    confidence: Float[np.ndarray, " obs"], right: Bool[np.ndarray, " obs"], bins: int = BINS
) -> tuple[Float[np.ndarray, " bin"], Float[np.ndarray, " bin"], np.ndarray]:
    """Compute mean confidence, accuracy and number of observations in bins of equal size."""
    groups = np.array_split(np.argsort(confidence, kind="stable"), bins)
    groups = [group for group in groups if len(group)]
    means = [(confidence[g].mean(), right[g].mean()) for g in groups]
    return *np.asarray(means).T, np.asarray([len(g) for g in groups])


def _squares(
    found: Mapping[str, object], *, x_label: str, y_label: str
) -> tuple[Picture, list[Axes]]:
    return new_panels(
        list(found),
        columns=3,
        panel_size=(2.9, 2.7) if len(found) > 1 else (4.6, 3.4),
        margin=(0.4, 0.5),
        x_label=x_label,
        y_label=y_label,
    )


def _draw_equal(axes: Axes, *ends: float) -> None:
    axes.plot(ends, ends, color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)), label="equal")


_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


@checks_arguments
def plot_predictions(
    predictions: Any, *, var_name: str | None = None, x: Any = None, rows: int = 24
) -> Picture:
    """Plot predictions with their central 50 % and 90 % intervals.

    Parameters
    ----------
    predictions : Predictions, DataTree or path
        The result of `ob.predict`, or a tree or file with the group `predictions`.
    var_name : str, optional
        The predicted variable; by default the first.
    x : str or array (obs,), optional
        The input for the horizontal axis: the name of a variable in the new data, or its values. By default the
        variable with one number per prediction, if there is only one.
    rows : int
        Largest number of predictions to plot if there is no such input.

    Returns
    -------
    matplotlib.figure.Figure
        Bands over the input or, without an input, one row per predicted number, in the units of the data.

    Raises
    ------
    ValueError
        If there are no predictions, a variable is unknown, or `x` has the wrong length.

    Examples
    --------
    >>> found = ob.predict(weights, {"x": np.linspace(-1, 1, 9)[:, None]})
    >>> figure = ob.plot.predictions(found)
    """
    check_count("rows", rows)
    view = as_view(getattr(predictions, "tree", predictions), "predictions")
    held = view.group(schema.PREDICTIONS)
    if held is None or not held.data_vars:
        raise ArgumentError("`predictions` must be the result of `ob.predict`.")
    names = tuple(map(str, held.data_vars))
    name = str(choose_variables(names, var_name)[0])
    values = held[name].transpose(*schema.SAMPLE_DIMS, ...)
    label, points = _input(view, values, x)
    if points is None:
        draws = lay_out_columns([values])
        quantities = {n: draws.of(n) for n in draws.names[:rows]}
        return draw_forest({"": quantities}).on_paper(intervals(quantities))
    levels = np.quantile(values.values.reshape(-1, len(points)), _LEVELS, axis=0)
    levels, points = levels[:, np.argsort(points)], np.sort(points)
    figure, (axes,) = new_panels(
        [""], columns=1, panel_size=(5.8, 2.7), margin=(0.3, 0.5), x_label=label, y_label=name
    )
    for place, share in ((0, 90), (1, 50)):
        band = axes.fill_between(
            points, levels[place], levels[-1 - place], color=ACCENT, alpha=0.25
        )
        band.set_label(f"{share} % of draws")
    axes.plot(points, levels[2], color=ACCENT, linewidth=1.4, label="median")
    add_legend(figure, *axes.get_legend_handles_labels())
    ends = [f"{label} {format_number(float(points[end]))}" for end in (0, -1)]
    return figure.on_paper(
        f"{name} over {label}. {intervals_in_words(ends, *levels[[0, 2, 4]][:, [0, -1]].tolist())}"
    )


def _input(view: View, values: xr.DataArray, x: Any) -> tuple[str, np.ndarray | None]:
    """Return the name and values of the input for the horizontal axis, or "" and None."""
    size = int(np.prod(values.shape[2:]))
    data = view.group(schema.PREDICTIONS_CONSTANT_DATA)
    known = {} if data is None else {str(n): v.values for n, v in data.data_vars.items()}
    if x is None:
        fitting = [
            n for n, v in known.items() if v.ndim and v.size == size > 1 and n != values.name
        ]
        x = fitting[0] if len(fitting) == 1 else None
    if x is None:
        return "", None
    if isinstance(x, str) and x not in known:
        raise ArgumentError(
            f"`x` is {x!r}, but the stored new data contain no array of this name (stored arrays: "
            f"{', '.join(known) or 'none'}). Choose the name of a stored array, or give the values as an array."
        )
    label, points = (x, known[x]) if isinstance(x, str) else ("x", np.asarray(x))
    if points.size != size:
        raise ArgumentError(
            f"`x` must have one value per prediction; got {points.size} value(s) for {size} prediction(s)."
        )
    return label, points.ravel().astype(float)


@checks_arguments
def plot_loo_pit(posterior: Posterior, *, var_names: str | Sequence[str] | None = None) -> Picture:
    """Plot LOO-PIT values, each observation's position among its leave-one-out predictions, as ECDF minus uniform.

    Parameters
    ----------
    posterior : DataTree, path, or what a sampler returned
        A posterior with the groups `posterior_predictive`, `log_likelihood` and `observed_data`.
    var_names : str or sequence of str, optional
        The observed variables; by default all, but at most four.

    Returns
    -------
    matplotlib.figure.Figure
        One panel per variable. A calibrated model stays within the grey band in 95 % of data sets (Kolmogorov and
        Smirnov). If the curve is above zero in the middle, predictions are too high. If it first falls and then rises,
        they are too wide.

    Raises
    ------
    ValueError
        If a group is missing, or no variable is in all groups with finite values.

    References
    ----------
    Vehtari, Gelman and Gabry 2017, Statistics and Computing 27. Säilynoja, Bürkner and Vehtari 2022, Statistics and
    Computing 32. Computed by `arviz_stats.loo_pit`.

    Examples
    --------
    >>> figure = ob.plot.loo_pit(posterior)
    """
    from scipy.stats import kstwo  # Imported late, because it is slow.

    view = as_view(posterior)
    found = loo_pits(view, [var_names] if isinstance(var_names, str) else var_names)
    panels, bands, told, x = {}, [], [], np.linspace(0, 1, 201)
    for name, pits in found.items():
        difference, width = ecdf_less_uniform(pits, x), float(kstwo.ppf(0.95, pits.size))
        panels[name] = [(x, difference)]
        bands.append(width)
        said = "the curve stays within the 95 % band"
        if np.abs(difference).max() > width:
            mean = format_number(float(pits.mean()), decimals=2)
            said = f"the mean is {mean} instead of about 0.5, and the curve leaves the 95 % band"
        told.append(f"{name}: {pits.size} observations, {said}.")
    label = "share of predictions below"
    return draw_ecdfs(panels, (), bands, x_label=label, height=2.2).on_paper(" ".join(told))


def loo_pits(
    view: View, var_names: Sequence[str] | None = None
) -> dict[str, Float[np.ndarray, " obs"]]:
    """Compute LOO-PIT values by ArviZ for variables with predictions, observations and log likelihoods."""
    from arviz_stats import loo_pit

    needed = schema.POSTERIOR_PREDICTIVE, schema.LOG_LIKELIHOOD, schema.OBSERVED_DATA
    groups = {name: view.group(name) for name in needed}
    absent = [f"`{name}`" for name, group in groups.items() if group is None]
    if absent:
        raise ArgumentError(
            f"`{view.argument}` lacks {', '.join(absent)}. Give a posterior with groups for predictions, log "
            "likelihoods and observed data."
        )
    held = [dict(group.data_vars) for group in groups.values() if group is not None]
    names = [str(name) for name in held[0] if all(name in each for each in held)]
    if var_names is not None:
        names = list(choose_variables(tuple(names), var_names))
    same = [n for n in names if held[0][n].shape == held[1][n].shape][:VARIABLES]
    if not same:
        raise ArgumentError(
            f"No variable of `{view.argument}` has both predictions and a log likelihood for the same draws and "
            "observations. Store both under the same name, for all draws."
        )
    draws = {name: view.posterior[name] for name in list(view.variables)[:1]}
    sizes = held[0][same[0]].sizes
    few = xr.Dataset(draws).isel(chain=slice(sizes["chain"]), draw=slice(sizes["draw"]))
    tree = xr.DataTree.from_dict(
        {schema.POSTERIOR: few} | {k: g[same] for k, g in groups.items() if g is not None}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `khat` shows large Pareto k.
        found = loo_pit(tree, var_names=same)
    return {name: np.asarray(found[name], float).ravel() for name in same}
