"""What is measured of every cell, and between cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import xarray as xr

from onebasin.analysis.diagnostics.diagnose import diagnose
from onebasin.analysis.diagnostics.result import Diagnosis
from onebasin.inference.engine import ENGINES

from ..heldout import Agreement, Gap, HeldOut, agree, gap, predict_held_out
from ..lab.study import Cell, Outcomes
from .design import CHARTS, Config, dataset, target

SEAM = 0.1
"""Within this of +-pi, in radians, a longitude counts as lying at the seam."""


@dataclass(frozen=True, eq=False)
class Measured:
    """One cell's numbers.

    Attributes
    ----------
    tree : DataTree
        The posterior.
    diagnosis : Diagnosis
        Of the parameters.
    held_out : HeldOut
        Predictions at the held-out points.
    bias : float
        Mean over the held-out points of the predictive mean less the true function.
    error : float
        Root mean square of the same.
    at_seam : float
        Share of draws with a hidden unit's longitude at the seam; NaN without unit-norm weights.
    crossings : float
        Steps of a hidden unit across the seam in 1000 draws; NaN likewise.
    """

    tree: xr.DataTree
    diagnosis: Diagnosis
    held_out: HeldOut
    bias: float
    error: float
    at_seam: float
    crossings: float

    @property
    def parameter_ess(self) -> float:
        """Smallest bulk ESS of a parameter."""
        return self.diagnosis.ess_bulk.value

    @property
    def ess_per_1000_gradients(self) -> float:
        """Median bulk ESS of f over gradient evaluations of the kept draws, in thousands."""
        return 1000 * self.held_out.median_ess / int(self.tree.attrs["gradient_evaluations"])

    @property
    def depth(self) -> tuple[float, float]:
        """Mean tree depth, and its standard error from the spread of the chains' means."""
        chains = self.tree["sample_stats"].to_dataset()["tree_depth"].mean("draw").values
        spread = float(chains.std(ddof=1)) if len(chains) > 1 else float("nan")
        return float(chains.mean()), spread / len(chains) ** 0.5

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain types."""
        sampled = self.diagnosis.sampler is not None
        return {
            "diagnosis": self.diagnosis.summary(),
            "warnings": list(self.diagnosis.warnings),
            "scores": self.held_out.scores.to_dict(),
            "bias": self.bias,
            "error": self.error,
            "at_seam": self.at_seam,
            "crossings": self.crossings,
            "prediction_ess": self.held_out.median_ess,
            "prediction_rhat": self.held_out.worst_rhat if sampled else None,
            "ess_per_1000_gradients": self.ess_per_1000_gradients if sampled else None,
        }


@dataclass(frozen=True, eq=False)
class Results:
    """All numbers of a run.

    Attributes
    ----------
    measured : mapping
        Of every cell that has a posterior.
    gaps : mapping
        Of every variational cell, from NUTS with the same parametrisation (and engine, if it ran).
    agreements : mapping
        By parametrisation, between the engines' NUTS.
    failures : mapping
        Why the other cells have no posterior.
    """

    measured: Mapping[Cell, Measured]
    gaps: Mapping[Cell, Gap]
    agreements: Mapping[str, Agreement]
    failures: Mapping[Cell, str]

    def sampled(self) -> dict[Cell, Measured]:
        """Cells of NUTS."""
        return {cell: m for cell, m in self.measured.items() if cell.method == "nuts"}

    def charts(self) -> dict[Cell, Measured]:
        """Cells of NUTS with unit-norm weights and free biases."""
        return {c: m for c, m in self.sampled().items() if c.problem in CHARTS}

    def find(self, parametrisation: str, method: str, engine: str) -> Cell | None:
        """Find a cell that has a posterior."""
        wanted = (parametrisation, method, engine)
        return next((c for c in self.measured if (c.problem, c.method, c.engine) == wanted), None)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain types, by the cells' keys."""
        return {
            "cells": {cell.key: m.to_dict() for cell, m in self.measured.items()},
            "from_nuts": {cell.key: asdict(gap) for cell, gap in self.gaps.items()},
            "engines": {name: asdict(a) for name, a in self.agreements.items()},
            "failures": {cell.key: reason for cell, reason in self.failures.items()},
        }


def measure_all(config: Config, outcomes: Outcomes) -> Results:
    """Measure every cell and compare those that belong together."""
    measured = {cell: _measure(config, cell, outcomes.tree(cell)) for cell in outcomes}
    alone = Results(measured, {}, {}, outcomes.failures)
    gaps = {}
    for cell, found in measured.items():
        reference = _reference(alone, cell)
        if cell.method != "nuts" and reference is not None:
            gaps[cell] = gap(found.held_out, measured[reference].held_out)
    return Results(measured, gaps, _agreements(config, alone), outcomes.failures)


def _measure(config: Config, cell: Cell, tree: xr.DataTree) -> Measured:
    data = dataset(config.seed)
    test = data.held_out
    if test is None or data.truth is None:
        raise ValueError(f"`{data.name}` has no held-out points or no true function.")
    held_out = predict_held_out(tree, target(config, cell).model, test.x, test.y)
    at_seam, crossings = _seam(tree)
    miss = held_out.function.mean(axis=(0, 1)) - data.truth(test.x)
    return Measured(
        tree=tree,
        diagnosis=diagnose(tree),
        held_out=held_out,
        bias=float(miss.mean()),
        error=float(np.sqrt(np.mean(miss**2))),
        at_seam=at_seam,
        crossings=crossings,
    )


def _seam(tree: xr.DataTree) -> tuple[float, float]:
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


def _reference(results: Results, cell: Cell) -> Cell | None:
    engines = (cell.engine, *(engine for engine in ENGINES if engine != cell.engine))
    candidates = (results.find(cell.problem, "nuts", engine) for engine in engines)
    return next((c for c in candidates if c is not None), None)


def _agreements(config: Config, results: Results) -> dict[str, Agreement]:
    found = {}
    for name in config.parametrisations:
        a, b = (results.find(name, "nuts", engine) for engine in ENGINES)
        if a is not None and b is not None:
            found[name] = agree(results.measured[a].held_out, results.measured[b].held_out)
    return found
