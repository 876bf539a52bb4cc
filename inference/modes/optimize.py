"""The mode of a posterior, by L-BFGS on either engine."""

from __future__ import annotations

import xarray as xr

from onebasin.models.pointwise import LIMIT_MB
from onebasin.models.settings import given_or_default
from onebasin.models.target import Target

from .method import approximate
from .settings import OptimizeSettings


def optimize(
    target: Target,
    *,
    engine: str | None = None,
    settings: OptimizeSettings | None = None,
    seed: int = 0,
    predictive_mb: float = LIMIT_MB,
    check_symmetry: bool = True,
    progress: bool = False,
) -> xr.DataTree:
    """Find the highest point of a target's log density: a point estimate, and no posterior.

    Parameters
    ----------
    target : Target
        What to optimise.
    engine : {"numpyro", "stan"}, optional
        SciPy's L-BFGS-B on the NumPyro model, or CmdStan's L-BFGS; by default the one that the target
        has a definition for, NumPyro where it has both.
    settings : OptimizeSettings, optional
        Starting points, iterations, and whether the log Jacobian is added.
    seed : int
        Of the starting points.
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
        One draw, the optimum; `lp`, the log density that was maximised; attribute `converged` says whether the
        optimiser met its criterion there. `diagnose` refuses it: one value has no spread.

    Raises
    ------
    TypeError
        If `settings` are of another class.
    ValueError
        If the engine is unknown, the seed out of range, or the target has no definition for the engine.
    SymmetryError
        If the log density does not have the declared symmetry. What draws alone contradict is recorded in the attribute
        `symmetry_evidence` and said in a notice.
    InferenceError, StanError
        If no optimum is found, or Stan cannot compile or run the program.
    """
    return approximate(
        target,
        "optimize",
        lambda chosen: chosen.optimize,
        engine=engine,
        settings=given_or_default(settings, OptimizeSettings, taker="optimize"),
        seed=seed,
        predictive_mb=predictive_mb,
        check_symmetry=check_symmetry,
        progress=progress,
    )
