"""A network's predictions at points that it has not seen, and their scores.

Convention: the function f(x) is the network's output without noise, (chain, draw, obs, out);
predictions add noise of the draw's own sigma from a fixed seed. Means and squared errors are those
of f, whose mean is the predictive mean without the Monte Carlo error that the noise would bring.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float

from onebasin.analysis.posterior.draws import Draws
from onebasin.analysis.posterior.summary import summary
from onebasin.analysis.posterior.view import as_view
from onebasin.analysis.predictive.regression import PredictiveScores, score_function
from onebasin.models import BayesianNetwork, predict, schema

from .lab import Field, at_most

NOISE_SEED = 20170411
"""Seed of the noise that predictions add to the function; the same for all posteriors."""
RHAT = 1.01
"""R-hat of f above which chains are flagged."""
OF_F = (
    Field("R-hat of f", "prediction_rhat", decimals=3, unit="worst point", flag=at_most(RHAT)),
    Field("bulk ESS of f", "prediction_ess", decimals=0, unit="median point"),
    Field("tree depth", "mean_tree_depth", decimals=2, unit="mean"),
    Field("ESS of f", "ess_per_1000_gradients", unit="per 1000 gradients"),
)
"""How well chains mix in f, which no symmetry changes."""
PREDICTIVE = (
    Field("RMSE", "rmse", unit="of the data"),
    Field("log score", "log_score", decimals=3, unit="nats"),
    Field("coverage", "coverage_50", decimals=2, unit="50 % interval"),
    Field("coverage", "coverage_95", decimals=2, unit="95 % interval"),
    Field("width", "width_95", unit="95 % interval"),
)
"""How good the predictions are."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """One posterior's predictions at a set of points."""

    function: Float[np.ndarray, "chain draw obs out"]
    """Draws of the network's output, without noise."""
    sigma: Float[np.ndarray, "chain draw"]  # Draws of the noise's standard deviation.
    scores: PredictiveScores  # Scores against what was observed.
    table: pd.DataFrame
    """One row per point and for `sigma`, invariant under every symmetry, with the columns of `analysis.parameters`."""
    gradients: int | None = None  # Gradient evaluations of the kept draws, of Markov chains.

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
        """The columns of a frame: all scores, and of Markov chains how well they mix in f."""
        scores = self.scores.to_dict()
        scores.pop("num_draws")  # of all chains; a diagnosis has that of each
        columns = {**scores, "prediction_ess": self.median_ess, "prediction_rhat": None}
        if self.gradients is not None:
            columns["prediction_rhat"] = self.worst_rhat
            columns["ess_per_1000_gradients"] = 1000 * self.median_ess / self.gradients
        return columns


def predict_held_out(
    tree: xr.DataTree, model: BayesianNetwork, x: np.ndarray, y: np.ndarray
) -> HeldOut:
    """Predict at inputs `x` in the units that the network was conditioned on, and score by what was observed there."""
    function, sigma = draw_functions(tree, model, x)
    scores = score_function(function, sigma, y, np.random.default_rng(NOISE_SEED))
    chains = tree.attrs.get(schema.METHOD) in ("nuts", "hmc")
    gradients = int(tree.attrs[schema.GRADIENT_EVALUATIONS]) if chains else None
    return HeldOut(function, sigma, scores, _invariants(function, sigma), gradients)


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


def _invariants(function: np.ndarray, sigma: np.ndarray) -> pd.DataFrame:
    names = [f"f[{i},{j}]" for i, j in np.ndindex(function.shape[2:])]
    flat = function.reshape(*function.shape[:2], len(names))
    return summary(Draws((*names, "sigma"), np.concatenate([flat, sigma[..., None]], axis=-1)))
