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

FIT = "onebasin.inference.fits.begin:sampled"
"""The function that runs chains from a fit."""
GIVEN = "onebasin.inference.mcmc.starts:start_of"
"""The function that makes a start of what users give."""


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
