"""Posteriors of all jobs, kept in a folder; and the record of what they came to."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import xarray as xr

import onebasin as ob
from onebasin.inference.runs.provenance import machine, versions

from .cases import ALL, case
from .gaussians import best_elbo
from .measure import bound, compare, differences, least_ess
from .methods import SAMPLERS, SEED, Job


def posterior(job: Job, folder: Path) -> xr.DataTree:
    """The posterior of a job, made if it is not in the folder."""
    path = path_of(job, folder)
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        started = time.perf_counter()
        ob.save(job.run(), path)
        sys.stderr.write(f"{job.name}: {time.perf_counter() - started:.1f} s\n")
    return ob.open_posterior(path)


def path_of(job: Job, folder: Path) -> Path:
    """Where a job's posterior is kept."""
    return folder / f"{job.name}.nc".replace(" ", "_").replace(",", "")


def record(jobs: Iterable[Job], folder: Path) -> dict[str, Any]:
    """Everything that the page says, and how it was made."""
    rows: dict[str, list[dict[str, Any]]] = {"samplers": [], "approximations": []}
    for job in jobs:
        tree = posterior(job, folder)
        kind, row = (
            ("samplers", sampler_row)
            if job.method in SAMPLERS
            else ("approximations", approximation_row)
        )
        rows[kind].append({**vars(job), **row(job, tree)})
    return {
        "command": "python -m benchmarks.exact FOLDER",
        "seed": SEED,
        "versions": versions(),
        "machine": machine(),
        "cases": [case_row(name) for name in ALL],
        **rows,
    }


def case_row(name: str) -> dict[str, Any]:
    """The exact posterior of a case."""
    this = case(name)
    of = this.quantities(this.exact.values)
    return {
        "case": name,
        "parameters": this.size,
        "nodes": this.exact.all_mass.size,
        "log_evidence": rounded(this.exact.log_evidence, 6),
        "error": float(f"{this.exact.error:.1e}"),
        "quantities": {
            word: {"mean": rounded(this.exact.mean(v)), "sd": rounded(this.exact.sd(v))}
            for word, v in of.items()
        },
    }


def sampler_row(job: Job, tree: xr.DataTree) -> dict[str, Any]:
    """The worst of all statistics, in Monte Carlo standard errors."""
    this = case(job.case)
    found = list(compare(this, tree))
    worst = max(found, key=lambda one: one.errors)
    return {
        "least_ess": round(least_ess(this, tree)),
        "statistics": len(found),
        "worst_errors": rounded(worst.errors, 2),
        "worst": f"{worst.statistic} of {worst.quantity}",
        "seconds": rounded(float(tree.attrs["wall_time"]), 1),
    }


def approximation_row(job: Job, tree: xr.DataTree) -> dict[str, Any]:
    """Errors of means and spreads, and what is short of the evidence."""
    this = case(job.case)
    found = differences(this, tree)
    row: dict[str, Any] = {
        "worst_bias": rounded(max(abs(one.bias) for one in found), 3),
        "least_spread": rounded(min(one.spread for one in found), 3),
        "most_spread": rounded(max(one.spread for one in found), 3),
    }
    if (of := bound(tree)) is not None:
        evidence = this.exact.log_evidence
        row |= {"short": rounded(evidence - of[0]), "short_mcse": rounded(of[1])}
    if job.method.endswith("ADVI numpyro") and this.size < 7:
        row["least_short"] = rounded(this.exact.log_evidence - best(job, tree))
    return row


def best(job: Job, tree: xr.DataTree) -> float:
    """ELBO of the best Gaussian of the family that ADVI was fitted in."""
    fit = tree["variational"]
    scale = fit["scale_tril" if "scale_tril" in fit else "scale"].values
    with jax.enable_x64(True):
        density = ob.jax_density(case(job.case).target(job.chart))
        return best_elbo(density, np.asarray(fit["loc"].values), np.asarray(scale))


def rounded(value: float, decimals: int = 4) -> float:
    """A number as it is recorded."""
    return round(float(value), decimals)
