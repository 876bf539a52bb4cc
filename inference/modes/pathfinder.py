"""Pathfinder (Zhang, Carpenter, Gelman and Vehtari 2022, JMLR 23), by CmdStan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from onebasin.base.checks import checks_names
from onebasin.base.settings import Count, Positive, settings

from ..contracts.method import Method
from ..runs.keywords import LIMIT_MB, run_by_keywords

if TYPE_CHECKING:
    from pathlib import Path

    import xarray as xr

    from onebasin.models.target import Target


@settings
class Pathfinder(Method):
    """Run Pathfinder (Zhang et al. 2022), with Stan's defaults; `pathfinder` describes the fields."""

    name: ClassVar[str] = "pathfinder"
    engines: ClassVar = {
        "stanli": "onebasin.inference.modes.stan:pathfinder",
        "cmdstan": "onebasin.inference.modes.stan:pathfinder",
    }
    takes_client: ClassVar[bool] = True
    later: ClassVar = ("weights",)
    for_calibration: ClassVar = {"weights": False}

    paths: Count = 4
    draws: Count = 1000
    path_draws: Count = 1000
    iterations: Count = 1000
    elbo_samples: Count = 25
    history: Count = 5
    init_radius: Positive = 2.0
    weights: bool | None = None


@checks_names
def pathfinder(
    target: Target,
    *,
    paths: int = 4,
    draws: int = 1000,
    path_draws: int = 1000,
    iterations: int = 1000,
    elbo_samples: int = 25,
    history: int = 5,
    init_radius: float = 2.0,
    weights: bool | None = None,
    engine: str | None = None,
    seed: int = 0,
    start: Any = None,
    adapt_from: Any = None,
    checkpoint: str | Path | None = None,
    client: Any = None,
    predictive_mb: float = LIMIT_MB,
    symmetry: bool = True,
    check_symmetry: bool = True,
    progress: bool | None = None,
) -> xr.DataTree:
    """Fit Gaussians along the optimisation paths, and draw from the best of each.

    By CmdStan's `pathfinder`: the target needs a Stan program of its own, or is a network.

    Parameters
    ----------
    target : Target
        The model conditioned on data.
    paths : int
        Paths of L-BFGS, each from a starting point of its own; with one, nothing is resampled.
    draws : int
        Draws kept, resampled from those of all paths by Pareto smoothed importance weights.
    path_draws : int
        Draws of each path, before they are resampled.
    iterations : int
        Maximum number of L-BFGS iterations per path.
    elbo_samples : int
        Monte Carlo draws of an evaluation of the ELBO.
    history : int
        Steps by which the curvature is estimated.
    init_radius : float
        Starting points are uniform within +-init_radius in the unconstrained space.
    weights : bool or None
        Correct the approximation by importance weights, and resample the draws by them. By default if weights are worth
        anything; not of networks.
    engine, seed, start, adapt_from, checkpoint, client, predictive_mb, symmetry, check_symmetry, progress : Any
        As in `infer`.

    Returns
    -------
    DataTree
        One chain of draws, every variable as (1, draw, ...), with `lp` and `log_q` in nats and the number of the `path`
        that each is of, all (1, draw). Draws of several paths are resampled by importance; what k-hat is made of,
        `lp - log_q` of all paths' own draws, stands in the group `variational` as `log_ratio (path_draw)`.

    Raises
    ------
    TypeError, ValueError, SymmetryError
        As `infer`.
    StanError
        If Stan cannot compile or run the program, or no path has come anywhere.

    References
    ----------
    Zhang, Carpenter, Gelman and Vehtari 2022, Pathfinder, JMLR 23, algorithms 1 and 2.

    Examples
    --------
    >>> schools = ob.stan_program("schools.stan", "schools.json")
    >>> draws = ob.pathfinder(schools, draws=200, seed=1)
    >>> draws["posterior"]["theta"].shape
    (1, 200, 8)
    """
    return run_by_keywords(Pathfinder, locals())
