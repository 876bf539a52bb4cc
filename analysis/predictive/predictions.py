"""Predictions from a network's posterior at given points: means, spread and scores, computed in batches of points.

For a classifier, `centre` contains class probabilities averaged over draws. For a regression it is the mean of the
network's output f, without noise, which the RMSE also uses. Coverage, CRPS and log score use predictions with noise,
drawn for every draw and point from a fixed seed.

The weights of networks have labels that switch between chains without meaning, but outputs have no labels. So chains
are judged by R-hat, ESS and Monte Carlo errors of their outputs, point by point.
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
from onebasin.posteriors.draws import Draws
from onebasin.posteriors.view import Posterior, View, as_view

from ..summaries.sampler import NAN
from ..summaries.summary import summary
from .scores import (
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
"""Scores that are means over points, with the mean squared error before taking its root."""
_AT_ONCE = 2**22
"""Maximum number of outputs to compute at a time: draws times points times outputs."""

Output = Float[np.ndarray, "obs out"]


@dataclass(frozen=True, eq=False)
class Points:
    """Points at which predictions are compared."""

    x: Float[np.ndarray, "obs in"]  # In the units of the networks' training data.
    y: np.ndarray | None  # Labels (obs,) or targets (obs, out); None if unknown.

    @classmethod
    def of(cls, model: BayesianNetwork, x: object, y: object) -> Points:
        """Check that points fit the network: their shapes, finite values, and labels that are valid classes."""
        checked = check_inputs(x, model.network.in_dim)
        if y is None:
            return cls(checked, None)
        check = check_labels if model.is_classifier else check_outputs
        return cls(checked, check(y, len(checked), model.network.out_dim))


@dataclass(frozen=True, eq=False)
class Predicted:
    """The predictions of one posterior at the points."""

    centre: Output  # Class probabilities averaged over draws, or means of f.
    spread: Output  # Their standard deviation over draws.
    scores: Mapping[str, float]  # If `y` is unknown, only scores that do not need it.


def network_of(
    view: View, *, otherwise: str = "Give the posterior of a `BayesianNetwork`"
) -> BayesianNetwork:
    """Return the network of a posterior. `otherwise` says what to do if there is none."""
    if view.network is None:
        raise ArgumentError(
            f"`{view.argument}` is not the posterior of a network, but this function needs such a posterior. "
            f"{otherwise}."
        )
    return view.network


def inputs_of(view: View, x: Any) -> Any:
    """Return the given inputs, or by default the training inputs of the posterior's network."""
    x = view.x if x is None else x
    if x is None:
        raise ArgumentError(
            f"`x` is missing, and `{view.argument}` contains no inputs. Give an array of shape (obs, in)."
        )
    return x


def inside_range(
    x: Float[np.ndarray, "obs in"], data: Float[np.ndarray, "data in"]
) -> Bool[np.ndarray, " obs"]:
    """Mark points that are within the range of the data in every input, including its ends."""
    within = (x >= data.min(axis=0)) & (x <= data.max(axis=0))
    return np.asarray(within.all(axis=1))


def predict_points(
    model: BayesianNetwork, posterior: Posterior, points: Points, *, seed: int = 0
) -> Predicted:
    """Predict at the points, and score the predictions if `y` is known."""
    from onebasin.models.networks.bayesian import mean_and_sd

    view = as_view(posterior)
    draws = {name: view.values(name) for name in view.variables}
    if model.is_classifier:
        return _classes(model, draws, points)
    if model.infers_noise and "sigma" not in draws:
        raise ArgumentError(
            f"The network infers its noise, so `posterior` must contain draws of sigma; got {', '.join(draws)}. Give "
            "the whole posterior."
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
    """Compare predictions with those of the truth at the same points. Names are constants of this module."""
    if classifier:
        p, q = predicted.centre, truth.centre
        variations = (total_variation(p, q, halved=halved) for halved in (True, False))
        values = (agreement(p, q), *variations)
        return dict(zip(CLASS_DISTANCES, values, strict=True))
    with np.errstate(divide="ignore", invalid="ignore"):  # Identical draws give inf or NaN.
        apart = (predicted.centre - truth.centre) / truth.spread
    return {"mean_distance": float(np.sqrt(np.mean(apart**2)))}


def _classes(model: BayesianNetwork, draws: Mapping[str, np.ndarray], points: Points) -> Predicted:
    from onebasin.models.networks.bayesian import predict

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
    """Yield slices of points whose outputs for all draws fit into memory."""
    chains, length = next(iter(draws.values())).shape[:2]
    step = max(1, _AT_ONCE // (chains * length * model.network.widths[-1]))
    for first in range(0, len(points.x), step):
        yield slice(first, first + step)


def summarise_predictions(posterior: Posterior, x: Any = None) -> pd.DataFrame:
    """Summarise a network's outputs at every input, with R-hat and effective sample sizes.

    Permutations, signs and scalings of hidden units do not change outputs, so chains in equivalent modes agree here but
    chains in different modes do not.

    Parameters
    ----------
    posterior : DataTree, path, or what a sampler returned
        The posterior of a network, with at least 4 draws per chain.
    x : array (obs, in), optional
        Inputs, in the units of the data on which the network was conditioned; by default the training inputs.

    Returns
    -------
    DataFrame
        One row per output, ``f[obs,out]`` (logits for a classifier). If the network predicts its noise, also one row
        per noise standard deviation, ``noise_sd[obs,out]``. The columns are `mean`, `median`, `sd`, `q5`, `q95`,
        `mcse_mean`, `mcse_sd`, `rhat`, `ess_bulk`, `ess_tail`, in the units of `y`.

    Raises
    ------
    ValueError
        If the posterior does not belong to a network, or if `x` does not fit the network or is neither given nor
        stored.

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
    from onebasin.models.networks.bayesian import predict, predict_with_noise

    view = as_view(posterior)
    model = network_of(
        view,
        otherwise="Summarise your own generated quantities with `diagnose(posterior, var_names=...)`",
    )
    x = inputs_of(view, x)
    draws = {name: view.values(name) for name in view.variables}
    parts = {"f": predict(model, draws, x)}
    if model.predicts_noise:
        parts["noise_sd"] = predict_with_noise(model, draws, x)[1]
    return summarise_outputs(parts)


def summarise_outputs(parts: Mapping[str, np.ndarray]) -> pd.DataFrame:
    """Summarise outputs (chain, draw, obs, out) and quantities (chain, draw), by name and position."""
    names = [
        f"{name}[{','.join(map(str, place))}]" if place else name
        for name, values in parts.items()
        for place in np.ndindex(values.shape[2:])
    ]
    flat = [np.asarray(v, np.float64).reshape(*v.shape[:2], -1) for v in parts.values()]
    return summary(Draws(tuple(names), np.concatenate(flat, axis=-1)))
