"""Settings that NUTS and static HMC have in common: chains, adaptation, starts."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from onebasin.base.cores import available_cores
from onebasin.base.errors import ArgumentError
from onebasin.base.settings import Count, Positive, Probability, WholeNumber, settings

from ..contracts.engines import CMDSTAN, found_at
from ..contracts.method import Method

if TYPE_CHECKING:
    from ..contracts.method import Found, Job

FIT = "onebasin.inference.fits.begin:sampled"  # The function that runs chains from a fit.
GIVEN = "onebasin.inference.mcmc.starts:start_of"
"""The function that makes a start of what users give."""


@settings
class Chains(Method):
    """Settings of NUTS and of static HMC.

    Parameters
    ----------
    chains : int
        Independent chains.
    warmup : int
        Iterations of adaptation of each chain.
    draws : int
        Draws kept of each chain.
    target_acceptance : float
        Target of the mean acceptance probability, in (0, 1).
    metric : {"diag", "dense", "unit"}
        Shape of the inverse mass matrix.
    init_radius : float
        Starting points are uniform within +-init_radius in the unconstrained space.
    init : {"random", "optimum", "pathfinder", "fit"}
        Start of each chain: a word, a JSON file of values, or a posterior to draw from. A random point, also called
        "uniform"; the best optimum of the log density (in the unconstrained space, with the Jacobian) that L-BFGS finds
        from several of them; or a draw of Pathfinder along the way from a random point to an optimum. Functions take
        values and posteriors themselves, too: `infer` describes them, as its `start`. Optima keep chains out of modes
        that hold next to no probability; but chains that all start at the same optimum tell R-hat little about other
        modes. "fit": at draws of a weighted fit (`dadvi`), with its covariance as the metric and without warmup, one
        chain in four at a random point; if the fit's weights are bad, as "random", with all of the warmup.
    init_starts : int
        Points from which each chain searches for an optimum.
    thin : int
        Iterations for each draw that is kept. Of the iterations between, statistics count the steps, the worst tree
        depth and divergences.
    threads_per_chain : int
        Threads of `reduce_sum` for each chain of CmdStan. Draws then agree up to rounding, and the program is compiled
        for it.
    adapt : bool
        Adapt step size and metric in the warmup. Without it, its iterations only bring a chain to where the
        posterior is.
    save_warmup : bool
        Whether the draws of the warmup are kept too, every iteration of it, in the groups `warmup_posterior` and
        `warmup_sample_stats`. Such a run keeps nothing before it ends, and cannot be resumed.
    dtype : {"float64", "float32"}
        Precision of the NumPyro engine, and of its draws; Stan always has float64.
    """

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
        """Tell whether chains are kept as they go."""
        return not self.save_warmup

    def run(self, job: Job[Any]) -> Found:
        """Run the chains."""
        from .chains import sample

        if self.threads_per_chain > 1 and job.engine != CMDSTAN.name:
            raise ArgumentError(
                f"`threads_per_chain` is {self.threads_per_chain}, but engine={job.engine!r} computes a chain in one "
                "thread; use engine='cmdstan' with a program that has `reduce_sum`, or leave it out."
            )
        if job.given is None and (job.start is not None or job.adapt_from is not None):
            job = replace(job, given=found_at(GIVEN)(job))
        at_once = max(1, available_cores() // self.threads_per_chain)
        run = partial(sample, thin=self.thin, at_once=at_once)
        if self.init == "fit":
            found: Found = found_at(FIT)(job, run)
            return found
        return run(job)
