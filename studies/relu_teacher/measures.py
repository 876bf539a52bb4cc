"""What is measured of every cell, and between cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import xarray as xr

from onebasin.inference.engine import ENGINES

from ..heldout import HeldOut, agree, gap, predict_held_out
from ..lab import Cell, Frame, Frames, Outcomes
from ..lab.diagnosis import diagnosis_columns
from .design import Config, dataset, target

SEAM = 0.1
"""Within this of +-pi, in radians, a longitude counts as lying at the seam."""


def measure(config: Config, outcomes: Outcomes) -> Frames:
    """Measure every cell and compare those that belong together.

    Returns
    -------
    mapping of str to Frame
        `cells`, a row a cell: diagnosis, scores at the held-out points, and for variational cells the
        distance from NUTS with the same parametrisation (and engine, if it ran); and `engines`, a row a
        parametrisation: the engines' NUTS against each other.
    """
    held_out = {cell: _held_out(config, cell, outcomes.tree(cell)) for cell in outcomes}
    cells = (_row(config, cell, outcomes, held_out) for cell in outcomes)
    return {"cells": Frame.of(cells), "engines": _agreements(config, held_out)}


def _row(
    config: Config, cell: Cell, outcomes: Outcomes, held_out: Mapping[Cell, HeldOut]
) -> dict[str, Any]:
    """Measure one cell.

    `bias` and `error` are mean and root mean square, over the held-out points, of the predictive mean less
    the true function; `at_seam` is the share of draws with a hidden unit's longitude at the seam and
    `crossings` the steps across it in 1000 draws, both missing without unit-norm weights.
    """
    tree, found, sampled = outcomes.tree(cell), held_out[cell], cell.method == "nuts"
    data = dataset(config.seed)
    miss = found.function.mean(axis=(0, 1)) - data.truth(data.held_out.x)
    at_seam, crossings = seam(tree)
    row = {
        **cell.factors,
        **diagnosis_columns(outcomes.diagnosis(cell)),
        **found.columns,
        "prediction_rhat": found.worst_rhat if sampled else None,
        "bias": miss.mean(),
        "error": np.sqrt(np.mean(miss**2)),
        "at_seam": at_seam,
        "crossings": crossings,
    }
    if sampled:
        gradients = int(tree.attrs["gradient_evaluations"])
        row |= {
            "ess_per_1000_gradients": 1000 * found.median_ess / gradients,
            "depth_error": _depth_error(tree),
        }
    reference = _reference(held_out, cell)
    if not sampled and reference is not None:
        distance = asdict(gap(found, held_out[reference]))
        row |= {f"from_nuts_{name}": value for name, value in distance.items()}
    return row


def _held_out(config: Config, cell: Cell, tree: xr.DataTree) -> HeldOut:
    data = dataset(config.seed)
    test = data.held_out
    if test is None or data.truth is None:
        raise ValueError(f"`{data.name}` has no held-out points or no true function.")
    return predict_held_out(tree, target(config, cell).model, test.x, test.y)


def _depth_error(tree: xr.DataTree) -> float:
    """Standard error of the mean tree depth, from the spread of the chains' means."""
    chains = tree["sample_stats"].to_dataset()["tree_depth"].mean("draw").values
    return float(chains.std(ddof=1)) / len(chains) ** 0.5 if len(chains) > 1 else float("nan")


def seam(tree: xr.DataTree) -> tuple[float, float]:
    """Share of draws at the seam, and steps across it in 1000 draws."""
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


def _reference(held_out: Mapping[Cell, HeldOut], cell: Cell) -> Cell | None:
    engines = (cell.engine, *(engine for engine in ENGINES if engine != cell.engine))
    return next((c for e in engines if (c := _nuts(held_out, cell.problem, e))), None)


def _nuts(held_out: Mapping[Cell, HeldOut], parametrisation: str, engine: str) -> Cell | None:
    wanted = (parametrisation, "nuts", engine)
    return next((c for c in held_out if (c.problem, c.method, c.engine) == wanted), None)


def _agreements(config: Config, held_out: Mapping[Cell, HeldOut]) -> Frame:
    rows = []
    for name in config.parametrisations:
        a, b = (_nuts(held_out, name, engine) for engine in ENGINES)
        if a is not None and b is not None:
            rows.append({"problem": name, **asdict(agree(held_out[a], held_out[b]))})
    return Frame.of(rows)
