"""Pathfinder (Zhang, Carpenter, Gelman and Vehtari 2022, JMLR 23), by CmdStan."""

from __future__ import annotations

import xarray as xr

from onebasin.base.settings import given_or_default
from onebasin.models.target import Target
from onebasin.posteriors.pointwise import LIMIT_MB

from ..contract import method
from .method import approximate
from .settings import PathfinderSettings


@method
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
    engine : {"stan"}
        CmdStan's `pathfinder`; the target has to have a Stan side: a program of its own, or a network.
    settings : PathfinderSettings, optional
        Paths and draws; ``PathfinderSettings()`` by default.

    Returns
    -------
    DataTree
        One chain of draws, every variable as (1, draw, ...), with `lp` and `log_q` in nats and the number of the `path`
        that each is of, all (1, draw). Draws of several paths are resampled by importance; what k-hat is made of,
        `lp - log_q` of all paths' own draws, stands in the group `variational` as `log_ratio (path_draw)`.

    Raises
    ------
    StanError
        If Stan cannot compile or run the program, or no path has come anywhere.

    References
    ----------
    Zhang, Carpenter, Gelman and Vehtari 2022, Pathfinder, JMLR 23, algorithms 1 and 2.

    Examples
    --------
    >>> schools = ob.stan_program("schools.stan", "schools.json")
    >>> draws = ob.pathfinder(schools, settings=ob.PathfinderSettings(draws=200), seed=1)
    >>> draws["posterior"]["theta"].shape
    (1, 200, 8)
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
