"""Measure every posterior: raw, aligned, by what nothing moves, and against the truth.

Every posterior is aligned twice: with a diagonal Gaussian, which weighs every entry by how well it is known (Stephens
2000) and is what the command line does, and with the mean of the aligned draws. What is said of R-hat and ESS is
said of the first.
"""

import math
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from onebasin.analysis.alignment import Alignment, align, switching
from onebasin.analysis.diagnostics.aligned import diagnose_aligned
from onebasin.analysis.summaries.summary import summary
from onebasin.posteriors.view import as_view
from onebasin.truth.alignment_failures import PlantedComponents, failure_rates
from onebasin.truth.alignment_recovery import Recovery, recover
from onebasin.truth.problems.label_switching import PROBLEMS, simulate

from ..lab import Cell, Frame, Frames, Outcomes, where
from ..lab.cells import diagnosis_columns
from .design import LabelSwitchingConfig, target

HELD_OUT_CHAINS = 4
"""Fewer chains leave too few to judge by after some were given to the reference."""
SEPARATIONS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0)
PLANTED = PlantedComponents()
RECOVERY = ("entries", "rms_sds", "largest_sds", "largest_entry", "inside_95")


def measure(config: LabelSwitchingConfig, outcomes: Outcomes) -> Frames:
    """Measure every cell, compare the engines, and measure how often alignment is wrong.

    The frames: `cells`, a row a posterior; `engines`, a row a problem that both engines have; and `rates`, a row a
    separation of planted components, with a failure rate of every rule for each of several posteriors.
    """
    rows = []
    for problem in config.problems:
        both = [outcomes.tree(cell) for cell in outcomes if cell.problem == problem]
        if len(both) == 2:
            rows.append({"problem": problem, **compare(*both)})
    found = failure_rates(SEPARATIONS, PLANTED)
    planted = {name: getattr(PLANTED, name) for name in ("components", "features", "draws")}
    rates = {"optimal": found.optimal, **found.rates}
    return {
        "cells": Frame.of(measure_cell(config, cell, outcomes) for cell in outcomes),
        "engines": Frame.of(rows),
        "rates": Frame.of(
            {"separation": distance, **planted, **{rule: rates[rule][:, place] for rule in rates}}
            for place, distance in enumerate(SEPARATIONS)
        ),
    }


def measure_cell(config: LabelSwitchingConfig, cell: Cell, outcomes: Outcomes) -> dict[str, Any]:
    """Measure one posterior.

    `raw` and `aligned` are of the parameters that the symmetry moves, `invariant` of what it leaves alone;
    `sd_ratio` is the median of aligned over raw standard deviations, `inflation` the largest of those by the mean over
    those by a Gaussian; `labellings` and `basins` are by chains.
    """
    tree, symmetry = outcomes.tree(cell), target(config, cell).symmetry
    truth = simulate(cell.problem, config.seed).truth
    found = diagnose_aligned(tree, held_out=config.nuts.chains >= HELD_OUT_CHAINS)
    by_mean = align(tree, symmetry, reference="mean")
    moved = found.raw.parameters.reindex(found.aligned.parameters.index)
    known = moved["rhat"].dropna()
    draws = as_view(by_mean.posterior).draws(_moved(by_mean))
    sd = pd.Series(draws.values.std(axis=(0, 1), ddof=1), index=draws.names)
    by_gaussian, of_mean = (
        recover(alignment.posterior, truth, symmetry) if truth else None
        for alignment in (found.alignment, by_mean)
    )
    return {
        **cell.factors,
        "label": where(cell.factors),
        "kind": PROBLEMS[cell.problem].kind,
        **diagnosis_columns(outcomes, cell),
        **_worst("raw", moved),
        "raw_parameter": str(known.idxmax() if len(known) else moved.index[0]),
        **_worst("aligned", found.aligned.parameters),
        **_worst("invariant", found.invariants),
        "invariant": found.invariant_rhat.parameter,
        "held_out_rhat": found.held_out_rhat.value if found.held_out_rhat else None,
        "basins": found.basins,
        "labellings": found.switching.labellings,
        "labellings_by_mean": switching(by_mean, noise=False).labellings,
        "labellings_in_all": round(math.exp(found.alignment.group.log_order)),
        "reassigned": found.switching.to_dict()["reassigned"],
        "variance_ratio": found.switching.ratio,
        "noise_ratio": found.switching.noise_ratio,
        "sd_ratio": found.shrinkage,
        "inflation": float((sd / found.aligned.parameters["sd"]).max()),
        **_recovery("", by_gaussian),
        **_recovery("mean_", of_mean),
        "symmetry_check": max(as_view(tree).parsed("symmetry_check") or [math.nan]),
        "sentences": found.sentences,
        "warnings": found.warnings,
    }


def compare(first: xr.DataTree, second: xr.DataTree) -> dict[str, float]:
    """Hold the means of two posteriors of one model against each other, raw and with the second aligned to the first.

    `raw` and `aligned` are the largest difference of a parameter's two means in units of the aligned draws' Monte Carlo
    error, `raw_sds` and `aligned_sds` in their posterior standard deviations; `rhat` is the larger one of their aligned
    R-hats: where it is large, so is the Monte Carlo error.
    """
    aligned = align(first)
    moved = _moved(aligned)
    aligned_second = align(second, reference=aligned.posterior)
    a, b = (
        summary(as_view(tree).draws(moved))
        for tree in (aligned.posterior, aligned_second.posterior)
    )
    raw_a, raw_b = (summary(as_view(tree).draws(moved)) for tree in (first, second))
    error = np.hypot(a["mcse_mean"], b["mcse_mean"])
    apart, raw_apart = (a["mean"] - b["mean"]).abs(), (raw_a["mean"] - raw_b["mean"]).abs()
    return {
        "rhat": max(a["rhat"].max(), b["rhat"].max()),
        "raw": (raw_apart / error).max(),
        "aligned": (apart / error).max(),
        "raw_sds": (raw_apart / a["sd"]).max(),
        "aligned_sds": (apart / a["sd"]).max(),
    }


def _recovery(prefix: str, found: Recovery | None) -> dict[str, Any]:
    """Say how near the truth is; None where there is no truth to recover."""
    summary = found.summary() if found else dict.fromkeys(RECOVERY)
    return {f"{prefix}{name}": summary[name] for name in RECOVERY}


def _worst(name: str, table: pd.DataFrame) -> dict[str, float]:
    """Give the largest R-hat and the smallest effective sample sizes of a table of parameters."""
    return {
        f"{name}_rhat": table["rhat"].max(),
        f"{name}_ess_bulk": table["ess_bulk"].min(),
        f"{name}_ess_tail": table["ess_tail"].min(),
    }


def _moved(alignment: Alignment) -> list[str]:
    return list(dict.fromkeys(name for block in alignment.symmetry for name in block.variables))
