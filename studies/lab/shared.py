"""Tools that several papers need: effects as claims, names, averages, and a network's held-out predictions."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.stats import norm

from onebasin.analysis.predictive.heldout import HeldOut
from onebasin.base.errors import StudyError

from .cells import ENGINE_WORDS, METHOD_WORDS
from .claims import Claim, Test
from .frame import Frames, Row, Rows, averages, read
from .page import Caution, Field, RowTable, at_most
from .pairs import MIN_PAIRS, Effect

MOST = 99
"""Data sets, or splits, at most: keys number them by two digits."""


def check_number(option: str, number: int) -> None:
    """Refuse a number of data sets or of splits that makes no sense; `option` is its name on the command line."""
    if not 1 <= number <= MOST:
        raise StudyError(f"`--{option}` is {number}; it must be a whole number from 1 to {MOST}.")


def effect_claim(label: str, quote: str, rule: str, test: Test) -> Claim:
    """Claim an effect over data sets, to whose rule is added when it is open, and when it is not judged."""
    open_ = f"open where the interval holds both, not judged with fewer than {MIN_PAIRS} data sets"
    return Claim(label, quote, f"{rule}; {open_}", test, mixed="depends")


def sampled_by(row: Row) -> str:
    """Name the method and the engine of a row."""
    return f"{METHOD_WORDS[row['method']]}, {ENGINE_WORDS[row['engine']]}"


def posterior_name(row: Row) -> str:
    """Name a row's problem, method and engine, without the data set."""
    return f"{row['problem']}, {sampled_by(row)}"


def from_to(first: Row, second: Row) -> str:
    """Name what two rows compare: two problems, by one method and engine."""
    return f"{first['problem']} to {second['problem']}, {sampled_by(first)}"


def with_interval(effect: Effect, form: str = "+.3f") -> str:
    """Write an effect and its interval; the effect alone where it is of a single pair."""
    ends = f" ({effect.low:{form}} to {effect.high:{form}})" if effect.pairs > 1 else ""
    return f"{effect.estimate:{form}}{ends}"


def averaged(
    caption: str,
    rows: Rows,
    factors: Sequence[str],
    fields: Sequence[Field],
    *,
    drop_empty: bool = False,
) -> RowTable:
    """Tabulate rows with the same `factors` as one, of whatever its fields name: see `lab.frame.averages`."""
    names = {field.value for field in fields if isinstance(field.value, str)}
    over = averages(rows, factors, names - {*factors, "datasets"})
    return RowTable(caption, tuple(fields), over, drop_empty)


RHAT = 1.01
"""R-hat of f above which chains are flagged."""
MAX_RHAT = 1.05
"""R-hat of f above which chains disagree: what they say of the posterior is not to be trusted."""
LEVELS = (50, 80, 90, 95, 99)
"""Percent that central predictive intervals hold, where their coverage is measured."""
OF_F = (
    Field("R-hat of f", "prediction_rhat", decimals=3, unit="worst point", flag=at_most(RHAT)),
    Field("bulk ESS of f", "prediction_ess", decimals=0, unit="median point"),
    Field("tree depth", "mean_tree_depth", decimals=2, unit="mean"),
    Field("ESS of f", "ess_per_1000_gradients", unit="per 1000 gradients"),
    Field("ESS of f", lambda row: row.get("prediction_ess_per_second"), unit="per second"),
)
"""Fields for how well chains mix in f, which no symmetry changes."""
PREDICTIVE = (
    Field("RMSE", "rmse", unit="of the data"),
    Field("log score", "log_score", decimals=3, unit="nats"),
    Field("coverage", "coverage_50", decimals=2, unit="50 % interval"),
    Field("coverage", "coverage_95", decimals=2, unit="95 % interval"),
    Field("width", "width_95", unit="95 % interval"),
)
"""Fields for how good the predictions are."""


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


def chains_that_disagree(frames: Frames, over: Rows = "cells") -> str:
    """Say plainly where R-hat of a prediction is above `MAX_RHAT`, and how far the others got.

    `over` are the posteriors that count: those that what follows is said of.
    """
    cells = read(over, frames).known("prediction_rhat")
    if not cells:
        return ""
    bad = [row for row in cells if row["prediction_rhat"] > MAX_RHAT]
    worst = max(cells, key=lambda row: row["prediction_rhat"])
    largest = f"{worst['prediction_rhat']:.2f} ({worst['label']})"
    if not bad:
        return f"Chains agree on the predictions: their largest R-hat is {largest}, at most {MAX_RHAT:g} everywhere."
    share = cells.mean("rhat_above")
    points = "" if share is None else f", which is {100 * share:.1f} % of all points"
    return Caution(
        f"Chains do not agree on the predictions: R-hat of f is above {MAX_RHAT:g} at some test point in {len(bad)} of "
        f"{len(cells)} posteriors{points}, at most {largest}, so what follows is of samplers that have not converged; "
        "more draws (--warmup, --draws) are needed."
    )


def mixing(over: Sequence[str], caption: str) -> RowTable:
    """Tabulate how far chains of NUTS have got, over the cells that have these columns in common."""

    def rows(frames: Frames) -> Iterable[Row]:
        for row in frames["cells"].where(method="nuts").known("prediction_rhat"):
            yield {**row, "above": row["prediction_rhat"] > MAX_RHAT}

    return averaged(
        caption,
        rows,
        over,
        (
            Field("posteriors of", lambda row: ", ".join(str(row[name]) for name in over)),
            Field("posteriors", "datasets"),
            Field(
                "R-hat of f",
                "max_prediction_rhat",
                decimals=3,
                unit="largest",
                flag=at_most(MAX_RHAT),
            ),
            Field("above", "sum_above", unit=f"R-hat {MAX_RHAT:g}", flag=at_most(0)),
            Field("points above", "rhat_above", decimals=3, unit="mean share"),
            Field("bulk ESS of f", "median_prediction_ess", decimals=0, unit="median"),
            Field("tree depth", "median_mean_tree_depth", decimals=2, unit="median"),
            Field("at the limit", "median_saturated", decimals=2, unit="share of trees"),
            Field("divergences", "median_divergences", decimals=0, unit="median"),
            Field("ESS of f", "median_ess_per_1000_gradients", unit="per 1000 gradients"),
            Field("ESS of f", "median_prediction_ess_per_second", unit="per second"),
        ),
        drop_empty=True,
    )
