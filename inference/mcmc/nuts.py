"""The no-U-turn sampler (Hoffman and Gelman 2014, with multinomial sampling) on either engine."""

from __future__ import annotations

from pathlib import Path

import xarray as xr

from onebasin.models.pointwise import LIMIT_MB
from onebasin.models.settings import given_or_default
from onebasin.models.target import Target

from .sample import sample
from .settings import NutsSettings


def nuts(
    target: Target,
    *,
    engine: str | None = None,
    settings: NutsSettings | None = None,
    seed: int = 0,
    checkpoint: str | Path | None = None,
    predictive_mb: float = LIMIT_MB,
    check_symmetry: bool = True,
    progress: bool = False,
) -> xr.DataTree:
    """Sample a target's posterior with NUTS.

    Parameters
    ----------
    target : Target
        What to sample.
    engine : {"numpyro", "stan"}, optional
        Who does it; the result has the same form; by default the one that the target
        has a definition for, NumPyro where it has both.
    settings : NutsSettings, optional
        Chains, iterations, adaptation, metric, precision.
    seed : int
        The same seed gives the same draws on the same engine, whatever the number of chains.
    checkpoint : path, optional
        A folder for finished chains. When the same call is made again, chains found there are not run anew; so a
        run that was interrupted can be finished. The same call is one of the same fingerprint, for which see
        docs/developing/architecture.md.
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
        See docs/developing/architecture.md. Divergences are recorded, not raised.

    Raises
    ------
    TypeError
        If `settings` are of another class.
    ValueError
        If the engine is unknown, the seed out of range, or the target has no definition for the engine.
    SymmetryError
        If the log density does not have the declared symmetry. What draws alone contradict is recorded in the attribute
        `symmetry_evidence` and said in a notice.
    InferenceError, StanError
        If no starting point is found, or Stan cannot compile or run the program.
    """
    return sample(
        target,
        "nuts",
        engine=engine,
        settings=given_or_default(settings, NutsSettings, taker="nuts"),
        seed=seed,
        checkpoint=checkpoint,
        predictive_mb=predictive_mb,
        check_symmetry=check_symmetry,
        progress=progress,
    )
