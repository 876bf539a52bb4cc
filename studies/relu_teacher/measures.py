"""Measures of every posterior, comparisons between posteriors, and tables."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import xarray as xr

from ..lab.study import Cell, Change, Frames, Outcomes, Row, Summary, find, frame_of, select
from ..networks import PAIRS, diagnosis_columns, disagrees, score_columns
from ..networks.held_out import HeldOut, gap, predict_held_out
from .design import SEAM, TeacherConfig, data_of, target

BOUND = 5.0  # Largest allowed difference between predictive means of two engines, in Monte Carlo errors.


def measure(config: TeacherConfig, outcomes: Outcomes) -> Frames:
    """Measure every cell, and compare cells of the same data set.

    Return two frames. `cells` has one row per cell: the diagnosis, scores at the held-out points, the share of draws
    `at_seam` and the `crossings` of the seam. `bias` and `error` are the mean and root mean square of the predictive
    mean minus the true function. Rows of variational cells also have the distance from NUTS. `engines` has one row per
    parametrisation, which compares NUTS in the two engines.
    """
    rows: list[dict[str, Any]] = []
    engines: list[Row] = []
    for name in dict.fromkeys(cell.data for cell in outcomes):
        held_out, misses = {}, {}  # Keep one data set at a time, to save memory.
        for cell in outcomes:
            if cell.data == name:
                data, model = data_of(cell), target(config, cell).model
                test, truth = data.held_out, data.truth
                assert test is not None, "the teacher's data have held-out points"
                assert truth is not None, "and a true function"
                found = predict_held_out(outcomes.tree(cell), model, test.x, test.y)
                held_out[cell] = found
                misses[cell] = found.function.mean(axis=(0, 1)) - truth(test.x)
        for cell, predictions in held_out.items():
            miss, tree = misses[cell], outcomes.tree(cell)
            row = {**cell.factors, **diagnosis_columns(outcomes, cell)}
            row |= {"noise_sd": cell.case, "dataset": cell.number}
            row |= score_columns(predictions, row["sampling_seconds"])
            row |= {"bias": miss.mean(), "error": np.sqrt(np.mean(miss**2))}
            row |= dict(zip(("at_seam", "crossings"), seam(tree), strict=True))
            rows.append(row | from_nuts(held_out, cell))
        engines += agreements(held_out)
    return {"cells": frame_of(rows), "engines": frame_of(engines)}


def from_nuts(held_out: Mapping[Cell, HeldOut], cell: Cell) -> dict[str, float]:
    """Measure the distance of a variational cell from NUTS on the same problem, preferably in the same engine.

    `held_out` has the predictions of one data set. The columns are `from_nuts_in_sds` and so on. The result is empty if
    NUTS did not run, and for NUTS itself.
    """
    truths = {
        c.engine: h for c, h in held_out.items() if (c.problem, c.method) == (cell.problem, "nuts")
    }
    if cell.method == "nuts" or not truths:
        return {}
    truth = truths.get(cell.engine, next(iter(truths.values())))
    return {f"from_nuts_{name}": v for name, v in gap(held_out[cell], truth).items()}


def agreements(held_out: Mapping[Cell, HeldOut]) -> Iterator[Row]:
    """Compare NUTS in the two engines on one data set; yield one row per problem that both engines sampled."""
    sampled = {(cell.problem, cell.engine): cell for cell in held_out if cell.method == "nuts"}
    for (problem, engine), cell in sampled.items():
        other = sampled.get((problem, "stan"))
        if engine != "stan" and other is not None:
            where = {"data": cell.data} if cell.data else {}
            yield {**where, "problem": problem, **agree(held_out[cell], held_out[other])}


def agree(a: HeldOut, b: HeldOut) -> dict[str, Any]:
    """Compare the difference between the predictive means of two posteriors with its Monte Carlo error.

    `largest` is the largest |difference| over the points and sigma, in Monte Carlo errors. `where` names its quantity.
    `beyond` counts the quantities beyond the bound, out of `num_quantities`. `rhat` is the largest R-hat of the two
    posteriors. If it is large, the Monte Carlo error and the test are invalid.
    """
    error = np.hypot(a.table["mcse_mean"], b.table["mcse_mean"])
    z = ((a.table["mean"] - b.table["mean"]) / error).abs()
    return {
        "largest": float(z.max()),
        "where": str(z.idxmax()),
        "beyond": int((z > BOUND).sum()),
        "num_quantities": len(z),
        "rhat": max(float(one.table["rhat"].max()) for one in (a, b)),
    }


def seam(tree: xr.DataTree) -> tuple[float, float]:
    """Return the share of draws at the seam and the crossings per 1000 draws; NaN without unit-norm weights."""
    weights = tree["posterior"].to_dataset()["W1"].transpose("chain", "draw", "in", "hidden1")
    values = weights.values
    if not np.allclose(np.square(values).sum(axis=2), 1):
        return float("nan"), float("nan")
    longitude = np.arctan2(values[:, :, 1], values[:, :, 0])
    at_seam = (np.abs(longitude) > np.pi - SEAM).any(axis=-1)
    # A crossing: both longitudes are nearer to the seam than to 0, with opposite signs.
    behind = np.abs(longitude) > np.pi / 2
    across = longitude[:, 1:] * longitude[:, :-1] < 0
    across &= behind[:, 1:] & behind[:, :-1]
    return float(at_seam.mean()), float(1000 * across.any(axis=-1).mean())


def trusted(frames: Frames, row: Row) -> bool:
    """Return whether NUTS ran on a row's data, problem and engine, and its chains agree on f."""
    alike = {name: row[name] for name in ("data", "problem", "engine") if name in row}
    nuts = find(frames["cells"], **alike, method="nuts")
    return nuts is not None and disagrees(nuts) is False


_EASIER = "easier to sample"
TABLES = (
    Summary(
        "By the unit-norm constraint, over data sets whose chains agree (R-hat of f at most 1.05): NUTS, with over "
        "without. The paper gives no numbers, and says what is printed",
        {
            "bulk ESS, worst parameter": "ess_bulk_value",
            "bulk ESS of f, median": "prediction_ess",
            "mean tree depth": "mean_tree_depth",
            "ESS of f per 1000 gradients": "ess_per_1000_gradients",
            "ESS of f per second": "prediction_ess_per_second",
        },
        by=("engine", "noise_sd"),
        over=select("cells", method="nuts"),
        printed=lambda row: {
            "bulk ESS, worst parameter": "lower",
            "bulk ESS of f, median": "lower",
            "mean tree depth": "lower",
            "ESS of f per 1000 gradients": _EASIER,
            "ESS of f per second": _EASIER,
        },
        change=Change("problem", PAIRS, "dataset", "ratio"),
        trusted=trusted,
    ),
    Summary(
        "By the unit-norm constraint, likewise: ADVI's distance from NUTS, with less without",
        {
            "shift of the mean, posterior sds": "from_nuts_in_sds",
            "sd of f, |log ratio to NUTS|": lambda row: abs(math.log(row["from_nuts_sd_ratio"])),
        },
        by=("method", "engine", "noise_sd"),
        over=select("cells", "from_nuts_in_sds"),
        printed=lambda row: {
            "shift of the mean, posterior sds": "more accurate",
            "sd of f, |log ratio to NUTS|": "more accurate",
        },
        change=Change("problem", PAIRS, "dataset"),
        trusted=trusted,
    ),
    Summary(
        "Means over data sets: chains that disagree, ADVI's distance from NUTS, and predictions at held-out points",
        {
            "chains disagree on f, share": disagrees,
            "shift of the mean, posterior sds": "from_nuts_in_sds",
            "sd of f, ratio to NUTS": "from_nuts_sd_ratio",
            "RMSE": "rmse",
            "log score, nats": "log_score",
            "coverage of 95 %": "coverage_95",
        },
        by=("problem", "method", "engine", "noise_sd"),
        printed=lambda row: (
            {"shift of the mean, posterior sds": "biased"} if row["problem"] == "free" else {}
        ),
    ),
    Summary(
        "NUTS in Stan against NUTS in NumPyro: the largest difference of a predictive mean, and how many of the "
        f"quantities lie more than {BOUND:g} Monte Carlo errors apart",
        {"largest difference, MCSE": "largest", "beyond the bound": "beyond", "R-hat": "rhat"},
        by=("problem",),
        over="engines",
    ),
    Summary(
        "Charts: share of draws with a unit's longitude at the seam, and crossings of it in 1000 draws",
        {"at the seam": "at_seam", "crossings": "crossings"},
        by=("problem", "engine", "noise_sd"),
        over=select("cells", "at_seam"),
    ),
)
