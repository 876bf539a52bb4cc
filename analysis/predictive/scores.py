"""Scores of predictions: errors, uncertainty, calibration, and disagreement between draws of classifiers.

Regressions: draws are (chain, draw, obs, out) from the posterior predictive, with noise, in the units of `y` (obs,
out). Chains are pooled only inside a score. Intervals are central. Log scores are means over observations in nats.
Values that are not finite propagate.

Classifiers: logits and probabilities of draws are (chain, draw, obs, out), averages over draws (obs, out), with classes
on the last axis. Labels (obs,) count from 0. Sources: Xiao, Liu and Bamler 2023, equations 1 and 2. Their equation 2
sums absolute differences over classes, from 0 to 2, but their Table 1 shows half of the sum, so `total_variation` has
an option. Guo, Pleiss, Sun and Weinberger 2017, equation 3 (expected calibration error); Brier 1950, summed over
classes, from 0 to 2.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import log_softmax, logsumexp, xlogy

from onebasin.base.card import Card, FactList, Part, Shown, Words, number
from onebasin.base.checks import as_numbers
from onebasin.base.errors import ArgumentError

Predictions = Float[np.ndarray, "chain draw obs out"]
Targets = Float[np.ndarray, "obs out"]
LogLikelihood = Float[np.ndarray, "chain draw obs"]

_AT_ONCE = 2**22
"""Maximum number of values to sort at a time: 32 MB and a few copies."""
CHANCE = 0.99
"""Probability that the coverage of calibrated predictions lies in the range attributed to chance."""


@dataclass(frozen=True, repr=False)
class PredictiveScores(Shown):
    """Scores of a regression on one set of points.

    Attributes
    ----------
    num_obs, num_draws : int
        Number of points, and number of draws in all chains.
    rmse, mse : float
        Root mean squared and mean squared error of the predictive mean, in the units of `y` and their square.
    log_score : float or None
        Mean log predictive density of a point, in nats; None without a log likelihood.
    coverage_50, coverage_95 : float
        Share of points inside the central 50 % and 95 % intervals.
    outside_95 : float
        Share of points outside the 95 % interval, as in Table 2 of Pourzanjani, Jiang and Petzold 2017, whose caption
        calls it coverage.
    width_50, width_95 : float
        Mean width of the intervals, in the units of `y`.
    crps : float
        Continuous ranked probability score in its fair form, in the units of `y`; NaN for a single draw.
    explained_variance : float or None
        1 - `mse` / variance of `y` over the points: 1 without error, 0 for a constant prediction at the mean of `y`,
        negative for worse predictions; None if `y` does not vary.
    epistemic, aleatoric : float or None
        Root mean square over points of two standard deviations: that of the function over draws, which more data
        reduce, and that of the noise, which remains. None if `function` was not given.
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
    crps: float
    explained_variance: float | None
    epistemic: float | None = None
    aleatoric: float | None = None

    def _card(self) -> Card:
        coverage, log_score, share = self.coverage_95, self.log_score, self.explained_variance
        parts: list[Part] = [
            Words(
                f"The predictive mean is off by {number(self.rmse)} (root mean square, in the units of `y`). The "
                f"central 95 % interval contains {100 * coverage:.3g} % of the points: {self._calibration()}."
            ),
            FactList.of(
                ("RMSE", number(self.rmse)),
                (
                    "explained",
                    "" if share is None else f"{100 * share:.3g} % of the variance of `y`",
                ),
                ("CRPS", number(self.crps)),
                (
                    "log score",
                    "" if log_score is None else f"{number(log_score, 4)} nats per point",
                ),
                (
                    "inside 50 %",
                    f"{100 * self.coverage_50:.3g} %, mean width {number(self.width_50)}",
                ),
                ("inside 95 %", f"{100 * coverage:.3g} %, mean width {number(self.width_95)}"),
                ("epistemic sd", "" if self.epistemic is None else number(self.epistemic)),
                ("aleatoric sd", "" if self.aleatoric is None else number(self.aleatoric)),
                ("draws", f"{self.num_draws:,}"),
            ),
        ]
        if log_score is None:
            missing = "No log score is available without the `log_likelihood` of the points."
            parts.append(Words(missing, small=True))
        return Card(f"Predictions of {self.num_obs:,} points", tuple(parts))

    def _calibration(self) -> str:
        """Compare the coverage with the range expected by chance if points are independent."""
        from scipy.stats import binom

        if not 0 <= self.coverage_95 <= 1:
            return "onebasin cannot judge whether that is enough"
        low, high = (end / self.num_obs for end in binom.interval(CHANCE, self.num_obs, 0.95))
        chance = f"with independent points, chance allows {100 * low:.3g} to {100 * high:.3g} %"
        if self.coverage_95 < low:
            return f"too few: the predictions are overconfident ({chance})"
        if self.coverage_95 > high:
            return f"too many: the predictions are underconfident ({chance})"
        return f"as many as expected ({chance})"

    def to_dict(self) -> dict[str, Any]:
        """Return the scores as plain types for JSON."""
        return dataclasses.asdict(self)


def score_predictions(
    draws: Predictions,
    y: Targets,
    *,
    log_likelihood: LogLikelihood | None = None,
    function: Predictions | None = None,
) -> PredictiveScores:
    """Compute all scores of a regression: errors, log score, coverage and width of intervals, CRPS, uncertainty.

    Parameters
    ----------
    draws : array (chain, draw, obs, out)
        Draws from the posterior predictive, including noise, in the units of `y`.
    y : array (obs, out)
        The observed values.
    log_likelihood : array (chain, draw, obs), optional
        Log density of each observation given each draw, summed over outputs, in nats.
    function : array (chain, draw, obs, out), optional
        The same draws without noise, from `ob.networks.predict`. They are used to split the standard deviation of
        `draws` into epistemic and aleatoric parts by the law of total variance.

    Returns
    -------
    PredictiveScores
        Errors, log score, coverage, widths and uncertainty. Chains are pooled only inside a score. Values that are not
        finite propagate.

    Raises
    ------
    ValueError
        If the shapes of the arguments do not match.

    References
    ----------
    Gneiting and Raftery 2007, Strictly proper scoring rules, JASA 102(477), equation 21 (CRPS). Zamo and Naveau 2018,
    Mathematical Geosciences 50 (its fair form).

    Examples
    --------
    >>> generator = np.random.default_rng(0)
    >>> observed = generator.normal(size=(50, 1))
    >>> scores = ob.networks.score_predictions(generator.normal(size=(2, 500, 50, 1)), observed)
    >>> 0.8 < scores.coverage_95 <= 1.0
    True
    """
    draws, y = as_numbers("draws", draws), as_numbers("y", y)
    if draws.ndim != 4 or not draws.size:
        raise ArgumentError(
            "`draws` must be an array of shape (chain, draw, obs, out) with at least one entry; got shape "
            f"{draws.shape}."
        )
    if y.shape != draws.shape[2:]:
        raise ArgumentError(
            f"`y` must have the shape (obs, out) of `draws`, {draws.shape[2:]}; got {y.shape}. Give a single output "
            "as a column, `y[:, None]`."
        )
    num_draws, num_obs = draws.shape[0] * draws.shape[1], draws.shape[2]
    if log_likelihood is not None and np.shape(log_likelihood)[2:] != (num_obs,):
        raise ArgumentError(
            f"`log_likelihood` must have shape (chain, draw, {num_obs}), one value per draw and observation; got "
            f"{np.shape(log_likelihood)}."
        )
    epistemic = aleatoric = None
    if function is not None:
        function = as_numbers("function", function)
        if function.shape != draws.shape:
            raise ArgumentError(
                f"`function` must have the shape of `draws`, {draws.shape}; got {function.shape}."
            )
        epistemic = spread(function)
        aleatoric = float(np.sqrt(np.maximum(0.0, spread(draws) ** 2 - epistemic**2)))
    squared = mse(draws, y)
    coverage_50, width_50 = coverage_and_width(draws, y, probability=0.5)
    coverage_95, width_95 = coverage_and_width(draws, y, probability=0.95)
    return PredictiveScores(
        num_obs=num_obs,
        num_draws=num_draws,
        rmse=float(np.sqrt(squared)),
        mse=squared,
        log_score=None if log_likelihood is None else log_score(log_likelihood),
        coverage_50=coverage_50,
        coverage_95=coverage_95,
        outside_95=1.0 - coverage_95,
        width_50=width_50,
        width_95=width_95,
        crps=float(pointwise_crps(draws, y).mean()) if num_draws > 1 else float("nan"),
        explained_variance=explained_variance(squared, y),
        epistemic=epistemic,
        aleatoric=aleatoric,
    )


def spread(draws: Predictions) -> float:
    """Return the standard deviation over draws, as a root mean square over points."""
    return float(np.sqrt(np.mean(np.var(np.asarray(draws, np.float64), axis=(0, 1)))))


def score_function(
    function: Predictions,
    sigma: Float[np.ndarray, "chain draw *point"],
    y: Targets,
    rng: np.random.Generator,
) -> PredictiveScores:
    """Compute all scores of a regression from draws of its function and of the normal noise sd.

    `sigma` has one value per draw, or broadcasts to the shape of `function`. Errors use the mean of the function, which
    is the predictive mean without the Monte Carlo error of the noise.
    """
    scale = sigma if sigma.ndim == function.ndim else sigma[..., None, None]
    noise = scale * rng.standard_normal(function.shape)
    with np.errstate(divide="ignore", invalid="ignore"):  # `scipy.stats` is slow to import.
        log_normal = (
            -(((y - function) / scale) ** 2) / 2 - np.log(np.sqrt(2 * np.pi)) - np.log(scale)
        )
    likelihood = log_normal.sum(axis=-1)
    scores = score_predictions(function + noise, y, log_likelihood=likelihood)
    squared = mse(function, y)
    return dataclasses.replace(
        scores,
        mse=squared,
        rmse=float(np.sqrt(squared)),
        explained_variance=explained_variance(squared, y),
        epistemic=spread(function),
        aleatoric=float(np.sqrt(np.mean(np.square(scale)))),
    )


def mse(draws: Predictions, y: Targets) -> float:
    """Return the mean squared error of the predictive mean, in the units of `y` squared."""
    return float(np.mean((np.asarray(draws, np.float64).mean(axis=(0, 1)) - y) ** 2))


def explained_variance(squared: float, y: Targets) -> float | None:
    """Return 1 - squared / variance, the coefficient of determination, given the mean squared error.

    The variance is taken about the mean of each output. The result is None if `y` does not vary.
    """
    variance = float(np.asarray(y, np.float64).var(axis=0).mean())
    return None if variance == 0 else 1 - squared / variance


def log_score(log_likelihood: LogLikelihood) -> float:
    """Return the mean over observations of log(mean over draws of exp(log_likelihood)), in nats."""
    return float(pointwise_log_score(log_likelihood).mean())


def pointwise_log_score(log_likelihood: LogLikelihood) -> Float[np.ndarray, " obs"]:
    """Return the log predictive density of each observation, in nats."""
    values = np.asarray(log_likelihood, dtype=np.float64)
    return logsumexp(values, axis=(0, 1)) - np.log(values.shape[0] * values.shape[1])


def coverage_and_width(
    draws: Predictions, y: Targets, *, probability: float
) -> tuple[float, float]:
    """Return the share of observed values inside the central interval, over all outputs, and the mean width."""
    lower, upper = central_interval(draws, probability=probability)
    inside: Bool[np.ndarray, "obs out"] = (lower <= y) & (y <= upper)
    defined = np.isfinite(lower) & np.isfinite(upper) & np.isfinite(y)
    return float(inside.mean()) if defined.all() else float("nan"), float(np.mean(upper - lower))


def central_interval(draws: Predictions, *, probability: float) -> tuple[Targets, Targets]:
    """Return the ends of the central interval with `probability` of the draws."""
    tail = (1 - probability) / 2
    lower, upper = np.quantile(draws, [tail, 1 - tail], axis=(0, 1))
    return lower, upper


def pointwise_crps(draws: Predictions, y: Targets) -> Targets:
    """Return the continuous ranked probability score of each observation, given at least two draws, in units of `y`.

    The score is E|x - y| - E|x - x'| / 2 in its fair form, which is unbiased for independent draws.

    References
    ----------
    Gneiting and Raftery 2007, Strictly proper scoring rules, JASA 102(477), equation 21. Zamo and Naveau 2018,
    Mathematical Geosciences 50 (the estimator).
    """
    pooled, num_draws = draws.reshape(-1, *y.shape), draws.shape[0] * draws.shape[1]
    # For sorted draws, the sum of |x - x'| is a sum of x with weights that increase in steps of 2.
    rising = 2.0 * np.arange(num_draws) - (num_draws - 1)
    weight = rising / (num_draws * (num_draws - 1))
    score = np.empty(y.shape)
    step = max(1, _AT_ONCE // (num_draws * y.shape[1]))
    for first in range(0, len(y), step):
        rows = slice(first, first + step)
        away = np.sort(pooled[:, rows] - y[rows], axis=0)
        score[rows] = np.abs(away).mean(axis=0) - np.tensordot(weight, away, axes=1)
    return score


BINS = 15
"""Number of bins, of equal width in confidence, for the calibration error."""

Probabilities = Float[np.ndarray, "obs out"]
DrawProbabilities = Float[np.ndarray, "chain draw obs out"]
Labels = Int[np.ndarray, " obs"]


def class_log_probability(logits: Predictions) -> Float[np.ndarray, "obs out"]:
    """Return the logarithm of the class probabilities averaged over draws."""
    per_draw = log_softmax(np.asarray(logits, np.float64), axis=-1)
    return logsumexp(per_draw, axis=(0, 1)) - np.log(logits.shape[0] * logits.shape[1])


def class_probability_by_draw(logits: Predictions) -> Predictions:
    """Return the class probabilities for each draw."""
    return np.exp(log_softmax(np.asarray(logits, np.float64), axis=-1))


def agreement(p: Probabilities, q: Probabilities) -> float:
    """Return the share of observations with the same most probable class (equation 1)."""
    if not (np.isfinite(p).all() and np.isfinite(q).all()):
        return float("nan")
    return float((p.argmax(axis=-1) == q.argmax(axis=-1)).mean())


def total_variation(p: Probabilities, q: Probabilities, *, halved: bool) -> float:
    """Return the mean total variation between class probabilities, averaged over draws.

    With `halved` it ranges from 0 to 1, as in the published table; otherwise from 0 to 2, as in equation 2.
    """
    sums = np.abs(p - q).sum(axis=-1)
    return float(sums.mean() / 2 if halved else sums.mean())


def single_draw_accuracy(probability: DrawProbabilities, labels: Labels) -> float:
    """Return the accuracy of single draws, averaged over draws."""
    if np.isnan(probability).any():
        return float("nan")
    return float((probability.argmax(axis=-1) == labels).mean())


def mutual_information(probability: DrawProbabilities) -> Float[np.ndarray, " obs"]:
    """Return the mutual information between the class of each observation and the draw, in nats.

    It is the entropy of the averaged probabilities minus the average entropy of the probabilities of a draw. It is 0 if
    all draws predict the same, and at most the logarithm of the number of classes.
    """
    return np.asarray(
        entropy(probability.mean(axis=(0, 1))) - entropy(probability).mean(axis=(0, 1))
    )


def entropy(probability: Float[np.ndarray, "*lead out"]) -> Float[np.ndarray, "*lead"]:
    """Return the entropy of class probabilities, in nats."""
    return np.asarray(-xlogy(probability, probability).sum(axis=-1))


def calibration_error(probability: Probabilities, labels: Labels) -> float:
    """Return the expected calibration error of the most probable class, from 0 to 1.

    It is the mean over bins of confidence, weighted by their numbers of observations, of the absolute difference
    between accuracy and mean confidence. It is biased upwards if bins have few observations.
    """
    if np.isnan(probability).any():
        return float("nan")
    confidence = probability.max(axis=-1)
    right = probability.argmax(axis=-1) == labels
    place = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
    # A bin's weight times the difference of its means equals the difference of its sums, divided by all observations.
    gaps = np.bincount(place, weights=right - confidence, minlength=BINS)
    return float(np.abs(gaps).sum() / len(labels))


def brier_score(probability: Probabilities, labels: Labels) -> float:
    """Return the mean squared distance of probabilities from the true class, summed over classes (0 to 2)."""
    truth = np.eye(probability.shape[1])[labels]
    return float(np.square(probability - truth).sum(axis=-1).mean())
