"""Predictions of a network's posterior at some points: means, spread and scores, a few points at a time.

For a classifier, `centre` are class probabilities averaged over draws; for a regression it is the mean of the network's
output f, without noise, which the RMSE also uses. Coverage, CRPS and log score are of predictions with noise, drawn for
every draw and point from a fixed seed.

Weights of networks have labels, which switch between chains without meaning; outputs have none. So chains are judged by
their outputs: R-hat, ESS and Monte Carlo errors, point by point.

`HeldOut` has predictions at new points with their scores and the precision of their means. Means and squared errors are
those of f, whose mean is the predictive mean without the Monte Carlo error of the noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from onebasin.base.checks import check_inputs, check_labels, check_outputs
from onebasin.base.errors import ArgumentError
from onebasin.posteriors import schema
from onebasin.posteriors.draws import Draws
from onebasin.posteriors.view import Posterior, View, as_view

from ..summaries.sampler import NAN
from ..summaries.summary import summary
from .scores import (
    PredictiveScores,
    agreement,
    brier_score,
    calibration_error,
    class_log_probability,
    class_probability_by_draw,
    mutual_information,
    score_function,
    single_draw_accuracy,
    total_variation,
)

if TYPE_CHECKING:
    from onebasin.models.networks.bayesian import BayesianNetwork

CLASS_DISTANCES = ("agreement", "total_variation", "total_variation_sum")
CLASS_SCORES = (
    "accuracy",
    "log_score",
    "calibration_error",
    "brier",
    "single_draw_accuracy",
    "mutual_information",
)
REGRESSION_DISTANCES = ("mean_distance",)
REGRESSION_SCORES = ("rmse", "coverage_50", "coverage_95", "crps", "log_score")
_AVERAGED = ("mse", *REGRESSION_SCORES[1:])
"""Scores that are means over points, before the root of the mean squared error."""
_AT_ONCE = 2**22
"""Most outputs that are computed together: draws times points times outputs."""

Output = Float[np.ndarray, "obs out"]


@dataclass(frozen=True, eq=False)
class Points:
    """Points at which predictions are compared."""

    x: Float[np.ndarray, "obs in"]  # in the units that the networks were conditioned on
    y: np.ndarray | None  # labels (obs,) or targets (obs, out); None if unknown

    @classmethod
    def of(cls, model: BayesianNetwork, x: object, y: object) -> Points:
        """Check that points fit the network: shapes, finite values, and labels that are classes."""
        checked = check_inputs(x, model.network.in_dim)
        if y is None:
            return cls(checked, None)
        check = check_labels if model.is_classifier else check_outputs
        return cls(checked, check(y, len(checked), model.network.out_dim))


@dataclass(frozen=True, eq=False)
class Predicted:
    """One posterior's predictions at the points."""

    centre: Output  # class probabilities averaged over draws, or means of f
    spread: Output  # standard deviation of these over draws
    scores: Mapping[str, float]  # without labels or targets, only scores that need none


def network_of(
    view: View, *, otherwise: str = "give one of a `BayesianNetwork`"
) -> BayesianNetwork:
    """Return a posterior's network; `otherwise` says what to do if there is none."""
    if view.network is None:
        raise ArgumentError(
            f"`{view.argument}` is not the posterior of a network, and onebasin can predict only with networks; "
            f"{otherwise}."
        )
    return view.network


def inputs_of(view: View, x: Any) -> Any:
    """Return the given inputs, or by default the training inputs of the posterior's network."""
    x = view.x if x is None else x
    if x is None:
        raise ArgumentError(
            f"`x` is missing, and `{view.argument}` has no inputs; give an array (obs, in)."
        )
    return x


def inside_range(
    x: Float[np.ndarray, "obs in"], data: Float[np.ndarray, "data in"]
) -> Bool[np.ndarray, " obs"]:
    """Mark points within the range of the data in every input, ends included."""
    within = (x >= data.min(axis=0)) & (x <= data.max(axis=0))
    return np.asarray(within.all(axis=1))


def predict_points(
    model: BayesianNetwork, posterior: Posterior, points: Points, *, seed: int = 0
) -> Predicted:
    """Predict at the points, and score the predictions if labels or targets are known."""
    from onebasin.models.networks.prediction import mean_and_sd

    view = as_view(posterior)
    draws = {name: view.values(name) for name in view.variables}
    if model.is_classifier:
        return _classes(model, draws, points)
    if model.infers_noise and "sigma" not in draws:
        raise ArgumentError(
            f"`posterior` lacks sigma, which its network infers; it has {', '.join(draws)}."
        )
    rng = np.random.default_rng(seed)
    centres, spreads, scores = [], [], []
    for rows in _blocks(model, draws, points):
        function, sigma = mean_and_sd(model, draws, points.x[rows])
        centres.append(function.mean(axis=(0, 1)))
        spreads.append(function.std(axis=(0, 1)))
        if points.y is not None:
            share = function.shape[2] / len(points.y)
            block = score_function(function, np.asarray(sigma, np.float64), points.y[rows], rng)
            scores.append({name: share * getattr(block, name) for name in _AVERAGED})
    total = {name: sum(score[name] for score in scores) for name in (_AVERAGED if scores else ())}
    if total:
        total["rmse"] = float(np.sqrt(total.pop("mse")))
    return Predicted(np.concatenate(centres), np.concatenate(spreads), total)


def distances(predicted: Predicted, truth: Predicted, *, classifier: bool) -> dict[str, float]:
    """Compare predictions with the truth's at the same points, named as in this module's constants."""
    if classifier:
        p, q = predicted.centre, truth.centre
        variations = (total_variation(p, q, halved=halved) for halved in (True, False))
        values = (agreement(p, q), *variations)
        return dict(zip(CLASS_DISTANCES, values, strict=True))
    with np.errstate(divide="ignore", invalid="ignore"):  # equal draws give inf or NaN
        apart = (predicted.centre - truth.centre) / truth.spread
    return {"mean_distance": float(np.sqrt(np.mean(apart**2)))}


def _classes(model: BayesianNetwork, draws: Mapping[str, np.ndarray], points: Points) -> Predicted:
    from onebasin.models.networks.prediction import predict

    logs, spreads, information, single = [], [], [], []
    for rows in _blocks(model, draws, points):
        logits = predict(model, draws, points.x[rows])
        by_draw = class_probability_by_draw(logits)
        logs.append(class_log_probability(logits))
        spreads.append(by_draw.std(axis=(0, 1)))
        information.append(mutual_information(by_draw))
        if points.y is not None:
            accuracy = single_draw_accuracy(by_draw, points.y[rows])
            single.append(accuracy * len(points.y[rows]) / len(points.y))
    log_probability = np.concatenate(logs)
    probability = np.exp(log_probability)
    defined = not np.isnan(log_probability).any()
    scores = {"mutual_information": float(np.concatenate(information).mean())}
    if points.y is not None:
        labels = points.y
        scores |= {
            "accuracy": float((probability.argmax(axis=-1) == labels).mean()) if defined else NAN,
            "log_score": float(log_probability[np.arange(len(labels)), labels].mean()),
            "calibration_error": calibration_error(probability, labels),
            "brier": brier_score(probability, labels),
            "single_draw_accuracy": float(sum(single)),
        }
    return Predicted(probability, np.concatenate(spreads), scores)


def _blocks(
    model: BayesianNetwork, draws: Mapping[str, np.ndarray], points: Points
) -> Iterator[slice]:
    """Yield ranges of points whose outputs for all draws fit into memory."""
    chains, length = next(iter(draws.values())).shape[:2]
    step = max(1, _AT_ONCE // (chains * length * model.network.widths[-1]))
    for first in range(0, len(points.x), step):
        yield slice(first, first + step)


def summarise_predictions(posterior: Posterior, x: Any = None) -> pd.DataFrame:
    """Summarise a network's outputs at every input, with R-hat and effective sample sizes.

    Permutations, signs and scalings of hidden units do not change an output, so chains in equivalent modes agree here,
    and chains in different modes do not.

    Parameters
    ----------
    posterior : DataTree, path, or what a sampler returned
        The posterior of a network, with at least 4 draws per chain.
    x : array (obs, in), optional
        Inputs, in the units that the network was conditioned on; by default the training inputs.

    Returns
    -------
    DataFrame
        One row per output, ``f[obs,out]`` (logits for a classifier), and if the network predicts its noise, one for
        its standard deviation, ``noise_sd[obs,out]``; columns `mean`, `median`, `sd`, `q5`, `q95`, `mcse_mean`,
        `mcse_sd`, `rhat`, `ess_bulk`, `ess_tail`, in the units of `y`.

    Raises
    ------
    ValueError
        If the posterior does not belong to a network, `x` does not fit it, or `x` is neither given nor stored.

    References
    ----------
    Vehtari, Gelman, Simpson, Carpenter and Bürkner 2021, Bayesian Analysis 16(2) (R-hat, ESS).

    Examples
    --------
    >>> settings = ob.Nuts(chains=2, warmup=100, draws=50)
    >>> run = ob.infer(network, settings, seed=1)
    >>> table = ob.networks.summarise_predictions(run, np.zeros((3, 1)))
    >>> list(table.index), "rhat" in table
    (['f[0,0]', 'f[1,0]', 'f[2,0]'], True)
    """
    from onebasin.models.networks.prediction import predict, predict_with_noise

    view = as_view(posterior)
    model = network_of(
        view,
        otherwise="summarise your own generated quantities by `diagnose(posterior, var_names=...)`",
    )
    x = inputs_of(view, x)
    draws = {name: view.values(name) for name in view.variables}
    parts = {"f": predict(model, draws, x)}
    if model.predicts_noise:
        parts["noise_sd"] = predict_with_noise(model, draws, x)[1]
    return summarise_outputs(parts)


def summarise_outputs(parts: Mapping[str, np.ndarray]) -> pd.DataFrame:
    """Summarise outputs (chain, draw, obs, out), and quantities (chain, draw), with names and places."""
    names = [
        f"{name}[{','.join(map(str, place))}]" if place else name
        for name, values in parts.items()
        for place in np.ndindex(values.shape[2:])
    ]
    flat = [np.asarray(v, np.float64).reshape(*v.shape[:2], -1) for v in parts.values()]
    return summary(Draws(tuple(names), np.concatenate(flat, axis=-1)))


NOISE_SEED = 20170411
"""Seed of the noise that predictions add to the function; the same for all posteriors."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """One posterior's predictions at a set of points."""

    function: Float[np.ndarray, "chain draw obs out"]  # the network's output, without noise
    sigma: Float[np.ndarray, "chain draw"] | Float[np.ndarray, "chain draw obs out"]
    """Draws of the noise's standard deviation; one for all points, or one per point if the network predicts it."""
    scores: PredictiveScores  # relative to the observed `y`
    table: pd.DataFrame
    """One row per point and per `sigma`, invariant under every symmetry, with the columns of `summaries.summary`."""
    y: Float[np.ndarray, "obs out"]
    gradients: int | None = None  # evaluations for the kept draws of Markov chains

    @property
    def points(self) -> pd.DataFrame:
        """The rows of the points, without those of `sigma`."""
        return self.table.iloc[: int(np.prod(self.function.shape[2:]))]

    @property
    def worst_rhat(self) -> float:
        """Largest R-hat of f over the points."""
        return float(self.points["rhat"].max())

    @property
    def median_ess(self) -> float:
        """Median over the points of the bulk ESS of f."""
        return float(self.points["ess_bulk"].median())


def predict_held_out(
    posterior: Posterior, model: BayesianNetwork, x: np.ndarray, y: np.ndarray
) -> HeldOut:
    """Predict with a network with a Gaussian likelihood, and score the predictions.

    Inputs (obs, in) are in the units that the network was conditioned on; `y` (obs, out) are the observations.
    """
    function, sigma = draw_functions(posterior, model, x)
    view = as_view(posterior)
    chains = view.attribute(schema.METHOD) in ("nuts", "hmc", "mclmc")
    gradients = int(view.number(schema.GRADIENT_EVALUATIONS) or 0) if chains else None
    scores = score_function(function, sigma, y, np.random.default_rng(NOISE_SEED))
    table = summarise_outputs({"f": function, "sigma": sigma})
    return HeldOut(function, sigma, scores, table, y, gradients)


def draw_functions(
    posterior: Posterior, model: BayesianNetwork, x: np.ndarray
) -> tuple[
    Float[np.ndarray, "chain draw obs out"],
    Float[np.ndarray, "chain draw"] | Float[np.ndarray, "chain draw obs out"],
]:
    """Draw the network's output at `x`, and the noise's standard deviation, per draw, or per point if predicted."""
    from onebasin.models.networks.prediction import predict_with_noise

    view = as_view(posterior)
    draws = {name: view.values(name) for name in view.variables}
    function, sd = predict_with_noise(model, draws, x)
    sd = sd.astype(np.float64)
    return function, sd if model.predicts_noise else sd[..., 0, 0]


def gap(held_out: HeldOut, reference: HeldOut) -> dict[str, float]:
    """Measure the differences of predictions from a reference's at the same points.

    Returns
    -------
    dict
        `rms`, the root mean square over points of the difference of the means of f, in units of the target; `in_sds`,
        the same in units of the reference's sd of f; `floor_in_sds`, its value from Monte Carlo error alone;
        `sd_ratio`, the geometric mean over points of the ratio of sds of f; `predictive_sd_ratio`, the same for the
        predictive sd, with noise.
    """
    ours, theirs = held_out.points, reference.points
    difference = (ours["mean"] - theirs["mean"]).to_numpy()
    scale = theirs["sd"].to_numpy()
    error = np.hypot(ours["mcse_mean"], theirs["mcse_mean"]).to_numpy()
    return {
        "rms": _rms(difference),
        "in_sds": _rms(difference / scale),
        "floor_in_sds": _rms(error / scale),
        "sd_ratio": _geometric_mean(ours["sd"].to_numpy() / scale),
        "predictive_sd_ratio": _geometric_mean(
            _predictive_sd(held_out) / _predictive_sd(reference)
        ),
    }


def _predictive_sd(held_out: HeldOut) -> np.ndarray:
    noise = np.mean(held_out.sigma**2, axis=(0, 1)).ravel()  # one number, or one per point
    return np.sqrt(held_out.points["sd"].to_numpy() ** 2 + noise)


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))


def _geometric_mean(values: np.ndarray) -> float:
    return float(np.exp(np.mean(np.log(values))))
