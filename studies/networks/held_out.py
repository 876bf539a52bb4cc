"""Predictions of one posterior at new points, with their scores and the precision of their means.

Means and squared errors use f, because its mean is the predictive mean without the Monte Carlo error of the noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float

from onebasin.analysis.predictive.predictions import summarise_outputs
from onebasin.analysis.predictive.scores import PredictiveScores, score_function
from onebasin.models import BayesianNetwork
from onebasin.posteriors import schema
from onebasin.posteriors.view import Posterior, as_view

NOISE_SEED = 20170411
"""Seed of the noise that is added to the function in predictions. It is the same for all posteriors."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The predictions of one posterior at a set of points, with scores."""

    function: Float[np.ndarray, "chain draw obs out"]  # The network's output, without noise.
    sigma: Float[np.ndarray, "chain draw"] | Float[np.ndarray, "chain draw obs out"]
    """Draws of the noise standard deviation: one for all points, or one per point if the network predicts it."""
    scores: PredictiveScores  # Scores for the observed `y`.
    table: pd.DataFrame
    """One row per point and per `sigma`, invariant under every symmetry, with the columns of `summaries.summary`."""
    y: Float[np.ndarray, "obs out"]
    gradients: int | None = None  # Gradient evaluations for the kept draws.

    @property
    def points(self) -> pd.DataFrame:
        """The rows of `table` for the points, without `sigma`."""
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
    """Predict with a network that has a Gaussian likelihood, and score the predictions.

    Inputs (obs, in) are in the units of the data on which the network was conditioned. `y` (obs, out) is observed.
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
    """Draw the network's output at `x` and the noise standard deviation (per point if it is predicted)."""
    from onebasin.models.networks.bayesian import predict_with_noise  # It loads JAX.

    view = as_view(posterior)
    draws = {name: view.values(name) for name in view.variables}
    function, sd = predict_with_noise(model, draws, x)
    sd = sd.astype(np.float64)
    return function, sd if model.predicts_noise else sd[..., 0, 0]


def gap(held_out: HeldOut, reference: HeldOut) -> dict[str, float]:
    """Measure how predictions differ from those of a reference at the same points.

    Returns
    -------
    dict
        `rms` is the root mean square over points of the difference between the means of f, in units of the target.
        `in_sds` is the same in units of the reference's sd of f, and `floor_in_sds` its expected value from Monte Carlo
        error alone. `sd_ratio` is the geometric mean over points of the ratio of sds of f, and `predictive_sd_ratio`
        the same for predictive sds, which include noise.
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
    noise = np.mean(held_out.sigma**2, axis=(0, 1)).ravel()  # One number, or one per point.
    return np.sqrt(held_out.points["sd"].to_numpy() ** 2 + noise)


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))


def _geometric_mean(values: np.ndarray) -> float:
    return float(np.exp(np.mean(np.log(values))))
