"""Hamiltonian Monte Carlo with trajectories of a fixed integration time, on either engine."""

from __future__ import annotations

from pathlib import Path

import xarray as xr

from onebasin.base.settings import given_or_default
from onebasin.models.target import Target
from onebasin.posteriors.pointwise import LIMIT_MB

from ..contract import method
from .sample import sample
from .settings import HmcSettings


@method
def hmc(
    target: Target,
    *,
    engine: str | None = None,
    settings: HmcSettings | None = None,
    seed: int = 0,
    checkpoint: str | Path | None = None,
    predictive_mb: float = LIMIT_MB,
    check_symmetry: bool = True,
    progress: bool = False,
) -> xr.DataTree:
    """Sample a target's posterior with static HMC: trajectories of a fixed integration time.

    Parameters
    ----------
    settings : HmcSettings, optional
        Chains, iterations, adaptation, metric, length of a trajectory, precision; ``HmcSettings()`` by default.
    seed : int
        From 0 to 2^32 - 1. The same seed gives the same draws on the same engine; a chain depends on the seed and its
        number alone, whatever the number of chains.
    checkpoint : path, optional
        A folder in which chains are kept as they go, as of `nuts`.

    Returns
    -------
    DataTree
        As of `nuts`, but for `tree_depth`. CmdStan does not say which transitions of static HMC diverged, so that the
        Stan engine's has no `diverging` either.

    Raises
    ------
    InferenceError
        If no starting point of finite log density is found.
    StanError
        If Stan cannot compile or run the program.

    References
    ----------
    Neal 2011, MCMC using Hamiltonian dynamics, section 5.3.2.

    Examples
    --------
    >>> settings = ob.HmcSettings(chains=2, warmup=100, draws=50, trajectory_length=2.0)
    >>> run = ob.hmc(target, settings=settings, seed=1)
    >>> run["sample_stats"]["n_steps"].shape
    (2, 50)
    """
    return sample(
        target,
        "hmc",
        engine=engine,
        settings=given_or_default(settings, HmcSettings, taker="hmc"),
        seed=seed,
        checkpoint=checkpoint,
        predictive_mb=predictive_mb,
        check_symmetry=check_symmetry,
        progress=progress,
    )
