"""Predictive scores: how far off, how sure, and how well calibrated.

Convention: draws are (chain, draw, obs, out) from the posterior predictive, noise included, in the
same units as `y` (obs, out); chains are pooled only inside a score. Intervals are central, between
quantiles, ends included. Log scores are means over observations in nats, by logsumexp. A value that
is not finite propagates. Deliberately lacking: proper weighting of unequal chains.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import log_softmax, logsumexp

Predictions = Float[np.ndarray, "chain draw obs out"]
Targets = Float[np.ndarray, "obs out"]
LogLikelihood = Float[np.ndarray, "chain draw obs"]


@dataclass(frozen=True)
class PredictiveScores:
    """Scores of a regression on one set of points.

    Attributes
    ----------
    num_obs, num_draws
        Points, and draws of all chains.
    rmse, mse
        Error of the predictive mean, in the units of `y` and in their square.
    log_score
        Mean log predictive density of a point, in nats; None without a log likelihood.
    coverage_50, coverage_95
        Share of points inside the central 50 % and 95 % interval.
    outside_95
        Share of points outside the 95 % interval: Table 2 of Pourzanjani, Jiang and Petzold 2017,
        whose caption calls it coverage.
    width_50, width_95
        Mean width of the intervals, in the units of `y`.
    """

    num_obs: int
    num_draws: int
    rmse: float
    mse: float
    log_score: float | None
    coverage_50: float
    coverage_95: float
    outside_95: float
    width_50: float
    width_95: float

    def to_dict(self) -> dict[str, Any]:
        """Return the scores as plain types for JSON."""
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class ClassScores:
    """Scores of a classification on one set of points.

    Attributes
    ----------
    num_obs, num_draws
        Points, and draws of all chains.
    accuracy
        Share of points whose most probable class is theirs.
    log_score
        Mean log predictive probability of the true class, in nats.
    """

    num_obs: int
    num_draws: int
    accuracy: float
    log_score: float

    def to_dict(self) -> dict[str, Any]:
        """Return the scores as plain types for JSON."""
        return dataclasses.asdict(self)


def score_predictions(
    draws: Predictions, y: Targets, *, log_likelihood: LogLikelihood | None = None
) -> PredictiveScores:
    """Compute all scores of a regression.

    Parameters
    ----------
    draws
        Draws from the posterior predictive, noise included.
    y
        What was observed, in the same units.
    log_likelihood
        Log density of each observation given each draw, summed over outputs.

    Returns
    -------
    PredictiveScores
        Errors, log score, coverage and widths.

    Raises
    ------
    ValueError
        If the shapes do not fit together.
    """
    draws, y = _matching(draws, y)
    num_draws, num_obs = draws.shape[0] * draws.shape[1], draws.shape[2]
    if log_likelihood is not None and np.shape(log_likelihood)[2:] != (num_obs,):
        raise ValueError(
            f"`log_likelihood` has shape {np.shape(log_likelihood)}, and (chain, draw, {num_obs}) "
            "is needed: one value per draw and observation."
        )
    squared, coverage = mse(draws, y), interval_coverage(draws, y, probability=0.95)
    return PredictiveScores(
        num_obs=num_obs,
        num_draws=num_draws,
        rmse=float(np.sqrt(squared)),
        mse=squared,
        log_score=None if log_likelihood is None else log_score(log_likelihood),
        coverage_50=interval_coverage(draws, y, probability=0.5),
        coverage_95=coverage,
        outside_95=1.0 - coverage,
        width_50=interval_width(draws, probability=0.5),
        width_95=interval_width(draws, probability=0.95),
    )


def score_classes(logits: Predictions, labels: Int[np.ndarray, " obs"]) -> ClassScores:
    """Compute all scores of a classification.

    Parameters
    ----------
    logits
        The network's outputs, one per class, before the softmax.
    labels
        True classes, from 0.

    Returns
    -------
    ClassScores
        Accuracy and log score.

    Raises
    ------
    ValueError
        If the shapes do not fit together or a label is not a class.
    """
    log_probability = class_log_probability(logits)
    labels = _checked_labels(labels, log_probability.shape)
    return ClassScores(
        num_obs=len(labels),
        num_draws=int(np.shape(logits)[0] * np.shape(logits)[1]),
        accuracy=accuracy(logits, labels),
        log_score=float(log_probability[np.arange(len(labels)), labels].mean()),
    )


def mse(draws: Predictions, y: Targets) -> float:
    """Return the mean squared error of the predictive mean, in the units of `y` squared."""
    draws, y = _matching(draws, y)
    return float(np.mean((draws.mean(axis=(0, 1)) - y) ** 2))


def rmse(draws: Predictions, y: Targets) -> float:
    """Return the root mean squared error of the predictive mean, in the units of `y`."""
    return float(np.sqrt(mse(draws, y)))


def log_score(log_likelihood: LogLikelihood) -> float:
    """Return the mean log predictive density of an observation, in nats.

    Parameters
    ----------
    log_likelihood
        Log density of each observation given each draw.

    Returns
    -------
    float
        The mean over observations of log(mean over draws of exp(log_likelihood)).
    """
    return float(pointwise_log_score(log_likelihood).mean())


def pointwise_log_score(log_likelihood: LogLikelihood) -> Float[np.ndarray, " obs"]:
    """Return the log predictive density of each observation, in nats."""
    values = np.asarray(log_likelihood, dtype=np.float64)
    if values.ndim != 3 or not values.size:
        raise ValueError(
            f"`log_likelihood` has shape {values.shape}, and (chain, draw, obs) with at least one "
            "entry is needed."
        )
    return logsumexp(values, axis=(0, 1)) - np.log(values.shape[0] * values.shape[1])


def interval_coverage(draws: Predictions, y: Targets, *, probability: float) -> float:
    """Return the share of observed values inside the central predictive interval.

    Parameters
    ----------
    draws
        Draws from the posterior predictive, noise included.
    y
        What was observed.
    probability
        Mass of the interval, between 0 and 1.

    Returns
    -------
    float
        A share of the values of all outputs; NaN if a draw or a value is NaN.
    """
    draws, y = _matching(draws, y)
    lower, upper = central_interval(draws, probability=probability)
    inside: Bool[np.ndarray, "obs out"] = (lower <= y) & (y <= upper)
    defined = np.isfinite(lower) & np.isfinite(upper) & np.isfinite(y)
    return float(inside.mean()) if defined.all() else float("nan")


def interval_width(draws: Predictions, *, probability: float) -> float:
    """Return the mean width of the central predictive interval, in the units of the draws."""
    lower, upper = central_interval(draws, probability=probability)
    return float(np.mean(upper - lower))


def central_interval(draws: Predictions, *, probability: float) -> tuple[Targets, Targets]:
    """Return the ends of the central interval that holds `probability` of the draws.

    Raises
    ------
    ValueError
        If `probability` is not between 0 and 1, or the draws are not (chain, draw, obs, out).
    """
    if not 0 < probability < 1:
        raise ValueError(
            f"`probability` is {probability}, and must lie between 0 and 1, such as 0.95."
        )
    tail = (1 - probability) / 2
    lower, upper = np.quantile(_checked_draws(draws), [tail, 1 - tail], axis=(0, 1))
    return lower, upper


def accuracy(logits: Predictions, labels: Int[np.ndarray, " obs"]) -> float:
    """Return the share of points whose most probable class, averaged over draws, is theirs."""
    log_probability = class_log_probability(logits)
    labels = _checked_labels(labels, log_probability.shape)
    if np.isnan(log_probability).any():
        return float("nan")
    return float((log_probability.argmax(axis=-1) == labels).mean())


def class_log_probability(logits: Predictions) -> Float[np.ndarray, "obs out"]:
    """Return the log of each class's probability, averaged over draws."""
    logits = _checked_draws(logits, name="logits")
    per_draw = log_softmax(logits, axis=-1)
    return logsumexp(per_draw, axis=(0, 1)) - np.log(logits.shape[0] * logits.shape[1])


def _checked_draws(draws: Predictions, *, name: str = "draws") -> Predictions:
    draws = np.asarray(draws, dtype=np.float64)
    if draws.ndim != 4 or not draws.size:
        raise ValueError(
            f"`{name}` has shape {draws.shape}, and (chain, draw, obs, out) with at least one "
            "entry is needed."
        )
    return draws


def _matching(draws: Predictions, y: Targets) -> tuple[Predictions, Targets]:
    draws, y = _checked_draws(draws), np.asarray(y, dtype=np.float64)
    if y.shape != draws.shape[2:]:
        raise ValueError(
            f"`y` has shape {y.shape}, and the draws' (obs, out) = {draws.shape[2:]} is needed; "
            "a single output is a column, `y[:, None]`."
        )
    return draws, y


def _checked_labels(
    labels: Int[np.ndarray, " obs"], shape: tuple[int, ...]
) -> Int[np.ndarray, " obs"]:
    labels = np.asarray(labels)
    num_obs, num_classes = shape
    if labels.shape != (num_obs,) or labels.dtype.kind not in "iu":
        raise ValueError(
            f"`labels` has shape {labels.shape} and type {labels.dtype}, and {num_obs} integers "
            "are needed, one per observation."
        )
    if labels.min() < 0 or labels.max() >= num_classes:
        raise ValueError(
            f"`labels` run from {labels.min()} to {labels.max()}, and the logits have classes 0 to "
            f"{num_classes - 1}."
        )
    return labels
