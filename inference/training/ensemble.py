"""Deep ensembles (Lakshminarayanan et al. 2017) of maximum a posteriori networks, trained side by side.

Departures from the paper: the networks maximise the posterior density of the model as it is stated (its prior is the
weight decay), with neither adversarial training nor a predicted variance; `objective="likelihood"` drops the prior.

Members are handed back as the draws of a single chain. They are optima and no sample of the posterior: their spread is
that of the optima which training reaches, and R-hat or ESS say nothing about them.
"""

from __future__ import annotations

import math
import time
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro  # noqa: F401 - whole, before a part of it
import xarray as xr
from numpyro.handlers import seed as seeded
from numpyro.handlers import trace

from onebasin.base.checks import check_seed
from onebasin.base.precision import precision
from onebasin.base.progress import ProgressBars
from onebasin.base.seeds import Purpose, keys_for
from onebasin.base.settings import given_or_default
from onebasin.models.networks.bayesian import NetworkTarget
from onebasin.models.networks.likelihood import Gaussian
from onebasin.models.target import Target, check_target
from onebasin.posteriors.pointwise import LIMIT_MB, check_limit

from ..contract import method
from ..density.network import prior_model
from ..runs.checkpoint import keeper_in
from ..runs.fingerprint import fingerprint
from ..runs.origin import origin_of
from ..runs.posterior import build
from .batches import check_batches
from .settings import EnsembleSettings
from .train import Trained, train


@method
def ensemble(
    target: Target,
    *,
    settings: EnsembleSettings | None = None,
    seed: int = 0,
    checkpoint: str | Path | None = None,
    predictive_mb: float = LIMIT_MB,
    progress: bool = False,
) -> xr.DataTree:
    """Train a deep ensemble of a network on the NumPyro engine.

    Parameters
    ----------
    target : NetworkTarget
        Network and data: `BayesianNetwork.condition(x, y)`.
    settings : EnsembleSettings, optional
        Members, starts, epochs, batches, steps, objective, precision; ``EnsembleSettings()`` by default.
    seed : int
        Of the starts and the batches, from 0 to 2^32 - 1; a member depends on the seed and its number alone.

    Returns
    -------
    DataTree
        One chain whose draws are the members, `W1 (1, member, in, hidden1)` and so on, with their log posterior density
        in the unconstrained space as `lp` (nats), and the group `training` with `loss (member, epoch)`. Members are
        optima and no sample of the posterior: R-hat and ESS say nothing about them.

    Raises
    ------
    ValueError
        If the target is no network, the seed is out of range, or the batch is larger than the data.

    Notes
    -----
    Members maximise the posterior density of the model as it is stated: its prior is the weight decay. There is no
    adversarial training and no predicted variance, unlike in the paper.

    References
    ----------
    Lakshminarayanan, Pritzel and Blundell 2017, Simple and scalable predictive uncertainty estimation using deep
    ensembles, NeurIPS 30. He, Zhang, Ren and Sun 2015, arXiv:1502.01852, equation 10 (``init="he"``).

    Examples
    --------
    >>> members = ob.ensemble(network, settings=ob.EnsembleSettings(members=4, epochs=200), seed=1)
    >>> members["posterior"]["W1"].shape, members["training"]["loss"].shape
    ((1, 4, 1, 2), (4, 200))
    """
    check_target(target)
    if not isinstance(target, NetworkTarget):
        raise ValueError(
            f"`target` is {target.name!r}, which is no network; an ensemble trains networks, so give "
            "BayesianNetwork(...).condition(x, y)."
        )
    settings = given_or_default(settings, EnsembleSettings, taker="ensemble")
    seed, limit = check_seed(seed), check_limit(predictive_mb)
    check_batches(target, settings.batch_size)
    started = time.perf_counter()
    mark = partial(
        fingerprint, target, engine="numpyro", method="ensemble", settings=settings, seed=seed
    )
    with ProgressBars(progress) as bars:
        bar = bars.add(f"ensemble of {settings.members}", settings.epochs)
        trained = train(
            target,
            first_values(target, settings, seed),
            settings,
            seed,
            keeper=keeper_in(checkpoint, mark),
            watch=lambda epochs: bars.move(bar, epochs),
        )
    return _tree(target, trained, settings, seed, time.perf_counter() - started, limit)


def first_values(
    target: NetworkTarget, settings: EnsembleSettings, seed: int
) -> dict[str, np.ndarray]:
    """Where training starts: natural values (member, ...)."""
    with precision(settings.dtype):
        keys = keys_for(Purpose.MEMBER_START, seed, settings.members)
        draw = he_values if settings.init == "he" else _prior
        values = jax.jit(jax.vmap(lambda key: draw(target, key)))(keys)  # one kernel, not a dozen
        return {name: np.asarray(value) for name, value in values.items()}


def _prior(target: NetworkTarget, key: jax.Array) -> dict[str, jax.Array]:
    sites = trace(seeded(prior_model(target), key)).get_trace()
    return {name: site["value"] for name, site in sites.items()}


def he_values(target: NetworkTarget, key: jax.Array) -> dict[str, jax.Array]:
    """Values of one network: He et al. 2015 where a weight is free; `EnsembleSettings.init` says the rest."""
    key_prior, key_weights = jax.random.split(key)
    values = _prior(target, key_prior)
    model = target.model
    for number, layer in enumerate(model.network.layers):
        if layer.weight and not (layer.hidden and model.parametrisation.unit_norm):
            shape, dtype = values[layer.weight].shape, values[layer.weight].dtype
            noise = jax.random.normal(jax.random.fold_in(key_weights, number), shape, dtype)
            values[layer.weight] = noise * math.sqrt(2 / layer.in_dim)
        if layer.bias and not (layer.hidden and model.parametrisation.biases == "ordered"):
            values[layer.bias] = jnp.zeros_like(values[layer.bias])
    if isinstance(model.likelihood, Gaussian) and model.infers_noise:
        values["sigma"] = jnp.full_like(values["sigma"], model.likelihood.noise_scale)
    return values


def _tree(
    target: NetworkTarget,
    trained: Trained,
    settings: EnsembleSettings,
    seed: int,
    seconds: float,
    predictive_mb: float,
) -> xr.DataTree:
    how: dict[str, Any] = {
        "engine": "numpyro",
        "method": "ensemble",
        "settings": asdict(settings),
        "seed": seed,
        "wall_time": seconds,
        "gradient_evaluations": settings.members * trained.steps,
    }
    draws = {name: value[None] for name, value in trained.values.items()}
    stats = {"lp": trained.log_density[None]}
    origin = origin_of(target, "numpyro")
    tree = build(target, draws, stats, how, origin=origin, predictive_mb=predictive_mb)
    tree["training"] = xr.DataTree(xr.Dataset({"loss": (("member", "epoch"), trained.losses)}))
    return tree
