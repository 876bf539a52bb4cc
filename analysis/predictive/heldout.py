"""A network's predictions at points that it has not seen: their scores, and how sure their means are.

Convention: the function f(x) is the network's output without noise, (chain, draw, obs, out);
predictions add noise of the draw's own standard deviation, sigma, from a fixed seed. Means and squared errors are those
of f, whose mean is the predictive mean without the Monte Carlo error that the noise would bring.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from jaxtyping import Float

from onebasin.posteriors import schema
from onebasin.posteriors.view import Posterior, as_view

from .predictions import summarise_outputs
from .scores import PredictiveScores, score_function

if TYPE_CHECKING:
    from onebasin.models.networks.bayesian import BayesianNetwork


NOISE_SEED = 20170411
"""Seed of the noise that predictions add to the function; the same for all posteriors."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """One posterior's predictions at a set of points."""

    function: Float[np.ndarray, "chain draw obs out"]  # The network's output, without noise.
    sigma: Float[np.ndarray, "chain draw"] | Float[np.ndarray, "chain draw obs out"]
    """Draws of the noise's standard deviation; one for all points, or one a point where the network predicts it."""
    scores: PredictiveScores  # Against what was observed, `y`.
    table: pd.DataFrame
    """A row a point and a `sigma`, invariant under every symmetry, with the columns of `summaries.summary`."""
    y: Float[np.ndarray, "obs out"]
    gradients: int | None = None  # Evaluations for the kept draws, of Markov chains.

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
    """Predict at points by a network with a Gaussian likelihood, and score the predictions.

    Inputs (obs, in) are in the units that the network was conditioned on; `y` (obs, out) was observed there.
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
    """Draw the network's output at `x`, and the noise's standard deviation: one a draw, or one a point if predicted."""
    from onebasin.models.networks.prediction import predict_with_noise

    view = as_view(posterior)
    draws = {name: view.values(name) for name in view.variables}
    function, sd = predict_with_noise(model, draws, x)
    sd = sd.astype(np.float64)
    return function, sd if model.predicts_noise else sd[..., 0, 0]


def gap(held_out: HeldOut, reference: HeldOut) -> dict[str, float]:
    """Measure how far predictions lie from a reference's at the same points.

    Returns
    -------
    dict
        `rms`, the root mean square over points of the difference of the means of f, in units of the target;
        `in_sds`, the same, each difference divided by the reference's sd of f there; `floor_in_sds`, what that would
        be from Monte Carlo error alone; `sd_ratio`, the geometric mean over points of the sd of f over the
        reference's; `predictive_sd_ratio`, the same of the predictive sd, noise included.
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
    noise = np.mean(held_out.sigma**2, axis=(0, 1)).ravel()  # one number, or one a point
    return np.sqrt(held_out.points["sd"].to_numpy() ** 2 + noise)


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))


def _geometric_mean(values: np.ndarray) -> float:
    return float(np.exp(np.mean(np.log(values))))
