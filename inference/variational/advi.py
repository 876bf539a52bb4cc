"""Automatic differentiation variational inference (Kucukelbir et al. 2017) on either engine."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from onebasin.base.checks import choose
from onebasin.base.settings import given_or_default
from onebasin.models.target import Target
from onebasin.posteriors.pointwise import LIMIT_MB

from ..contract import method
from ..engines.engine import engine_named
from ..runs.run import Found, Job, run
from .families.table import GAUSSIANS
from .fit import FitRequest
from .settings import AdviSettings


@method
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
    """Fit a Gaussian in the unconstrained space by maximising the ELBO.

    Parameters
    ----------
    family : {"meanfield", "fullrank"}
        Diagonal or full covariance.
    engine : {"numpyro", "stan"}, optional
        Our own Gaussian families with Adam, or Stan's own algorithm; by default the engine that
        the target has a definition for, NumPyro where it has both.
    settings : AdviSettings, optional
        Optimiser, stopping rule, draws; ``AdviSettings()`` by default.
    start : mapping of str to array, optional
        Value (...) of every variable at which the mean starts, with its shape in one draw, in its natural space: the
        mean of an aligned posterior, for one. Without it, the fit starts at random.

    Returns
    -------
    DataTree
        One chain of draws from the fit, every variable as (1, draw, ...), with `lp` and `log_q` (1, draw) in nats, each
        up to a constant; and the group `variational` with `elbo (evaluation)` in nats at `iteration (evaluation)`, and
        of the NumPyro engine `loc (param)` with `scale (param)` or `scale_tril (param, param_bis)`. Attribute
        `converged` says whether the stopping rule was met within `settings.iterations`.

    Raises
    ------
    ValueError
        If a word is unknown, the seed out of range, the target has no definition for the engine, `start` does not fit
        it, a batch is asked for where there is no network or is larger than the data, or a setting does not fit the
        target, the family or the engine.
    AdviFailed
        If every attempt of Stan's failed; the message says so in one line.
    StanError
        If Stan cannot compile the program.

    See Also
    --------
    symmetrised_vi : what to use where parts are interchangeable.

    References
    ----------
    Kucukelbir, Tran, Ranganath, Gelman and Blei 2017, Automatic differentiation variational inference, JMLR 18(14); the
    stopping rule is that of section 2.6.

    Examples
    --------
    >>> settings = ob.AdviSettings(iterations=2000, draws=200)
    >>> fit = ob.advi(target, family="fullrank", settings=settings, seed=1)
    >>> fit["posterior"]["mu"].shape, fit["variational"]["loc"].shape
    ((1, 200, 2), (3,))
    """
    choose("family", family, GAUSSIANS)
    chosen = given_or_default(settings, AdviSettings, taker="advi")

    def work(job: Job) -> Found:
        fit = engine_named(job.engine).fit(
            FitRequest(target, family, chosen, start, job.seed, job.bars)
        )
        how: dict[str, Any] = {
            "gradient_evaluations": fit.gradient_evaluations,
            "converged": int(fit.converged),
            "attempts": fit.attempts,
        }
        if start is not None:
            how["start"] = _digest(start)
        return Found(fit.draws, fit.stats, how, fit.variational)

    return run(
        target,
        f"advi-{family}",
        work,
        engine=engine,
        settings=chosen,
        amount=(1, chosen.draws),
        seed=seed,
        predictive_mb=predictive_mb,
        check_symmetry=check_symmetry,
        progress=progress,
    )


def _digest(start: Mapping[str, Any]) -> str:
    """SHA-256 of the given values, in the order of their names."""
    digest = hashlib.sha256()
    for name in sorted(start):
        values = np.ascontiguousarray(start[name], np.float64)
        digest.update(f"{name}{values.shape}".encode() + values.tobytes())
    return digest.hexdigest()
