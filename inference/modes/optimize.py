"""The mode of a posterior, by L-BFGS on either engine."""

from __future__ import annotations

import xarray as xr

from onebasin.base.settings import given_or_default
from onebasin.models.target import Target
from onebasin.posteriors.pointwise import LIMIT_MB

from ..contract import method
from .method import approximate
from .settings import OptimizeSettings


@method
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
    engine : {"numpyro", "stan"}, optional
        SciPy's L-BFGS-B on the NumPyro model, or CmdStan's L-BFGS; by default the engine that
        the target has a definition for, NumPyro where it has both.
    settings : OptimizeSettings, optional
        Starting points, iterations, and whether the log Jacobian is added; ``OptimizeSettings()`` by default.

    Returns
    -------
    DataTree
        One chain with one draw, the optimum; in `sample_stats` its `lp` (1, 1), the log density that was maximised, in
        nats; attribute `converged`, 1 or 0, says whether the optimiser met its criterion there. `diagnose` refuses it:
        one value has no spread.

    Raises
    ------
    InferenceError
        If no optimum is found.
    StanError
        If Stan cannot compile or run the program.

    References
    ----------
    Byrd, Lu, Nocedal and Zhu 1995, SIAM Journal on Scientific Computing 16(5) (L-BFGS-B).

    Examples
    --------
    >>> optimum = ob.optimize(target, seed=1)
    >>> optimum["posterior"]["mu"].shape, optimum.attrs["converged"]
    ((1, 1, 2), 1)
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
