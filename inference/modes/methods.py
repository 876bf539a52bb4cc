"""The mode of a posterior by L-BFGS, Laplace's approximation there, Pathfinder, and sampling mode by mode.

Pathfinder (Zhang, Carpenter, Gelman and Vehtari 2022, JMLR 23) is Stan's. Sampling mode by mode runs chains in every
mode that a search finds, and weights them by bridge sampling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, Unpack

from onebasin.base.settings import Count, Positive, Probability, Several, settings

from ..contracts.method import Method
from ..mcmc.nuts import Nuts
from ..runs.keywords import Running, run_by_keywords, takes_running

if TYPE_CHECKING:
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
    """Settings of `optimize`, which describes the fields."""

    name: ClassVar[str] = "optimize"
    gives_posterior: ClassVar[bool] = False
    engines: ClassVar = {
        "numpyro": "onebasin.inference.modes.numpyro:optimize",
        "stanli": "onebasin.inference.modes.stan:optimize",
        "cmdstan": "onebasin.inference.modes.stan:optimize",
    }

    jacobian: bool = False


@takes_running
def optimize(
    target: Target,
    *,
    starts: int = 4,
    iterations: int = 2000,
    init_radius: float = 2.0,
    dtype: Literal["float64", "float32"] = "float64",
    jacobian: bool = False,
    **running: Unpack[Running],
) -> xr.DataTree:
    """Find the maximum of a target's log density: a point estimate, not a posterior.

    The optimiser is SciPy's L-BFGS-B for a NumPyro model, or CmdStan's L-BFGS.

    Parameters
    ----------
    target : Target
        The model conditioned on data.
    starts, iterations, init_radius, dtype : Any
        Same as in `laplace`.
    jacobian : bool
        Whether to add the log Jacobian of the constraints, to find the mode in the unconstrained space. Without it, as
        in CmdStan by default, the result is the mode on the constrained scale.
    engine, seed, start, adapt_from, checkpoint, client, predictive_mb, symmetry, check_symmetry, progress : Any
        Same as in `infer`.

    Returns
    -------
    DataTree
        One chain with one draw, the optimum. `lp` (1, 1) in `sample_stats` is the log density that was maximised, in
        nats. The attribute `converged` is 1 if the optimiser met its criterion, else 0. `diagnose` rejects the result,
        because one value has no spread.

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
    """Settings of `laplace`, which describes the fields."""

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


@takes_running
def laplace(
    target: Target,
    *,
    starts: int = 4,
    iterations: int = 2000,
    init_radius: float = 2.0,
    dtype: Literal["float64", "float32"] = "float64",
    draws: int = 1000,
    weights: bool | None = None,
    **running: Unpack[Running],
) -> xr.DataTree:
    """Fit a Gaussian at the mode in the unconstrained space, using the Hessian of the log density.

    JAX or CmdStan's `laplace` computes the Hessian.

    Parameters
    ----------
    target : Target
        The model conditioned on data.
    starts : int
        Number of points from which to search for an optimum; the highest optimum is used.
    iterations : int
        Maximum number of L-BFGS iterations per starting point.
    init_radius : float
        Starting points are uniform within +-init_radius in the unconstrained space.
    dtype : {"float64", "float32"}
        Precision of the NumPyro engine; Stan always uses float64.
    draws : int
        Number of draws from the fitted approximation.
    weights : bool or None
        Whether to correct the approximation with importance weights and resample the draws. By default it is corrected
        if the weights are good enough, but never for networks.
    engine, seed, start, adapt_from, checkpoint, client, predictive_mb, symmetry, check_symmetry, progress : Any
        Same as in `infer`.

    Returns
    -------
    DataTree
        One chain of draws, with every variable on its constrained scale as (1, draw, ...), and `lp` and `log_q` (1,
        draw) in nats, from which k-hat is computed. The attribute `converged` is true if the optimiser reached the
        mode. The NumPyro engine adds the group `variational` with `loc (param)` and `scale_tril (param, param_bis)`,
        in the unconstrained space.

    Raises
    ------
    TypeError, ValueError, SymmetryError, StanError
        Same as in `infer`.
    InferenceError
        If no optimum is found, or if the optimum is not a maximum according to its curvature.

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
    """Settings of Pathfinder (Zhang et al. 2022), with Stan's defaults; `pathfinder` describes the fields."""

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


@takes_running
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
    **running: Unpack[Running],
) -> xr.DataTree:
    """Fit Gaussians along the optimisation paths, and draw from the best of each.

    This runs Stan's Pathfinder, so the target must have a Stan program or be a network.

    Parameters
    ----------
    target : Target
        The model conditioned on data.
    paths : int
        Number of L-BFGS paths, each from its own starting point. Draws of a single path are not resampled.
    draws : int
        Number of draws in the result, resampled from the draws of all paths by Pareto-smoothed importance weights.
    path_draws : int
        Number of draws per path before resampling.
    iterations : int
        Maximum number of L-BFGS iterations per path.
    elbo_samples : int
        Number of Monte Carlo draws per evaluation of the ELBO.
    history : int
        Number of recent steps from which the curvature is estimated.
    init_radius : float
        Starting points are uniform within +-init_radius in the unconstrained space.
    weights : bool or None
        Whether to correct the approximation with importance weights and resample the draws. By default it is corrected
        if the weights are good enough, but never for networks.
    engine, seed, start, adapt_from, checkpoint, client, predictive_mb, symmetry, check_symmetry, progress : Any
        Same as in `infer`.

    Returns
    -------
    DataTree
        One chain of draws, with every variable as (1, draw, ...). `lp` and `log_q` in nats and the number of the
        `path` are (1, draw). Draws of several paths are resampled by importance weights. The group `variational` has
        `log_ratio (path_draw)`: `lp - log_q` of all paths' original draws, from which k-hat is computed.

    Raises
    ------
    TypeError, ValueError, SymmetryError
        Same as in `infer`.
    StanError
        If Stan cannot compile or run the program, or if no path makes progress.

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


_WHERE = "onebasin.inference.modes.by_mode:sampled"


@settings
class Modes(Method):
    """Settings of `sample_modes`, which describes the fields."""

    name: ClassVar[str] = "modes"
    by_jax: ClassVar[bool] = True
    correlated: ClassVar[bool] = True
    engines: ClassVar = dict.fromkeys(("numpyro", "stanli", "cmdstan"), _WHERE)

    starts: Count = 40
    most: Count = 8
    chains: Several = 4
    warmup: Count = 1000
    draws: Count = 1000
    target_acceptance: Probability = 0.8
    metric: Literal["diag", "dense", "unit"] = "diag"
    max_tree_depth: Count = 10
    init_radius: Positive = 2.0

    def nuts(self, chains: int, *, warmup: int, draws: int) -> Nuts:
        """Return the settings of this number of chains."""
        return Nuts(
            chains=chains,
            warmup=warmup,
            draws=draws,
            target_acceptance=self.target_acceptance,
            metric=self.metric,
            max_tree_depth=self.max_tree_depth,
        )


@takes_running
def sample_modes(
    target: Target,
    *,
    starts: int = 40,
    most: int = 8,
    chains: int = 4,
    warmup: int = 1000,
    draws: int = 1000,
    target_acceptance: float = 0.8,
    metric: Literal["diag", "dense", "unit"] = "diag",
    max_tree_depth: int = 10,
    init_radius: float = 2.0,
    **running: Unpack[Running],
) -> xr.DataTree:
    """Sample a posterior mode by mode: run chains in every mode found, and weight the modes by bridge sampling.

    Use this for posteriors whose chains settle in different modes and never cross between them. L-BFGS searches for
    optima from many random points. A short chain from each optimum that is distinct modulo the declared symmetry shows
    which optima share a basin. NUTS samples every basin. Bridge sampling estimates the integral of the density over
    each basin and all its copies under the symmetry, with a standard error. Draws are then taken from the basins in
    these proportions. JAX evaluates a NumPyro model, or a Stan program through its library in this process.

    Parameters
    ----------
    target : Target
        The model conditioned on data.
    starts : int
        Number of random points from which to search for optima.
    most : int
        Maximum number of modes to sample. Those with the highest log evidence, estimated by short chains, are sampled;
        the result reports how much lower the others are.
    chains : int
        Number of chains in each mode, and in the resulting posterior.
    warmup : int
        Number of adaptation iterations per chain.
    draws : int
        Number of draws kept per chain.
    target_acceptance : float
        Target for the mean acceptance probability, in (0, 1).
    metric : {"diag", "dense", "unit"}
        Shape of the inverse mass matrix.
    max_tree_depth : int
        A trajectory has at most 2^max_tree_depth - 1 leapfrog steps.
    init_radius : float
        Starting points are uniform within +-init_radius in the unconstrained space.
    engine, seed, start, adapt_from, checkpoint, client, predictive_mb, symmetry, check_symmetry, progress : Any
        Same as in `infer`.

    Returns
    -------
    DataTree
        Same as in `nuts`, with the statistic `mode (chain, draw)`, and the group `modes` with one row per mode, the
        largest weight first: `weight` with the 95 % interval `weight_low` to `weight_high`, `log_weight`,
        `log_evidence` and `log_evidence_error` (nats), the number of `starts` that led there, `height` (the highest
        log density), `rhat` within the mode modulo the symmetry, `strays` (the share of its chains' draws that lie in
        other modes) and `divergences`. Its attributes are `known` (whether the weights are known) and `unseen` (the
        probability that another start finds a new mode). `diagnose` judges whether the result may be used.

    Raises
    ------
    TypeError, SymmetryError
        Same as in `infer`.
    InferenceError
        If no starting point with a finite log density or no optimum is found.
    ValueError
        If the symmetry exchanges no coordinates of the unconstrained space.
    StanError
        If Stan cannot compile the program.

    See Also
    --------
    find_modes : Find only the optima, in a fraction of the time.
    nuts : Run chains from random points, where the starts determine how often a mode is seen.

    References
    ----------
    Meng and Wong 1996, Statistica Sinica 6 (bridge sampling). Meng and Schilling 2002, JCGS 11(3) (warp III).
    Frühwirth-Schnatter 2004, Econometrics Journal 7(1) (error; permuted labels). Gronau et al. 2017, Journal of
    Mathematical Psychology 81. Good 1953, Biometrika 40 (unseen modes).

    Examples
    --------
    >>> posterior = ob.sample_modes(target, starts=10, warmup=300, draws=300, seed=1)
    >>> posterior["modes"]["weight"].shape, posterior["posterior"]["mu"].shape
    ((1,), (4, 300, 2))
    """
    return run_by_keywords(Modes, locals())
