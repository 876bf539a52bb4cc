"""The mode of a posterior by L-BFGS, and Laplace's approximation at it, on either engine.

Pathfinder (Zhang, Carpenter, Gelman and Vehtari 2022, JMLR 23), by CmdStan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from onebasin.base.checks import checks_names
from onebasin.base.settings import Count, Positive, settings

from ..contracts.method import Method
from ..runs.keywords import LIMIT_MB, run_by_keywords

if TYPE_CHECKING:
    from pathlib import Path

    import xarray as xr

    from onebasin.models.target import Target


@settings
class OptimumSearch(Method):
    """Settings of the search for an optimum; `laplace` describes the fields."""

    starts: Count = 4
    iterations: Count = 2000
    init_radius: Positive = 2.0
    dtype: Literal["float64", "float32"] = "float64"


@settings
class Optimize(OptimumSearch):
    """Find an optimum; `optimize` describes the fields."""

    name: ClassVar[str] = "optimize"
    gives_posterior: ClassVar[bool] = False
    engines: ClassVar = {
        "numpyro": "onebasin.inference.modes.numpyro:optimize",
        "stanli": "onebasin.inference.modes.stan:optimize",
        "cmdstan": "onebasin.inference.modes.stan:optimize",
    }

    jacobian: bool = False


@checks_names
def optimize(
    target: Target,
    *,
    starts: int = 4,
    iterations: int = 2000,
    init_radius: float = 2.0,
    dtype: Literal["float64", "float32"] = "float64",
    jacobian: bool = False,
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
    """Find the maximum of a target's log density: a point estimate, not a posterior.

    It uses SciPy's L-BFGS-B on the NumPyro model, or CmdStan's L-BFGS.

    Parameters
    ----------
    target : Target
        The model conditioned on data.
    starts, iterations, init_radius, dtype : Any
        Same as in `laplace`.
    jacobian : bool
        Add the log Jacobian of the constraints, to find the mode in the unconstrained space. Without it, as in
        CmdStan by default, the mode is that on the constrained scale.
    engine, seed, start, adapt_from, checkpoint, client, predictive_mb, symmetry, check_symmetry, progress : Any
        Same as in `infer`.

    Returns
    -------
    DataTree
        One chain with one draw, the optimum; in `sample_stats` its `lp` (1, 1), the log density that was maximised, in
        nats; attribute `converged`, 1 or 0, says whether the optimiser met its criterion. `diagnose` rejects it: one
        value has no spread.

    Raises
    ------
    TypeError, ValueError, SymmetryError, StanError
        Same as in `infer`.
    InferenceError
        If no optimum is found.

    References
    ----------
    Byrd, Lu, Nocedal and Zhu 1995, SIAM Journal on Scientific Computing 16(5) (L-BFGS-B).

    Examples
    --------
    >>> optimum = ob.optimize(target, seed=1)
    >>> optimum["posterior"]["mu"].shape, optimum.attrs["converged"]
    ((1, 1, 2), 1)
    """
    return run_by_keywords(Optimize, locals())


@settings
class Laplace(OptimumSearch):
    """Fit Laplace's approximation; `laplace` describes the fields."""

    name: ClassVar[str] = "laplace"
    engines: ClassVar = {
        "numpyro": "onebasin.inference.modes.numpyro:laplace",
        "stanli": "onebasin.inference.modes.stan:laplace",
        "cmdstan": "onebasin.inference.modes.stan:laplace",
    }
    later: ClassVar = ("weights",)
    for_calibration: ClassVar = {"weights": False}

    draws: Count = 1000
    weights: bool | None = None


@checks_names
def laplace(
    target: Target,
    *,
    starts: int = 4,
    iterations: int = 2000,
    init_radius: float = 2.0,
    dtype: Literal["float64", "float32"] = "float64",
    draws: int = 1000,
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
    """Fit a Gaussian at the mode in the unconstrained space, using the Hessian of the log density.

    JAX computes the Hessian, or CmdStan's `laplace`.

    Parameters
    ----------
    target : Target
        The model conditioned on data.
    starts : int
        Points from which to search for an optimum; the highest optimum is kept.
    iterations : int
        Maximum number of L-BFGS iterations from a starting point.
    init_radius : float
        Starting points are uniform within +-init_radius in the unconstrained space.
    dtype : {"float64", "float32"}
        Precision of the NumPyro engine; Stan always has float64.
    draws : int
        Draws taken from the fitted approximation.
    weights : bool or None
        Correct the approximation by importance weights, and resample the draws by them. By default if the weights are
        good enough; not for networks.
    engine, seed, start, adapt_from, checkpoint, client, predictive_mb, symmetry, check_symmetry, progress : Any
        Same as in `infer`.

    Returns
    -------
    DataTree
        One chain of draws, every variable in its own space as (1, draw, ...), with `lp` and `log_q` (1, draw) in nats,
        from which k-hat is computed; attribute `converged` says whether the optimiser reached the mode. The NumPyro
        engine adds the group `variational` with `loc (param)` and `scale_tril (param, param_bis)`, in the
        unconstrained space.

    Raises
    ------
    TypeError, ValueError, SymmetryError, StanError
        Same as in `infer`.
    InferenceError
        If no optimum is found, or the curvature there is not that of a maximum.

    References
    ----------
    Tierney and Kadane 1986, JASA 81(393). MacKay 1992, Neural Computation 4(3), for networks.

    Examples
    --------
    >>> fit = ob.laplace(target, draws=200, seed=1)
    >>> fit["variational"]["scale_tril"].shape
    (3, 3)
    """
    return run_by_keywords(Laplace, locals())


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
        Number of L-BFGS paths, each from its own starting point; with one, nothing is resampled.
    draws : int
        Draws kept, resampled from those of all paths by Pareto smoothed importance weights.
    path_draws : int
        Draws of each path, before they are resampled.
    iterations : int
        Maximum number of L-BFGS iterations per path.
    elbo_samples : int
        Monte Carlo draws per evaluation of the ELBO.
    history : int
        Number of steps from which the curvature is estimated.
    init_radius : float
        Starting points are uniform within +-init_radius in the unconstrained space.
    weights : bool or None
        Correct the approximation by importance weights, and resample the draws by them. By default if the weights are
        good enough; not for networks.
    engine, seed, start, adapt_from, checkpoint, client, predictive_mb, symmetry, check_symmetry, progress : Any
        Same as in `infer`.

    Returns
    -------
    DataTree
        One chain of draws, every variable as (1, draw, ...), with `lp` and `log_q` in nats and the number of its
        `path`, all (1, draw). Draws of several paths are resampled by importance; the group `variational` has `lp -
        log_q` of all paths' original draws, from which k-hat is computed, as `log_ratio (path_draw)`.

    Raises
    ------
    TypeError, ValueError, SymmetryError
        Same as in `infer`.
    StanError
        If Stan cannot compile or run the program, or no path made progress.

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
