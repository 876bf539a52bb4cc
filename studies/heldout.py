"""A network's predictions at points that it has not seen, scored and compared.

Convention: the function f(x) is the network's output without noise, (chain, draw, obs, out);
predictions add noise of the draw's own sigma from a fixed seed. Means and squared errors are those
of f, whose mean is the predictive mean without the Monte Carlo error that the noise would bring.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float

from onebasin.analysis.posterior.summary import summary
from onebasin.analysis.posterior.view import Draws, as_view
from onebasin.analysis.predictive.regression import PredictiveScores, score_function
from onebasin.models import BayesianNetwork, predict

NOISE_SEED = 20170411
"""Seed of the noise that predictions add to the function; the same for all posteriors."""
BOUND = 5.0
"""Monte Carlo errors by which two engines' predictive means may differ."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """One posterior's predictions at a set of points.

    Attributes
    ----------
    function
        Draws of the network's output, without noise.
    sigma
        Draws of the noise's standard deviation.
    scores
        Scores against what was observed.
    table
        One row per point and for `sigma`, invariant under every symmetry, with the columns of
        `analysis.parameters`.
    """

    function: Float[np.ndarray, "chain draw obs out"]
    sigma: Float[np.ndarray, "chain draw"]
    scores: PredictiveScores
    table: pd.DataFrame

    @property
    def points(self) -> pd.DataFrame:
        """The rows of the points, without that of `sigma`."""
        return self.table.drop(index="sigma")

    @property
    def worst_rhat(self) -> float:
        """Largest R-hat of f over the points."""
        return float(self.points["rhat"].max())

    @property
    def median_ess(self) -> float:
        """Median over the points of the bulk ESS of f."""
        return float(self.points["ess_bulk"].median())

    @property
    def columns(self) -> dict[str, Any]:
        """The columns of a frame: all scores, and R-hat of the worst point and bulk ESS of the median one."""
        scores = self.scores.to_dict()
        scores.pop("num_draws")  # of all chains; a diagnosis has that of each
        return {**scores, "prediction_rhat": self.worst_rhat, "prediction_ess": self.median_ess}


def predict_held_out(
    tree: xr.DataTree, model: BayesianNetwork, x: np.ndarray, y: np.ndarray
) -> HeldOut:
    """Predict at points and score the predictions.

    Parameters
    ----------
    tree : DataTree
        The posterior.
    model : BayesianNetwork
        The network that it is of, with a Gaussian likelihood.
    x : array (obs, in)
        Inputs, in the units that the network was conditioned on.
    y : array (obs, out)
        What was observed there.

    Returns
    -------
    HeldOut
        Predictions and scores.
    """
    function, sigma = draw_functions(tree, model, x)
    scores = score_function(function, sigma, y, np.random.default_rng(NOISE_SEED))
    return HeldOut(function, sigma, scores, _invariants(function, sigma))


def draw_functions(
    tree: xr.DataTree, model: BayesianNetwork, x: np.ndarray
) -> tuple[Float[np.ndarray, "chain draw obs out"], Float[np.ndarray, "chain draw"]]:
    """Draw the network's output at `x`, and the noise's standard deviation."""
    view = as_view(tree)
    posterior = {name: view.values(name) for name in view.variables}
    function = predict(model, posterior, x)
    known = getattr(model.likelihood, "noise_sd", None)
    sigma = posterior["sigma"] if known is None else np.full(function.shape[:2], known)
    return function, np.asarray(sigma, np.float64)


def add_noise(
    function: Float[np.ndarray, "chain draw obs out"], sigma: Float[np.ndarray, "chain draw"]
) -> Float[np.ndarray, "chain draw obs out"]:
    """Draw predictions: the function plus noise from a fixed seed."""
    noise = np.random.default_rng(NOISE_SEED).standard_normal(function.shape)
    return function + sigma[..., None, None] * noise


def _invariants(function: np.ndarray, sigma: np.ndarray) -> pd.DataFrame:
    names = [f"f[{i},{j}]" for i, j in np.ndindex(function.shape[2:])]
    flat = function.reshape(*function.shape[:2], len(names))
    return summary(Draws((*names, "sigma"), np.concatenate([flat, sigma[..., None]], axis=-1)))


@dataclass(frozen=True)
class Gap:
    """How far one posterior's predictions lie from a reference's, at the same points.

    Attributes
    ----------
    rms
        Root mean square over points of the difference of the means of f, in units of the target.
    in_sds
        The same, each difference divided by the reference's sd of f there.
    floor_in_sds
        What `in_sds` would be from Monte Carlo error alone.
    sd_ratio
        Geometric mean over points of the sd of f over the reference's.
    predictive_sd_ratio
        The same of the predictive sd, noise included.
    """

    rms: float
    in_sds: float
    floor_in_sds: float
    sd_ratio: float
    predictive_sd_ratio: float


def gap(held_out: HeldOut, reference: HeldOut) -> Gap:
    """Compare predictions with a reference's."""
    ours, theirs = held_out.points, reference.points
    difference = (ours["mean"] - theirs["mean"]).to_numpy()
    scale = theirs["sd"].to_numpy()
    error = np.hypot(ours["mcse_mean"], theirs["mcse_mean"]).to_numpy()
    return Gap(
        rms=_rms(difference),
        in_sds=_rms(difference / scale),
        floor_in_sds=_rms(error / scale),
        sd_ratio=_geometric_mean(ours["sd"].to_numpy() / scale),
        predictive_sd_ratio=_geometric_mean(_predictive_sd(held_out) / _predictive_sd(reference)),
    )


@dataclass(frozen=True)
class Agreement:
    """Whether two engines' NUTS have the same predictive means.

    Attributes
    ----------
    largest
        Largest |difference| over the points and sigma, in units of its Monte Carlo error.
    where
        The quantity that has it.
    beyond
        How many of the quantities lie beyond the bound.
    num_quantities
        How many there are.
    rhat
        Largest R-hat of either; where it is large the Monte Carlo error, and so the test, is void.
    """

    largest: float
    where: str
    beyond: int
    num_quantities: int
    rhat: float


def agree(a: HeldOut, b: HeldOut, *, bound: float = BOUND) -> Agreement:
    """Hold the difference of two posteriors' predictive means against its Monte Carlo error."""
    error = np.hypot(a.table["mcse_mean"], b.table["mcse_mean"])
    z = ((a.table["mean"] - b.table["mean"]) / error).abs()
    rhat = max(float(a.table["rhat"].max()), float(b.table["rhat"].max()))
    return Agreement(float(z.max()), str(z.idxmax()), int((z > bound).sum()), len(z), rhat)


def _predictive_sd(held_out: HeldOut) -> np.ndarray:
    return np.sqrt(held_out.points["sd"].to_numpy() ** 2 + float(np.mean(held_out.sigma**2)))


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))


def _geometric_mean(values: np.ndarray) -> float:
    return float(np.exp(np.mean(np.log(values))))
