"""Hamiltonian Monte Carlo with trajectories of a fixed integration time, on either engine."""

from __future__ import annotations

from pathlib import Path

import xarray as xr

from onebasin.models.pointwise import LIMIT_MB
from onebasin.models.settings import given_or_default
from onebasin.models.target import Target

from .sample import sample
from .settings import HmcSettings


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
    """Sample a target's posterior with static HMC.

    Parameters, results and errors are those of `inference.nuts`, with `HmcSettings`. CmdStan does not say which
    transitions of static HMC diverged, so the Stan engine's result has no `diverging`.

    Parameters
    ----------
    target : Target
        What to sample.
    engine : {"numpyro", "stan"}, optional
        Who does it; by default the one that the target
        has a definition for, NumPyro where it has both.
    settings : HmcSettings, optional
        Chains, iterations, adaptation, metric, trajectory length, precision.
    seed : int
        The same seed gives the same draws on the same engine.
    checkpoint : path, optional
        A folder for finished chains.
    predictive_mb : float
        Megabytes that the groups `log_likelihood`, `posterior_predictive` and `log_prior` may take together; beyond
        them every second, third, ... draw is kept there, and 0 leaves the groups out. What a Stan program computes
        itself is kept whole.
    check_symmetry : bool
        Whether a declared symmetry is held against the log density before the run and at its draws afterwards, as by
        `onebasin.check_symmetry`; a network's, which its architecture has, is not. It changes no draw; False leaves it
        out.
    progress : bool
        Whether to show a bar a chain on stderr.

    Returns
    -------
    DataTree
        See docs/developing/architecture.md.

    Raises
    ------
    SymmetryError
        If the log density does not have the declared symmetry. What draws alone contradict is recorded in the attribute
        `symmetry_evidence` and said in a notice.
    TypeError, ValueError, InferenceError, StanError
        As `nuts`.
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
