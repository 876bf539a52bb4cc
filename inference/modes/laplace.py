"""Laplace's approximation: a Gaussian at the mode, with the curvature there, on either engine."""

from __future__ import annotations

import xarray as xr

from onebasin.base.settings import given_or_default
from onebasin.models.target import Target
from onebasin.posteriors.pointwise import LIMIT_MB

from ..contract import method
from .method import approximate
from .settings import LaplaceSettings


@method
def laplace(
    target: Target,
    *,
    engine: str | None = None,
    settings: LaplaceSettings | None = None,
    seed: int = 0,
    predictive_mb: float = LIMIT_MB,
    check_symmetry: bool = True,
    progress: bool = False,
) -> xr.DataTree:
    """Fit a Gaussian in the unconstrained space by the Hessian of the log density at its mode there.

    Parameters
    ----------
    engine : {"numpyro", "stan"}, optional
        The Hessian by JAX, or CmdStan's `laplace`; by default the engine that
        the target has a definition for, NumPyro where it has both.
    settings : LaplaceSettings, optional
        The search for the mode, and draws; ``LaplaceSettings()`` by default.

    Returns
    -------
    DataTree
        One chain of draws, every variable in its own space as (1, draw, ...), with `lp` and `log_q` (1, draw) in nats,
        of which k-hat is made; attribute `converged` says whether the mode was met. The NumPyro engine adds the group
        `variational` with `loc (param)` and `scale_tril (param, param_bis)`, in the unconstrained space.

    Raises
    ------
    InferenceError
        If no optimum is found, or the curvature at it is not that of a peak.
    StanError
        If Stan cannot compile or run the program.

    References
    ----------
    Tierney and Kadane 1986, JASA 81(393). MacKay 1992, Neural Computation 4(3), for networks.

    Examples
    --------
    >>> fit = ob.laplace(target, settings=ob.LaplaceSettings(draws=200), seed=1)
    >>> fit["variational"]["scale_tril"].shape
    (3, 3)
    """
    return approximate(
        target,
        "laplace",
        lambda chosen: chosen.laplace,
        engine=engine,
        settings=given_or_default(settings, LaplaceSettings, taker="laplace"),
        seed=seed,
        predictive_mb=predictive_mb,
        check_symmetry=check_symmetry,
        progress=progress,
    )
