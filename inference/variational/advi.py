"""Automatic differentiation variational inference (Kucukelbir et al. 2017) on either engine."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import xarray as xr

from onebasin.models.checks import check_seed, choose
from onebasin.models.pointwise import LIMIT_MB, check_limit
from onebasin.models.settings import given_or_default
from onebasin.models.storable import check_amount
from onebasin.models.target import Target, check_target

from .. import declared
from ..engine import engine_for, engine_named
from ..origin import origin_of
from ..posterior import build
from ..progress import ProgressBars
from .families.table import GAUSSIANS
from .fit import FitRequest
from .settings import AdviSettings


def advi(
    target: Target,
    *,
    family: str = "meanfield",
    engine: str | None = None,
    settings: AdviSettings | None = None,
    start: Mapping[str, Any] | None = None,
    seed: int = 0,
    predictive_mb: float = LIMIT_MB,
    check_symmetry: bool = True,
    progress: bool = False,
) -> xr.DataTree:
    """Fit a Gaussian in the unconstrained space.

    Parameters
    ----------
    target : Target
        What to approximate.
    family : {"meanfield", "fullrank"}
        Diagonal or full covariance.
    engine : {"numpyro", "stan"}, optional
        Our own Gaussian families with Adam, or Stan's own algorithm; by default the one that the target
        has a definition for, NumPyro where it has both.
    settings : AdviSettings, optional
        Optimiser, stopping rule, draws.
    start : mapping, optional
        Value of every variable at which the mean starts, under its name and with its shape, in its natural space: the
        mean of an aligned posterior, for one. Without it, the fit starts at random.
    seed : int
        Of the starting point, the gradients, the batches and the draws.
    predictive_mb : float
        Megabytes that the groups `log_likelihood`, `posterior_predictive` and `log_prior` may take together; beyond
        them every second, third, ... draw is kept there, and 0 leaves the groups out. What a Stan program computes
        itself is kept whole.
    check_symmetry : bool
        Whether a declared symmetry is held against the log density before the run and at its draws afterwards, as by
        `onebasin.check_symmetry`; a network's, which its architecture has, is not. It changes no draw; False leaves it
        out.
    progress : bool
        Whether to show a bar on stderr.

    Returns
    -------
    DataTree
        One chain of draws from the fit, with `lp` and `log_q`, and the group `variational` with the ELBO trace;
        attribute `converged` says whether the stopping rule was met within `settings.iterations`.

    Raises
    ------
    TypeError
        If `settings` are of another class.
    ValueError
        If a word is unknown, the target has no definition for the engine, `start` does not fit it, or a batch is asked
        for where there is no network, on the Stan engine, or larger than the data.
    SymmetryError
        If the log density does not have the declared symmetry. What draws alone contradict is recorded in the attribute
        `symmetry_evidence` and said in a notice.
    AdviFailed
        If every attempt failed (see `variational.stan.ATTEMPTS`); the message says so in one line.
    StanError
        If Stan cannot compile the program.
    """
    check_target(target)
    choose("family", family, GAUSSIANS)
    engine = engine_for(target, engine)
    fit_by = engine_named(engine).fit
    seed, limit = check_seed(seed), check_limit(predictive_mb)
    settings = given_or_default(settings, AdviSettings, taker="advi")
    check_amount(1, settings.draws)
    trial = declared.begin(
        target, engine=engine, seed=seed, progress=progress, wanted=check_symmetry
    )
    started = time.perf_counter()
    with ProgressBars(progress) as bars:
        origin = origin_of(target, engine, bars.say)
        fit = fit_by(FitRequest(target, family, settings, start, seed, bars))
    how: dict[str, Any] = {
        "engine": engine,
        "method": f"advi-{family}",
        "settings": asdict(settings),
        "seed": seed,
        "wall_time": time.perf_counter() - started,
        "gradient_evaluations": fit.gradient_evaluations,
        "converged": int(fit.converged),
        "attempts": fit.attempts,
    }
    if start is not None:
        how["start"] = _digest(start)
    tree = build(
        target,
        fit.draws,
        fit.stats,
        how,
        origin=origin,
        variational=fit.variational,
        predictive_mb=limit,
    )
    if trial is not None:
        trial.end(tree)
    return tree


def _digest(start: Mapping[str, Any]) -> str:
    """SHA-256 of the given values, in the order of their names."""
    digest = hashlib.sha256()
    for name in sorted(start):
        values = np.ascontiguousarray(start[name], np.float64)
        digest.update(f"{name}{values.shape}".encode() + values.tobytes())
    return digest.hexdigest()
