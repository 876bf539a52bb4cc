"""What is measured of every posterior: raw, aligned, by what nothing moves, and against the truth.

Every posterior is aligned twice: with a diagonal Gaussian, which weighs every entry by how well it is known (Stephens
2000) and is what the command line does, and with the mean of the aligned draws. What is said of R-hat and ESS is
said of the first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from onebasin.analysis.alignment import Alignment, align, switching
from onebasin.analysis.diagnostics.aligned import diagnose_aligned
from onebasin.analysis.diagnostics.result import AlignedDiagnosis
from onebasin.analysis.figures.trace_rank import TraceRank, trace_rank
from onebasin.analysis.posterior.summary import summary
from onebasin.analysis.posterior.view import as_view
from onebasin.analysis.report import Run, describe_run
from onebasin.models.symmetry.blocks import Symmetry

from ..lab.study import Cell, Outcomes
from .design import Config, target
from .problems import PROBLEMS, simulate
from .recovery import Recovery, recover

RAW, ALIGNED = ", raw", ", aligned"
HELD_OUT_CHAINS = 4
"""Fewer chains leave too few to judge by after some were given to the reference."""


@dataclass(frozen=True, eq=False)
class Measured:
    """One posterior's numbers.

    Attributes
    ----------
    modulo : AlignedDiagnosis
        Raw, aligned with a diagonal Gaussian, and invariants.
    mean_labellings : tuple of int
        Labellings in each chain where draws are aligned with their mean.
    inflation : float
        Largest ratio of a moved parameter's posterior sd aligned with the mean to that aligned with a Gaussian.
    recovery, mean_recovery : Recovery or None
        Against the truth, by either alignment; None where there is none.
    symmetry_check : float
        Largest change of the log density by the declared symmetry at random points.
    log_order : float
        Natural logarithm of the number of labellings.
    traces : tuple of TraceRank
        The parameter with the largest raw R-hat, raw and aligned.
    made : Run
        How the posterior was made.
    """

    modulo: AlignedDiagnosis
    mean_labellings: tuple[int, ...]
    inflation: float
    recovery: Recovery | None
    mean_recovery: Recovery | None
    symmetry_check: float
    log_order: float
    traces: tuple[TraceRank, ...]
    made: Run

    @property
    def raw(self) -> pd.DataFrame:
        """Rows of the moved parameters before alignment."""
        return self.modulo.raw.parameters.reindex(self.aligned.index)

    @property
    def aligned(self) -> pd.DataFrame:
        """Rows of the moved parameters after it."""
        return self.modulo.aligned.parameters

    @property
    def held_out_rhat(self) -> float:
        """Worst R-hat of chains that had no part in the reference; NaN without such."""
        found = self.modulo.held_out_rhat
        return found.value if found else math.nan

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain types."""
        tables = {"raw": self.raw, "aligned": self.aligned, "invariant": self.modulo.invariants}
        return {
            **{name: worst(table) for name, table in tables.items()},
            "held_out_rhat": self.held_out_rhat,
            "basins": [list(group) for group in self.modulo.basins],
            "labellings": list(self.modulo.switching.labellings),
            "labellings_mean": list(self.mean_labellings),
            "switching": self.modulo.switching.to_dict(),
            "inflation": self.inflation,
            "recovery": self.recovery and self.recovery.to_dict(),
            "recovery_mean": self.mean_recovery and self.mean_recovery.to_dict(),
            "symmetry_check": self.symmetry_check,
            "labellings_in_all": round(math.exp(self.log_order)),
            "sentences": list(self.modulo.sentences),
            "warnings": list(self.modulo.warnings),
            "diagnosis": self.modulo.raw.summary(),
        }


@dataclass(frozen=True)
class Comparison:
    """Two engines' posteriors of one problem, the second aligned with the first.

    Attributes
    ----------
    rhat : float
        The larger one of their aligned R-hats; where it is large, so is the Monte Carlo error.
    raw, aligned : float
        Largest difference of two means of a parameter, in units of the aligned draws' Monte Carlo error.
    raw_sds, aligned_sds : float
        The same in posterior standard deviations of the aligned draws.
    """

    rhat: float
    raw: float
    aligned: float
    raw_sds: float
    aligned_sds: float


@dataclass(frozen=True, eq=False)
class Results:
    """All numbers of a run.

    Attributes
    ----------
    measured : mapping
        Of every cell that has a posterior.
    comparisons : mapping
        By problem, between the engines.
    """

    measured: Mapping[Cell, Measured]
    comparisons: Mapping[str, Comparison]

    def of_kind(self, kind: str) -> dict[Cell, Measured]:
        """Posteriors of problems of a kind: `apart`, `overlap` or `modes`."""
        return {c: m for c, m in self.measured.items() if PROBLEMS[c.problem].kind == kind}

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain types, by the cells' keys."""
        return {
            "cells": {cell.key: m.to_dict() for cell, m in self.measured.items()},
            "engines": {name: vars(c) for name, c in self.comparisons.items()},
        }


def measure_all(config: Config, outcomes: Outcomes) -> Results:
    """Measure every cell, and compare the engines where a problem has both."""
    measured = {cell: measure(config, cell, outcomes.tree(cell)) for cell in outcomes}
    comparisons = {}
    for label in config.problems:
        both = [cell for cell in outcomes if cell.problem == label]
        if len(both) == 2:
            comparisons[label] = compare(*(outcomes.tree(cell) for cell in both))
    return Results(measured, comparisons)


def measure(config: Config, cell: Cell, tree: xr.DataTree) -> Measured:
    """Measure one posterior."""
    symmetry = target(config, cell).symmetry
    truth = simulate(cell.problem, config.seed).truth
    held_out = config.nuts.chains >= HELD_OUT_CHAINS
    modulo = diagnose_aligned(tree, held_out=held_out)
    by_mean = align(tree, symmetry, reference="mean")
    checked = as_view(tree).parsed("symmetry_check") or [math.nan]
    return Measured(
        modulo=modulo,
        mean_labellings=switching(by_mean, noise=False).labellings,
        inflation=_inflation(modulo, by_mean),
        recovery=recover(modulo.alignment.posterior, truth, symmetry) if truth else None,
        mean_recovery=recover(by_mean.posterior, truth, symmetry) if truth else None,
        symmetry_check=max(checked),
        log_order=modulo.alignment.group.log_order,
        traces=_traces(tree, modulo),
        made=describe_run(cell.label, tree),
    )


def compare(first: xr.DataTree, second: xr.DataTree) -> Comparison:
    """Hold the means of two posteriors of one model against each other, raw and in one labelling."""
    aligned = align(first)
    moved = _moved(aligned)
    beside = align(second, reference=aligned.posterior)
    a, b = (summary(as_view(tree).draws(moved)) for tree in (aligned.posterior, beside.posterior))
    raw_a, raw_b = (summary(as_view(tree).draws(moved)) for tree in (first, second))
    error = np.hypot(a["mcse_mean"], b["mcse_mean"])
    apart, raw_apart = (a["mean"] - b["mean"]).abs(), (raw_a["mean"] - raw_b["mean"]).abs()
    return Comparison(
        rhat=float(max(a["rhat"].max(), b["rhat"].max())),
        raw=float((raw_apart / error).max()),
        aligned=float((apart / error).max()),
        raw_sds=float((raw_apart / a["sd"]).max()),
        aligned_sds=float((apart / a["sd"]).max()),
    )


def worst(table: pd.DataFrame) -> dict[str, float]:
    """Give the largest R-hat and the smallest effective sample sizes of a table of parameters."""
    return {
        "rhat": float(table["rhat"].max()),
        "ess_bulk": float(table["ess_bulk"].min()),
        "ess_tail": float(table["ess_tail"].min()),
    }


def _moved(alignment: Alignment) -> list[str]:
    symmetry: Symmetry = alignment.symmetry
    return list(dict.fromkeys(name for block in symmetry for name in block.variables))


def _inflation(modulo: AlignedDiagnosis, by_mean: Alignment) -> float:
    draws = as_view(by_mean.posterior).draws(_moved(by_mean))
    sd = pd.Series(draws.values.std(axis=(0, 1), ddof=1), index=draws.names)
    return float((sd / modulo.aligned.parameters["sd"]).max())


def _traces(tree: xr.DataTree, modulo: AlignedDiagnosis) -> tuple[TraceRank, ...]:
    rows = modulo.raw.parameters.reindex(modulo.aligned.parameters.index)["rhat"].dropna()
    name = str(rows.idxmax()) if len(rows) else str(modulo.aligned.parameters.index[0])
    before, after = (as_view(t).draws().of(name) for t in (tree, modulo.alignment.posterior))
    return trace_rank(name + RAW, before), trace_rank(name + ALIGNED, after)
