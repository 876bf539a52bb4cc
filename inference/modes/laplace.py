"""Laplace's approximation: a Gaussian at the mode, with the curvature there, on either engine."""

from __future__ import annotations

import xarray as xr

from onebasin.models.pointwise import LIMIT_MB
from onebasin.models.settings import given_or_default
from onebasin.models.target import Target

from .method import approximate
from .settings import LaplaceSettings


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
    target : Target
        What to approximate.
    engine : {"numpyro", "stan"}, optional
        The Hessian by JAX, or CmdStan's `laplace`; by default the one that the target
        has a definition for, NumPyro where it has both.
    settings : LaplaceSettings, optional
        The search for the mode, and draws.
    seed : int
        Of the starting points and the draws.
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
        One chain of draws, in the variables' own spaces, with `lp` and `log_q`, of which k-hat is made; attribute
        `converged` says whether the mode was met. The NumPyro engine adds `loc` and `scale_tril` to the group
        `variational`.

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
        If no optimum is found, the curvature at it is not that of a peak, or Stan cannot compile or run the program.
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
