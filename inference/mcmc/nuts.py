"""The no-U-turn sampler (Hoffman and Gelman 2014, with multinomial sampling) on any engine."""

from __future__ import annotations

from pathlib import Path

import xarray as xr

from onebasin.base.settings import given_or_default
from onebasin.models.target import Target
from onebasin.posteriors.pointwise import LIMIT_MB

from ..contract import method
from ..definition import NUTPIE
from ..runs.provenance import package_versions
from .sample import sample
from .settings import NutsSettings


@method
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
    engine : {"numpyro", "stan", "nutpie"}, optional
        NumPyro, CmdStan, or the package nutpie, which samples a NumPyro model or a Stan program with a metric that it
        adapts by gradients; by default the engine that the target has a definition for, NumPyro where it has both.
    settings : NutsSettings, optional
        Chains, iterations, adaptation, metric, precision; ``NutsSettings()`` by default.
    seed : int
        From 0 to 2^32 - 1. The same seed gives the same draws on the same engine; a chain depends on the seed and its
        number alone, whatever the number of chains.
    checkpoint : path, optional
        A folder in which chains are kept as they go. The same call made again goes on from there: so a run that was
        killed is finished, in NumPyro with the draws of an undisturbed one, in Stan with those that were drawn and a
        new random stream for the rest; nutpie keeps whole chains alone. More `chains` and `draws` go on from those that
        are there. Anything of another model, data, settings or seed is left alone. Draws of more than 32 MB are then
        not in memory either: the posterior has them on disk, beside the folder, until it is closed or nobody has it any
        more; its method `load` takes them into memory.

    Returns
    -------
    DataTree
        Group `posterior` with every variable as (chain, draw, ...), `sample_stats` with `diverging`, `tree_depth`,
        `n_steps`, `acceptance_rate`, `step_size`, `energy` and `lp`, each (chain, draw), `energy` and `lp` in nats; and
        the data, log likelihoods and predictions beside them. Divergences are recorded, not raised. nutpie's `energy`
        is up to a constant of each chain.

    Raises
    ------
    InferenceError
        If no starting point of finite log density is found, nothing can be kept in the folder, or nutpie is asked for
        and not installed.
    InUse
        If another run keeps its chains in the folder.
    WriteError
        If a disk is full; the same call goes on from what is kept.
    StanError
        If Stan cannot compile or run the program.

    See Also
    --------
    hmc : trajectories of a fixed length.
    diagnose : whether the draws may be used.

    References
    ----------
    Hoffman and Gelman 2014, The no-U-turn sampler, JMLR 15. Betancourt 2017, arXiv:1701.02434, appendix A (multinomial
    sampling, which all engines have). nutpie: https://github.com/pymc-devs/nutpie.

    Examples
    --------
    >>> settings = ob.NutsSettings(chains=2, warmup=300, draws=300)
    >>> posterior = ob.nuts(target, settings=settings, seed=1)
    >>> posterior["posterior"]["mu"].shape
    (2, 300, 2)
    >>> int(posterior["sample_stats"]["diverging"].sum())
    0
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
        more=package_versions(NUTPIE) if engine == NUTPIE else {},
    )
