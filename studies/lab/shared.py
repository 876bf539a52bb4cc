"""Tools that several papers need: numbers of data sets, and scores of a network's held-out predictions."""

from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.stats import norm

from onebasin.analysis.predictive.heldout import HeldOut
from onebasin.base.errors import StudyError

from .frame import Row

MOST = 99
"""Data sets, or splits, at most: keys number them by two digits."""


def check_number(option: str, number: int) -> None:
    """Refuse a number of data sets or of splits that makes no sense; `option` is its name on the command line."""
    if not 1 <= number <= MOST:
        raise StudyError(f"`--{option}` is {number}; it must be a whole number from 1 to {MOST}.")


MAX_RHAT = 1.05
"""R-hat of f above which chains disagree: what they say of the posterior is not to be trusted."""
LEVELS = (50, 80, 90, 95, 99)
"""Percent that central predictive intervals hold, where their coverage is measured."""


def columns_of(held_out: HeldOut, seconds: float | None = None) -> dict[str, Any]:
    """Give the columns of a frame: all scores, and of Markov chains how well they mix in f.

    `seconds` is what the kept draws took, summed over chains.
    """
    scores, ess = held_out.scores.to_dict(), held_out.median_ess
    scores.pop("num_draws")  # of all chains; a diagnosis has that of each
    columns = {**scores, "prediction_ess": ess, "prediction_rhat": None}
    if held_out.gradients is not None:
        columns["prediction_rhat"] = held_out.worst_rhat
        columns["rhat_above"] = float((held_out.points["rhat"] > MAX_RHAT).mean())
        columns["ess_per_1000_gradients"] = 1000 * ess / held_out.gradients
        columns["prediction_ess_per_second"] = ess / seconds if seconds else None
    return columns


def calibration(held_out: HeldOut, y: Float[np.ndarray, "obs out"]) -> dict[str, float]:
    """Give the share of observed values inside the central predictive interval of each of `LEVELS`.

    The predictive distribution is the mixture of the draws' normal ones, so an interval holds a value where the
    mixture's distribution function there lies within it; no noise is drawn.
    """
    below = norm.cdf(y, held_out.function, held_out.sigma[..., None, None]).mean(axis=(0, 1))
    from_centre = 2 * np.abs(below - 0.5)
    return {f"covered_{level}": float((from_centre <= level / 100).mean()) for level in LEVELS}


def disagrees(row: Row) -> bool | None:
    """Tell whether chains disagree on the predictions; None without chains."""
    rhat = row.get("prediction_rhat")
    return None if rhat is None else bool(rhat > MAX_RHAT)
