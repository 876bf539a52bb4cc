"""Measure every posterior: raw, aligned, by what nothing moves, and against the truth.

Every posterior is aligned twice: with a diagonal Gaussian, which weighs every entry by how well it is known (Stephens
2000) and is what the command line does, and with the mean of the aligned draws. What is said of R-hat and ESS is
said of the first. The claims come after, each tried on every posterior that it is about.
"""

import math
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from onebasin.analysis.alignment import Alignment, align, switching
from onebasin.analysis.diagnostics.aligned import diagnose_aligned
from onebasin.analysis.diagnostics.verdict import PER_CHAIN, Limits
from onebasin.analysis.summaries.summary import summary
from onebasin.posteriors.view import as_view
from onebasin.truth.alignment_failures import PlantedComponents, failure_rates
from onebasin.truth.alignment_recovery import Recovery, recover
from onebasin.truth.problems.label_switching import PROBLEMS, simulate

from ..lab import Cell, Claim, Finding, Frame, Frames, Outcomes, Row, each, select, where
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
    summary = found.summary() if found else dict.fromkeys(RECOVERY)
    return {f"{prefix}{name}": summary[name] for name in RECOVERY}


def _worst(name: str, table: pd.DataFrame) -> dict[str, float]:
    return {
        f"{name}_rhat": table["rhat"].max(),
        f"{name}_ess_bulk": table["ess_bulk"].min(),
        f"{name}_ess_tail": table["ess_tail"].min(),
    }


def _moved(alignment: Alignment) -> list[str]:
    return list(dict.fromkeys(name for block in alignment.symmetry for name in block.variables))


HOPELESS = 1.1
"""R-hat above which chains are said to disagree."""
GOOD = Limits().rhat

HELD_OUT = 1.02
"""R-hat that chains held out may have: there are half as many, so that chance weighs more."""
RMS_SDS, LARGEST_SDS = 1.5, 4.0
"""Largest distances of aligned means from the truth, in posterior standard deviations."""
MCSE = 5.0
"""Monte Carlo errors by which the means of two engines may differ."""

APART = select("cells", kind="apart")


def least_ess(row: Row) -> float:
    """Effective draws that the chains of a posterior must have."""
    return PER_CHAIN * row["num_chains"]


def spread(labellings: list[int]) -> str:
    """Write the numbers of labellings in the chains."""
    low, high = min(labellings), max(labellings)
    return str(low) if low == high else f"{low} to {high}"


def _one_mode(frames: Frames) -> list[Row]:
    return [row for row in frames["cells"] if row["kind"] != "modes"]


def _apart_in_earnest(frames: Frames) -> list[Row]:
    """Posteriors of several modes; and those that should have one, but whose chains differ in what nothing moves."""
    several = frames["cells"].where(kind="modes")
    return [*several, *(row for row in _one_mode(frames) if row["invariant_rhat"] > HOPELESS)]


def _disagree(row: Row) -> bool:
    """Tell whether chains are apart even when aligned, so that pooled means and sds say nothing."""
    return row["aligned_rhat"] > HOPELESS


def _passes(row: Row) -> Finding:
    rhat, bulk, tail = (row[f"aligned_{name}"] for name in ("rhat", "ess_bulk", "ess_tail"))
    least = least_ess(row)
    words = f"R-hat {rhat:.3f}, bulk ESS {bulk:.0f}, tail ESS {tail:.0f} of {least:.0f}"
    return words, rhat <= GOOD and min(bulk, tail) >= least


def _held_out_agrees(row: Row) -> Finding:
    rhat = row["held_out_rhat"]
    if rhat is None:
        return "too few chains", None
    if _disagree(row):
        return f"R-hat {rhat:.3f}, but chains with a part in the reference stay apart", None
    return f"R-hat {rhat:.3f}", rhat <= HELD_OUT


def _told_apart(row: Row) -> Finding:
    fixed, after, groups = row["invariant_rhat"], row["aligned_rhat"], len(row["basins"])
    words = f"R-hat {fixed:.2f} of an invariant, {after:.2f} aligned; {groups} groups of chains"
    if fixed <= HOPELESS:
        return words + ": all found one mode", None
    warned = any("stay apart after alignment" in warning for warning in row["warnings"])
    return words, after > HOPELESS and groups > 1 and warned


def _one_labelling(rule: str, words: str, column: str) -> Claim:
    return Claim(
        f"one mode, one labelling: by {rule}",
        "Where every labelling is a mode of its own, labels do not change within a chain.",
        f"aligned with {words}, every chain keeps one labelling",
        each(APART, lambda row: (f"{spread(row[column])} a chain", max(row[column]) == 1)),
    )


def _warns_of_overlap(row: Row) -> Finding:
    mean, gaussian = row["labellings_by_mean"], row["labellings"]
    warned = any("arts overlap" in w or "shuffled" in w for w in row["warnings"])
    words = f"{spread(mean)} labellings a chain by the mean, {spread(gaussian)} by a Gaussian, "
    words += "warned" if warned else "not warned"
    return words, min(max(mean), max(gaussian)) > 1 and warned


def _recovers(row: Row) -> Finding:
    if row["entries"] is None or _disagree(row):
        return "chains stay apart", None
    rms, largest = row["rms_sds"], row["largest_sds"]
    words = (
        f"{rms:.2f} sds, at most {largest:.2f} ({row['largest_entry']}); {100 * row['inside_95']:.0f} % of "
        f"{row['entries']} inside their 95 % intervals"
    )
    return words, rms <= RMS_SDS and largest <= LARGEST_SDS


def _engines_agree(row: Row) -> Finding:
    aligned = f"{row['aligned']:.1f} Monte Carlo errors ({row['aligned_sds']:.2f} sds) aligned"
    words = f"{aligned}, {row['raw_sds']:.0f} sds raw"
    return words, None if row["rhat"] > HOPELESS else row["aligned"] <= MCSE


CLAIMS = (
    Claim(
        "raw draws look hopeless",
        "Each chain is fine; together they look hopeless, since each has found the same mode under labels of its own.",
        f"the largest R-hat of a moved parameter is above {HOPELESS:g}",
        each(APART, lambda row: (f"R-hat {row['raw_rhat']:.2f}", row["raw_rhat"] > HOPELESS)),
    ),
    Claim(
        "aligned draws pass",
        "The same chains, every draw in one labelling, pass the limits that every posterior is held to.",
        f"after alignment the largest R-hat is at most {GOOD:g}, and bulk and tail ESS are at least "
        f"{PER_CHAIN:g} a chain",
        each(APART, _passes),
    ),
    Claim(
        "chains held out agree",
        "R-hat after alignment flatters, since all chains had a part in the reference; but not much.",
        f"chains aligned with a reference that they had no part in have an R-hat of at most {HELD_OUT:g}",
        each(APART, _held_out_agrees),
    ),
    Claim(
        "what nothing moves needs no alignment",
        "What does not change under any relabelling needs no alignment to be judged.",
        f"the largest R-hat of an invariant is at most {GOOD:g}",
        each(
            _one_mode,
            lambda row: (
                f"R-hat {row['invariant_rhat']:.3f}, of {row['invariant']}",
                row["invariant_rhat"] <= GOOD,
            ),
        ),
    ),
    Claim(
        "what has not converged is told apart",
        "Alignment does not mend chains in modes that no relabelling joins, and the diagnosis says so.",
        f"where the R-hat of an invariant is above {HOPELESS:g}, so is that of aligned draws, and the diagnosis "
        "counts more than one group of chains",
        each(_apart_in_earnest, _told_apart),
    ),
    _one_labelling("the mean", "the mean of the draws", "labellings_by_mean"),
    _one_labelling("a Gaussian", "a diagonal Gaussian", "labellings"),
    Claim(
        "overlap is warned of",
        "Where parts overlap, aligned means depend on the rule of the alignment, and the diagnosis says so.",
        "labels change within chains by either rule, and the diagnosis warns",
        each(select("cells", kind="overlap"), _warns_of_overlap),
    ),
    Claim(
        "the truth is recovered",
        "Aligned draws can be summarised: their means are those of the parts.",
        f"aligned means lie within {RMS_SDS:g} posterior sds of the truth (root mean square), none beyond "
        f"{LARGEST_SDS:g}",
        each(APART, _recovers),
    ),
    Claim(
        "two runs can be compared",
        "Two runs that found other labellings have the same means once they are in one.",
        f"means of the two engines, in one labelling, differ by at most {MCSE:g} Monte Carlo errors",
        each("engines", _engines_agree, where=lambda row: f"{row['problem']}, NumPyro and Stan"),
    ),
)
"""A claim is tried on every posterior that it is about."""
