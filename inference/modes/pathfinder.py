"""Pathfinder (Zhang, Carpenter, Gelman and Vehtari 2022, JMLR 23), by CmdStan."""

from __future__ import annotations

import xarray as xr

from onebasin.models.pointwise import LIMIT_MB
from onebasin.models.settings import given_or_default
from onebasin.models.target import Target

from .method import approximate
from .settings import PathfinderSettings


def pathfinder(
    target: Target,
    *,
    engine: str = "stan",
    settings: PathfinderSettings | None = None,
    seed: int = 0,
    predictive_mb: float = LIMIT_MB,
    check_symmetry: bool = True,
    progress: bool = False,
) -> xr.DataTree:
    """Fit Gaussians along the ways to optima, and draw from the best of each.

    Parameters
    ----------
    target : Target
        What to approximate, with a Stan side: a program of its own, or a network.
    engine : {"stan"}
        CmdStan's `pathfinder`.
    settings : PathfinderSettings, optional
        Paths and draws.
    seed : int
        Of everything.
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
        One chain of draws with `lp`, `log_q` and the number of the `path` that each is of. Draws of several paths are
        resampled by importance; what k-hat is made of, `lp - log_q` of all paths' own draws, stands in the group
        `variational` as `log_ratio`.

    Raises
    ------
    TypeError
        If `settings` are of another class.
    ValueError
        If the engine is not Stan, the seed out of range, or the target has no Stan side.
    SymmetryError
        If the log density does not have the declared symmetry. What draws alone contradict is recorded in the attribute
        `symmetry_evidence` and said in a notice.
    StanError
        If Stan cannot compile or run the program, or no path has come anywhere.
    """
    return approximate(
        target,
        "pathfinder",
        lambda chosen: chosen.pathfinder,
        engine=engine,
        settings=given_or_default(settings, PathfinderSettings, taker="pathfinder"),
        seed=seed,
        predictive_mb=predictive_mb,
        check_symmetry=check_symmetry,
        progress=progress,
    )
