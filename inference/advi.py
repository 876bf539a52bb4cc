"""Automatic differentiation variational inference (Kucukelbir et al. 2017) on either engine."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any

import xarray as xr

from models.choices import choose
from models.target import Target

from .fit import VariationalFit
from .posterior import build
from .progress import ProgressBars
from .settings import ENGINES, FAMILIES, AdviSettings, check_seed


def advi(
    target: Target,
    *,
    family: str = "meanfield",
    engine: str = "numpyro",
    settings: AdviSettings | None = None,
    seed: int = 0,
    progress: bool = False,
) -> xr.DataTree:
    """Fit a Gaussian in the unconstrained space.

    Parameters
    ----------
    target : Target
        What to approximate.
    family : {"meanfield", "fullrank"}
        Diagonal or full covariance.
    engine : {"numpyro", "stan"}
        NumPyro's guides with Adam, or Stan's own algorithm.
    settings : AdviSettings, optional
        Optimiser, stopping rule, draws.
    seed : int
        Of the starting point, the gradients and the draws.
    progress : bool
        Whether to show a bar on stderr.

    Returns
    -------
    DataTree
        One chain of draws from the fit, with `lp` and `log_q`, and the group `variational` with the ELBO trace;
        attribute `converged` says whether the stopping rule was met within `settings.iterations`.

    Raises
    ------
    ValueError
        If a word is unknown or the target has no definition for the engine.
    AdviFailed
        If every attempt failed (see `stan_advi.ATTEMPTS`); the message says so in one line.
    StanError
        If Stan cannot compile the program.
    """
    choose("family", family, FAMILIES)
    choose("engine", engine, ENGINES)
    check_seed(seed)
    settings = settings or AdviSettings()
    started = time.perf_counter()
    with ProgressBars(progress) as bars:
        fit = _fit(target, family, engine, settings, seed, bars)
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
    return build(target, fit.draws, fit.stats, how, variational=fit.variational)


def _fit(
    target: Target,
    family: str,
    engine: str,
    settings: AdviSettings,
    seed: int,
    bars: ProgressBars,
) -> VariationalFit:
    if engine == "numpyro":
        from .numpyro_advi import fit
    else:
        from .stan_advi import fit
    return fit(target, family, settings, seed, bars)
