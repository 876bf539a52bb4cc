"""What is measured of every cell: how far it is from its reference, whether that is more than chance, what it cost."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import xarray as xr

from onebasin.analysis.compare.reference.compare import compare_with_reference
from onebasin.analysis.compare.reference.differences import TESTED
from onebasin.analysis.compare.reference.known import Known
from onebasin.analysis.compare.reference.result import ReferenceComparison
from onebasin.posteriors import schema
from onebasin.posteriors.view import as_view
from onebasin.truth import open_reference

from ..lab import Cell, Frame, Frames, Outcomes
from ..lab.record import RESULTS
from .design import NAME, Config
from .methods import METHODS


def measure(config: Config, outcomes: Outcomes) -> Frames:
    """Measure every cell; where methods are a user's own, those recorded of the same references stand beside them."""
    rows = [_row(cell, outcomes) for cell in outcomes]
    beside = _recorded(config) if config.added else []
    measured = {(row["problem"], row["method"]) for row in rows}
    rows += [row for row in beside if (row["problem"], row["method"]) not in measured]
    return {"cells": Frame.of(rows)}


@cache
def _known(reference: str) -> Known:
    return open_reference(reference).known


def _row(cell: Cell, outcomes: Outcomes) -> dict[str, Any]:
    tree = outcomes.tree(cell)
    factors = {**cell.factors, "label": label_of(cell.method), "recorded": False}
    factors |= {"seed": cell.seed, **_cost(cell, outcomes)}
    try:
        return {
            **factors,
            **columns(
                compare_with_reference(tree, _known(cell.problem), name=label_of(cell.method))
            ),
        }
    except ValueError as error:
        return {**factors, "verdict": "cannot be judged", "said": str(error)}


def label_of(method: str) -> str:
    """A method's name in tables; that of an added one is its own."""
    return METHODS[method].label if method in METHODS else method


def columns(found: ReferenceComparison) -> dict[str, Any]:
    """What a comparison comes to, in a row.

    `worst` and `median` are of the differences of means, in the reference's sds, over all quantities that vary; `tail`
    is the largest difference of a 5 or 95 % quantile; `sd_ratio` is the median over the parameters of the ratio of sds,
    `sd_low` and `sd_high` the smallest and the largest.
    """
    table = found.table[found.table["sd_known"] > 0]
    means, tails = table["d_mean"].abs(), table[["d_q5", "d_q95"]].abs()
    parameters = table[table["kind"] == "parameter"]["sd_ratio"]
    invariants = means[table["kind"] == "invariant"]
    z = table[[f"z_{name}" for name in TESTED]].abs()
    return {
        "verdict": found.verdict,
        "said": found.sentences[0],
        "worst": means.max(),
        "where": str(means.idxmax()),
        "median": means.median(),
        "worst_invariant": invariants.max() if len(invariants) else None,
        "tail": tails.to_numpy().max(),
        "sd_ratio": parameters.median(),
        "sd_low": parameters.min(),
        "sd_high": parameters.max(),
        "largest_z": z.to_numpy().max(),
        "z_bound": found.z_bound,
        "visible": found.visible,
        "quantities": len(table),
        "beyond": len(found.beyond),
        "rhat": table["rhat"].max(),
        "ess": table["ess_bulk"].min(),
        **_predictions(found),
    }


def _predictions(found: ReferenceComparison) -> dict[str, float | None]:
    for measure in ("total_variation", "mean_distance"):
        if measure in found.predictions:
            floor = found.predictions[f"{measure}_floor"]
            return {"prediction": found.predictions[measure], "prediction_floor": floor}
    return {"prediction": None, "prediction_floor": None}


def _cost(cell: Cell, outcomes: Outcomes) -> dict[str, float | None]:
    """Seconds and gradients; what a posterior is made from is counted too."""
    trees = [outcomes.tree(cell), *map(outcomes.by_key, cell.inputs)]
    return {name: _sum(trees, word) for name, word in _COSTS.items()}


_COSTS = {"seconds": schema.WALL_TIME, "gradients": schema.GRADIENT_EVALUATIONS}


def _sum(trees: list[xr.DataTree], word: str) -> float | None:
    numbers = [as_view(tree).number(word) for tree in trees]
    known = [number for number in numbers if number is not None]
    return float(np.sum(known)) if known else None


def _recorded(config: Config) -> list[dict[str, Any]]:
    """Rows of the repository's record of the same references; none where there is no record."""
    path = RESULTS / f"{NAME}.json"
    if not path.is_file():
        return []
    kept = json.loads(path.read_text(encoding="utf-8"))["frames"]["cells"]
    rows = Frame.from_json(kept).where(problem=config.references)
    return [{**row, "recorded": True} for row in rows]
