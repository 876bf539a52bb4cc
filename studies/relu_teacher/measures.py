"""Measure every posterior, and groups of those that belong together."""

from typing import Any

import numpy as np
import xarray as xr

from onebasin.analysis.predictive.heldout import predict_held_out
from onebasin.base.errors import ArgumentError

from ..lab import Frame, Frames, Outcomes, Row
from ..lab.cells import diagnosis_columns
from ..shared.against_nuts import agreements, from_nuts
from ..shared.heldout import columns_of
from .design import SEAM, TeacherConfig, data_of, target


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
                data, model = data_of(config, cell), target(config, cell).model
                test, truth = data.held_out, data.truth
                if test is None or truth is None:
                    raise ArgumentError(
                        f"`{data.name}` has no held-out points or no true function."
                    )
                found = predict_held_out(outcomes.tree(cell), model, test.x, test.y)
                held_out[cell] = found
                misses[cell] = found.function.mean(axis=(0, 1)) - truth(test.x)
        for cell, predictions in held_out.items():
            miss, tree = misses[cell], outcomes.tree(cell)
            row = {**cell.factors, **diagnosis_columns(outcomes, cell)}
            row |= {"noise_sd": getattr(cell, "noise_sd", 1.0)}
            row |= {"dataset": getattr(cell, "number", 1)}
            row |= columns_of(predictions, row["sampling_seconds"])
            row |= {"bias": miss.mean(), "error": np.sqrt(np.mean(miss**2))}
            row |= dict(zip(("at_seam", "crossings"), seam(tree), strict=True))
            rows.append(row | from_nuts(held_out, cell))
        engines += agreements(held_out)
    return {"cells": Frame.of(rows), "engines": Frame.of(engines)}


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
