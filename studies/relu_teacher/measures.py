"""Measure every posterior, and groups of those that belong together; and the paper's statements, tried on that.

Each statement is an effect over data sets: in every engine, pair of parametrisations and level of noise. With fewer
data sets than a Wilcoxon test needs, as in the default run, every statement is unclear.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import xarray as xr

from onebasin.analysis.predictive.heldout import HeldOut, gap, predict_held_out

from .. import lab
from ..lab import Cell, Frame, Frames, Measure, Outcomes, Row, Scale, Side, Test, changes, exceeds
from ..lab.cells import diagnosis_columns
from ..lab.shared import MAX_RHAT, columns_of, effect_claim, from_to, posterior_name
from .design import SEAM, TeacherConfig, data_of, target

BOUND = 5.0
"""Monte Carlo errors by which two engines' predictive means may differ."""


def measure(config: TeacherConfig, outcomes: Outcomes) -> Frames:
    """Measure every cell, and compare those that belong together.

    The frames: `cells`, a row a cell: diagnosis, scores at the held-out points (`bias` and `error` are mean and root
    mean square of the predictive mean less the true function), the share of draws `at_seam` and the `crossings` of the
    seam, and for variational cells the distance from NUTS; and `engines`, a row a parametrisation: the engines' NUTS
    against each other.
    """
    rows: list[dict[str, Any]] = []
    engines: list[Row] = []
    for name in dict.fromkeys(cell.data for cell in outcomes):
        held_out, misses = {}, {}  # the predictions of one data set are in memory together
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
            row |= columns_of(predictions, row["sampling_seconds"])
            row |= {"bias": miss.mean(), "error": np.sqrt(np.mean(miss**2))}
            row |= dict(zip(("at_seam", "crossings"), seam(tree), strict=True))
            rows.append(row | from_nuts(held_out, cell))
        engines += agreements(held_out)
    return {"cells": Frame.of(rows), "engines": Frame.of(engines)}


def from_nuts(held_out: Mapping[Cell, HeldOut], cell: Cell) -> dict[str, float]:
    """Measure a variational cell's distance from NUTS on its problem, by its engine or else by the other.

    `held_out` are the predictions of one data set. The columns are `from_nuts_in_sds` and so on; none where NUTS did
    not run, or for NUTS itself.
    """
    truths = {
        c.engine: h for c, h in held_out.items() if (c.problem, c.method) == (cell.problem, "nuts")
    }
    if cell.method == "nuts" or not truths:
        return {}
    truth = truths.get(cell.engine, next(iter(truths.values())))
    return {f"from_nuts_{name}": v for name, v in gap(held_out[cell], truth).items()}


def agreements(held_out: Mapping[Cell, HeldOut]) -> Iterator[Row]:
    """Compare the engines' NUTS with each other on one data set, a row a problem that both sampled."""
    sampled = {(cell.problem, cell.engine): cell for cell in held_out if cell.method == "nuts"}
    for (problem, engine), cell in sampled.items():
        other = sampled.get((problem, "stan"))
        if engine != "stan" and other is not None:
            where = {"data": cell.data} if cell.data else {}
            yield {**where, "problem": problem, **agree(held_out[cell], held_out[other])}


def agree(a: HeldOut, b: HeldOut) -> dict[str, Any]:
    """Compare the difference of two posteriors' predictive means with its Monte Carlo error.

    `largest` is the largest |difference| over the points and sigma, in units of that error, and `where` the quantity
    that has it; `beyond` counts those of the `num_quantities` that lie beyond the bound; `rhat` is the largest R-hat of
    either: where it is large the Monte Carlo error, and so the test, is void.
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
    """Share of draws with a longitude at the seam, and steps across it in 1000; NaN without unit-norm weights."""
    weights = tree["posterior"].to_dataset()["W1"].transpose("chain", "draw", "in", "hidden1")
    values = weights.values
    if not np.allclose(np.square(values).sum(axis=2), 1):
        return float("nan"), float("nan")
    longitude = np.arctan2(values[:, :, 1], values[:, :, 0])
    at_seam = (np.abs(longitude) > np.pi - SEAM).any(axis=-1)
    # Nearer to the seam than to 0, before and after, and on its other side.
    behind = np.abs(longitude) > np.pi / 2
    across = longitude[:, 1:] * longitude[:, :-1] < 0
    across &= behind[:, 1:] & behind[:, :-1]
    return float(at_seam.mean()), float(1000 * across.any(axis=-1).mean())


PAIRS = (("free", "givens"), ("ordered", "givens+ordered"))
"""Without and with the unit-norm constraint, all else equal."""
ALIKE = ("method", "engine", "noise_sd")
SHIFT = 0.25
"""Root mean square shift, in posterior sds, above which a predictive mean is called biased."""

_FEWER = "In practice, we found the number of effective samples [...] to be lower in the constrained case."
_EASIER = (
    "Using unit vectors via the Givens Transform results in a much more well-behaved posterior that is easier to "
    "sample from [...]."
)
_ACCURATE = (
    "This amounts to more accurate estimates and posterior predictive uncertainties of new data."
)


def void(frames: lab.Frames, row: lab.Row) -> bool:
    """Tell whether NUTS is no truth: its chains disagree on f for a row's problem and engine, or it did not run."""
    alike = {name: row[name] for name in ("data", "problem", "engine") if name in row}
    nuts = frames["cells"].find(**alike, method="nuts")
    return nuts is None or nuts["prediction_rhat"] is None or nuts["prediction_rhat"] > MAX_RHAT


def advi(**wanted: str) -> Callable[[lab.Frames], lab.Frame]:
    """Select cells that are compared with NUTS."""
    return lambda frames: frames["cells"].known("from_nuts_in_sds").where(**wanted)


def _constrained(over: lab.Rows, measure: Measure, side: Side, scale: Scale = "ratio") -> Test:
    """Compare cells without and with the constraint, data set by data set."""
    return changes(
        over, measure, "problem", PAIRS, side,
        scale=scale, by="dataset", same=ALIKE, void=void,
        where=lambda a, b: f"{from_to(a, b)}, noise {a['noise_sd']:g}",
    )  # fmt: skip


def _gains(measure: Measure, scale: Scale) -> Test:
    """Compare a distance of ADVI from NUTS without and with the constraint, family by family."""
    families = ("meanfield", "fullrank")
    return lab.join(*(_constrained(advi(method=m), measure, "below", scale) for m in families))


_NUTS = lab.select("cells", method="nuts")
CLAIMS = (
    effect_claim(
        "fewer effective samples, parameters",
        _FEWER,
        "smallest bulk ESS of a parameter, constrained over free, has its interval below 1",
        _constrained(_NUTS, "ess_bulk_value", "below"),
    ),
    effect_claim(
        "fewer effective samples, predictions",
        _FEWER,
        "median bulk ESS of f over the held-out points, constrained over free, has its interval below 1",
        _constrained(_NUTS, "prediction_ess", "below"),
    ),
    effect_claim(
        "lower tree depth",
        "In practice, we found the [...] average NUTS tree depth to be lower in the constrained case.",
        "the mean depth, constrained less free, has its interval below 0",
        _constrained(_NUTS, "mean_tree_depth", "below", "difference"),
    ),
    effect_claim(
        "easier to sample, by gradients",
        _EASIER,
        "median bulk ESS of f per gradient, constrained over free, has its interval above 1",
        _constrained(_NUTS, "ess_per_1000_gradients", "above"),
    ),
    effect_claim(
        "easier to sample, by time",
        _EASIER,
        "median bulk ESS of f per second of sampling, constrained over free, has its interval above 1",
        _constrained(_NUTS, "prediction_ess_per_second", "above"),
    ),
    effect_claim(
        "ADVI of free weights is biased",
        "This posterior is [...] difficult for VI to approximate, which results in biased posterior predictive "
        "distributions of new samples.",
        f"the distance of its predictive mean from NUTS's (root mean square over the held-out points) has its interval "
        f"above {SHIFT:g} posterior sds",
        exceeds(
            advi(problem="free"), "from_nuts_in_sds", SHIFT,
            same=ALIKE, where=lambda row: f"{posterior_name(row)}, noise {row['noise_sd']:g}", void=void,
        ),
    ),
    effect_claim(
        "ADVI gains by the constraint, estimates",
        _ACCURATE,
        "distance of its predictive mean from NUTS's in posterior sds, constrained over free, has its interval below 1",
        _gains("from_nuts_in_sds", "ratio"),
    ),
    effect_claim(
        "ADVI gains by the constraint, uncertainties",
        _ACCURATE,
        "absolute log ratio of its sd of f to NUTS's, constrained less free, has its interval below 0",
        _gains(lambda row: abs(math.log(row["from_nuts_sd_ratio"])), "difference"),
    ),
)  # fmt: skip
