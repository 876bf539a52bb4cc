"""NUTS (Hoffman and Gelman 2014, with multinomial sampling) and static HMC on any engine: settings and functions."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Unpack

from onebasin.base.errors import ArgumentError
from onebasin.base.machine import available_cores
from onebasin.base.settings import Count, Positive, Probability, WholeNumber, settings

from ..contracts.method import CMDSTAN, Method, found_at
from ..runs.keywords import Running, run_by_keywords, takes_running

if TYPE_CHECKING:
    import xarray as xr

    from onebasin.models.target import Target

    from ..contracts.method import Found, Job


FIT = "onebasin.inference.fits.begin:sampled"
"""The function that runs chains from a fit."""
GIVEN = "onebasin.inference.mcmc.starts:start_of"
"""The function that makes a start from the values or posterior that users give."""


@settings
class Chains(Method):
    """Settings of NUTS and of static HMC; `nuts` describes the fields."""

    resumes: ClassVar[bool] = True
    takes_start: ClassVar[bool] = True
    takes_adaptation: ClassVar[bool] = True
    takes_client: ClassVar[bool] = True
    correlated: ClassVar[bool] = True
    later: ClassVar[tuple[str, ...]] = ("thin", "threads_per_chain", "adapt", "save_warmup")
    stan_by_jax: ClassVar[bool] = True
    engines: ClassVar = {
        "numpyro": "onebasin.inference.mcmc.numpyro:NumpyroChains",
        "stanli": "onebasin.inference.mcmc.stan:StanChains",
        "cmdstan": "onebasin.inference.mcmc.stan:StanChains",
    }
    for_calibration: ClassVar = {"chains": 2, "warmup": 500, "draws": 500}

    chains: Count = 4
    warmup: WholeNumber = 1000
    draws: Count = 1000
    target_acceptance: Probability = 0.8
    metric: Literal["diag", "dense", "unit"] = "diag"
    init_radius: Positive = 2.0
    init: Literal["random", "optimum", "pathfinder", "fit"] = "random"
    init_starts: Count = 10
    thin: Count = 1
    threads_per_chain: Count = 1
    adapt: bool = True
    save_warmup: bool = False
    dtype: Literal["float64", "float32"] = "float64"

    @property
    def keeps(self) -> bool:
        """Return whether chains are saved during the run."""
        return not self.save_warmup

    def run(self, job: Job[Any]) -> Found:
        """Run the chains."""
        from .chains import sample

        if self.threads_per_chain > 1 and job.engine != CMDSTAN.name:
            raise ArgumentError(
                f"`threads_per_chain` is {self.threads_per_chain}, but engine={job.engine!r} uses one thread per "
                "chain. Use threads_per_chain=1, or engine='cmdstan' with a program that calls `reduce_sum`."
            )
        if job.given is None and (job.start is not None or job.adapt_from is not None):
            job = replace(job, given=found_at(GIVEN)(job))
        at_once = max(1, available_cores() // self.threads_per_chain)
        run = partial(sample, thin=self.thin, at_once=at_once)
        if self.init == "fit":
            found: Found = found_at(FIT)(job, run)
            return found
        return run(job)


@settings
class Nuts(Chains):
    """Settings of the no-U-turn sampler; `nuts` describes the fields."""

    name: ClassVar[str] = "nuts"

    max_tree_depth: Count = 10


@takes_running
def nuts(
    target: Target,
    *,
    chains: int = 4,
    warmup: int = 1000,
    draws: int = 1000,
    target_acceptance: float = 0.8,
    metric: Literal["diag", "dense", "unit"] = "diag",
    init_radius: float = 2.0,
    init: Any = "random",
    init_starts: int = 10,
    thin: int = 1,
    threads_per_chain: int = 1,
    adapt: bool = True,
    save_warmup: bool = False,
    dtype: Literal["float64", "float32"] = "float64",
    max_tree_depth: int = 10,
    **running: Unpack[Running],
) -> xr.DataTree:
    """Sample a target's posterior with NUTS.

    The engine "nutpie" samples a NumPyro model or a Stan program with a metric adapted from gradients.

    Parameters
    ----------
    target : Target
        The model conditioned on data.
    chains : int
        Number of independent chains.
    warmup : int
        Number of adaptation iterations per chain.
    draws : int
        Number of draws kept per chain.
    target_acceptance : float
        Target for the mean acceptance probability, in (0, 1).
    metric : {"diag", "dense", "unit"}
        Shape of the inverse mass matrix.
    init_radius : float
        Starting points are uniform within +-init_radius in the unconstrained space.
    init : {"random", "optimum", "pathfinder", "fit"}
        Start of each chain: one of these names, a JSON file of values, or a posterior to draw from. "random" (or
        "uniform"): a random point. "optimum": the best optimum of the log density (in the unconstrained space, with the
        Jacobian) that L-BFGS finds from several random points. "pathfinder": a draw from Pathfinder on the path from a
        random point to an optimum. "fit": a draw from a weighted fit (`dadvi`), whose covariance is the metric, without
        warmup. One chain in four starts at a random point instead. If the fit's weights are bad, all chains start as
        with "random" and warm up in full. In Python it can also be values or a posterior: see `start` in `infer`.
        Optima keep chains out of modes with almost no probability, but if all chains share one, R-hat says little about
        other modes.
    init_starts : int
        Number of points from which each chain searches for an optimum.
    thin : int
        Number of iterations per stored draw. Statistics sum the steps of these iterations, and record their largest
        tree depth and any divergence.
    threads_per_chain : int
        Number of threads for `reduce_sum` in each chain of CmdStan. Draws then agree with those of a single thread up
        to rounding. The program is compiled for threads.
    adapt : bool
        Whether to adapt step size and metric in the warmup. Otherwise the warmup only brings a chain to the posterior.
    save_warmup : bool
        Whether to keep every draw of the warmup in the groups `warmup_posterior` and `warmup_sample_stats`. Such a run
        saves nothing before its end and cannot be resumed.
    dtype : {"float64", "float32"}
        Precision of the NumPyro engine and of its draws; Stan always uses float64.
    max_tree_depth : int
        A trajectory has at most 2^max_tree_depth - 1 leapfrog steps.
    engine, seed, start, adapt_from, checkpoint, client, predictive_mb, symmetry, check_symmetry, progress : Any
        Same as in `infer`.

    Returns
    -------
    DataTree
        The group `posterior` has every variable as (chain, draw, ...). `sample_stats` has `diverging`, `tree_depth`,
        `n_steps`, `acceptance_rate`, `step_size`, `energy` and `lp`, each (chain, draw); `energy` and `lp` are in
        nats. Other groups have the data, log likelihoods and predictions. Divergences are recorded, not raised.
        nutpie's `energy` is known only up to a constant per chain.

    Raises
    ------
    TypeError, ValueError, SymmetryError, InferenceError, InUse, WriteError, StanError
        Same as in `infer`.

    See Also
    --------
    hmc : Sample with trajectories of a fixed length.
    diagnose : Check whether the draws may be used.

    References
    ----------
    Hoffman and Gelman 2014, The no-U-turn sampler, JMLR 15. Betancourt 2017, arXiv:1701.02434, appendix A (multinomial
    sampling, which all engines use). nutpie: https://github.com/pymc-devs/nutpie.

    Examples
    --------
    >>> posterior = ob.nuts(target, chains=2, warmup=300, draws=300, seed=1)
    >>> posterior["posterior"]["mu"].shape
    (2, 300, 2)
    >>> int(posterior["sample_stats"]["diverging"].sum())
    0
    """
    return run_by_keywords(Nuts, locals())


@settings
class Hmc(Chains):
    """Settings of static HMC; `hmc` describes the fields."""

    name: ClassVar[str] = "hmc"
    engines: ClassVar = {name: place for name, place in Chains.engines.items() if name != "stanli"}
    numpyro_alone: ClassVar[frozenset[str]] = frozenset({"dtype", "max_steps"})

    trajectory_length: Positive = math.pi / 2
    max_steps: Count = 10_000


@takes_running
def hmc(
    target: Target,
    *,
    chains: int = 4,
    warmup: int = 1000,
    draws: int = 1000,
    target_acceptance: float = 0.8,
    metric: Literal["diag", "dense", "unit"] = "diag",
    init_radius: float = 2.0,
    init: Any = "random",
    init_starts: int = 10,
    thin: int = 1,
    threads_per_chain: int = 1,
    adapt: bool = True,
    save_warmup: bool = False,
    dtype: Literal["float64", "float32"] = "float64",
    trajectory_length: float = math.pi / 2,
    max_steps: int = 10_000,
    **running: Unpack[Running],
) -> xr.DataTree:
    """Sample a target's posterior with static HMC: trajectories of a fixed integration time.

    Parameters
    ----------
    target : Target
        The model conditioned on data.
    chains, warmup, draws, target_acceptance, metric, init_radius, init, init_starts, thin : Any
        Same as in `nuts`.
    threads_per_chain, adapt, save_warmup, dtype : Any
        Same as in `nuts`.
    trajectory_length : float
        Integration time of every trajectory; the number of steps is trajectory_length / step_size. The default is a
        quarter of a Gaussian's period in the adapted metric, after which the position is independent of the previous
        one. The default of NumPyro and CmdStan, 2 pi, is a whole period: for a Gaussian the trajectory returns to its
        start, and chains hardly move.
    max_steps : int
        Maximum number of leapfrog steps of a trajectory; longer trajectories end early (NumPyro). Without this bound,
        one unlucky step size in the warmup can take hours. Stan has no such bound.
    engine, seed, start, adapt_from, checkpoint, client, predictive_mb, symmetry, check_symmetry, progress : Any
        Same as in `infer`.

    Returns
    -------
    DataTree
        Same as in `nuts`, without `tree_depth`. CmdStan does not report which transitions of static HMC diverged, so
        results of the Stan engines also lack `diverging`.

    Raises
    ------
    TypeError, ValueError, SymmetryError, InferenceError, InUse, WriteError, StanError
        Same as in `infer`.

    References
    ----------
    Neal 2011, MCMC using Hamiltonian dynamics, section 5.3.2.

    Examples
    --------
    >>> run = ob.hmc(target, chains=2, warmup=100, draws=50, trajectory_length=2.0, seed=1)
    >>> run["sample_stats"]["n_steps"].shape
    (2, 50)
    """
    return run_by_keywords(Hmc, locals())
