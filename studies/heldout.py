"""A network's held-out predictions in a study: the columns of a frame, and the fields of tables."""

from typing import Any

from onebasin.analysis.predictive.heldout import HeldOut

from .lab import Field, at_most

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


def columns_of(held_out: HeldOut) -> dict[str, Any]:
    """Give the columns of a frame: all scores, and of Markov chains how well they mix in f."""
    scores, ess = held_out.scores.to_dict(), held_out.median_ess
    scores.pop("num_draws")  # of all chains; a diagnosis has that of each
    columns = {**scores, "prediction_ess": ess, "prediction_rhat": None}
    if held_out.gradients is not None:
        columns["prediction_rhat"] = held_out.worst_rhat
        columns["ess_per_1000_gradients"] = 1000 * ess / held_out.gradients
    return columns
