"""Predictive scores of posteriors that store predictions of their own data."""

from collections.abc import Mapping

import numpy as np
import xarray as xr
from jaxtyping import Float

from ..posterior.view import get_group
from ..predictive.scores import PredictiveScores, score_predictions


def scores_of(posteriors: Mapping[str, xr.DataTree]) -> dict[str, PredictiveScores]:
    """Score every posterior that stores regression predictions of `y` and the `y` observed."""
    scores = {}
    for name, tree in posteriors.items():
        stored = stored_predictions(tree)
        if stored is not None:
            draws, y = stored
            likelihood = _log_likelihood(tree)
            scores[name] = score_predictions(draws, y, log_likelihood=likelihood)
    return scores


def stored_predictions(
    tree: xr.DataTree,
) -> tuple[Float[np.ndarray, "chain draw obs out"], Float[np.ndarray, "obs out"]] | None:
    """Return predictive draws and observed values, or None unless both are there as numbers."""
    predictive, observed = get_group(tree, "posterior_predictive"), get_group(tree, "observed_data")
    if predictive is None or observed is None or "y" not in predictive or "y" not in observed:
        return None
    draws, y = predictive["y"], observed["y"]
    if draws.ndim != 4 or y.ndim != 2 or draws.dtype.kind != "f":  # class labels are scored else
        return None
    values = draws.transpose("chain", "draw", ...).values
    return np.asarray(values, np.float64), np.asarray(y.values, np.float64)


def _log_likelihood(tree: xr.DataTree) -> Float[np.ndarray, "chain draw obs"] | None:
    group = get_group(tree, "log_likelihood")
    if group is None or "y" not in group or group["y"].ndim != 3:
        return None
    return np.asarray(group["y"].transpose("chain", "draw", ...).values, np.float64)
