"""Microcanonical Langevin Monte Carlo (Robnik et al. 2023), adjusted and unadjusted, on any target."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import xarray as xr

from onebasin.base.precision import precision
from onebasin.base.settings import given_or_default
from onebasin.models.target import Target
from onebasin.posteriors import schema
from onebasin.posteriors.pointwise import LIMIT_MB

from ..contract import method
from ..definition import engine_for
from ..mcmc.chains import ChainsRequest, RunChain
from ..mcmc.sample import sample
from ..runs.provenance import package_versions
from .settings import GRADIENTS, MclmcSettings


@method
def mclmc(
    target: Target,
    *,
    settings: MclmcSettings | None = None,
    seed: int = 0,
    checkpoint: str | Path | None = None,
    predictive_mb: float = LIMIT_MB,
    check_symmetry: bool = True,
    progress: bool = False,
) -> xr.DataTree:
    """Sample a target's posterior with microcanonical Langevin Monte Carlo, by JAX.

    The log density is that of a NumPyro model, or of a Stan program by its library in this process.

    The momentum has length one, whatever the density, and is forgotten little by little; a step costs two gradients and
    none is rejected, so that a chain goes far for its gradients. Its step size leaves a bias in the draws, which
    `MclmcSettings.energy_variance` governs and `MclmcSettings.adjusted` removes.

    Parameters
    ----------
    settings : MclmcSettings, optional
        Chains, iterations, tuning, precision; ``MclmcSettings()`` by default.
    seed : int
        From 0 to 2^32 - 1. The same seed gives the same draws; a chain depends on the seed and its number alone,
        whatever the number of chains.

    Returns
    -------
    DataTree
        Group `posterior` with every variable as (chain, draw, ...), `sample_stats` with `lp` (nats), `step_size`,
        `n_steps` (integration steps since the draw before), `length` (way after which the momentum is forgotten),
        `diverging` (a step among them was not finite, and not taken) and `energy_variance` (mean squared energy error
        of a step per parameter) or, adjusted, `acceptance_rate`; each (chain, draw). Attribute `stein_identities`,
        unadjusted: what gradients at the draws say of the bias, by which `diagnose` judges it.

    Raises
    ------
    InferenceError
        If no starting point of finite log density is found.
    ValueError
        If the target has a single parameter.
    TypeError
        If single precision is asked for with a Stan program.
    StanError
        If Stan cannot compile the program.

    See Also
    --------
    nuts : without bias, and slower on networks.
    diagnose : whether the draws may be used.

    References
    ----------
    Robnik, De Luca, Silverstein and Seljak 2023, Microcanonical Hamiltonian Monte Carlo, JMLR 24(311). Robnik,
    Cohn-Gordon and Seljak 2025, arXiv:2503.01707 (adjusted). Sommer et al. 2025, arXiv:2502.06335 (ensembles of
    networks).

    Examples
    --------
    >>> settings = ob.MclmcSettings(chains=2, warmup=2000, draws=200)
    >>> posterior = ob.mclmc(network, settings=settings, seed=1)
    >>> posterior["posterior"]["W1"].shape
    (2, 200, 1, 2)
    """
    settings = given_or_default(settings, MclmcSettings, taker="mclmc")
    posterior = sample(
        target,
        "mclmc",
        engine=None,
        settings=settings,
        seed=seed,
        checkpoint=checkpoint,
        predictive_mb=predictive_mb,
        check_symmetry=check_symmetry,
        progress=progress,
        prepare=_prepare,
        more=_versions(target),
        gradients=GRADIENTS,
    )
    if not settings.adjusted and (found := _identities(target, settings, posterior)) is not None:
        posterior.attrs[schema.STEIN_IDENTITIES] = schema.encode(found)
    return posterior


def _identities(
    target: Target, settings: MclmcSettings, posterior: xr.DataTree
) -> dict[str, Any] | None:
    """What the draws say of the bias of their steps."""
    from ..density.network import density_of
    from .step_bias import Identities

    with precision(settings.dtype):
        return Identities(density_of(target)).of(posterior)


def _versions(target: Target) -> dict[str, str]:
    """What moves the chains; with a Stan program JAX too, which a NumPyro model's fingerprint has in it."""
    by_stan = isinstance(target, Target) and engine_for(target, None) == "stan"
    return package_versions("blackjax", *(("jax", "jaxlib") if by_stan else ()))


def _prepare(request: ChainsRequest[MclmcSettings]) -> RunChain:
    from .runner import MclmcRunner  # loads blackjax

    return MclmcRunner(request)
