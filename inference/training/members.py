"""The members of an ensemble: their starts and their training."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro  # noqa: F401 - whole, before a part of it
import xarray as xr
from numpyro.handlers import seed as seeded
from numpyro.handlers import trace

from onebasin.base.precision import precision
from onebasin.base.seeds import Purpose, keys_for
from onebasin.models.networks.bayesian import NetworkTarget
from onebasin.models.networks.likelihood import Gaussian

from ..contracts.method import Found, Job
from ..density.network import prior_model
from ..runs.checkpoint import keeper_in
from ..runs.fingerprint import fingerprint
from .ensemble import Ensemble
from .train import train


def trained(job: Job[Ensemble]) -> Found:
    """Train the members from their starts."""
    target, s = job.target, job.method
    assert isinstance(target, NetworkTarget), "checked before"
    bar = job.bars.add(f"ensemble of {s.members}", s.epochs)
    how: dict[str, Any] = {"engine": job.engine, "method": s.label, "settings": s, "seed": job.seed}
    found = train(
        target,
        first_values(target, s, job.seed),
        s,
        job.seed,
        keeper=keeper_in(job.checkpoint, partial(fingerprint, target, **how)),
        watch=lambda epochs: job.bars.move(bar, epochs),
    )
    return Found(
        {name: value[None] for name, value in found.values.items()},
        {"lp": found.log_density[None]},
        {"gradient_evaluations": s.members * found.steps},
        {"training": xr.Dataset({"loss": (("member", "epoch"), found.losses)})},
    )


def first_values(target: NetworkTarget, settings: Ensemble, seed: int) -> dict[str, np.ndarray]:
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
    """Values of one network: He et al. 2015 where a weight is free; `Ensemble.init` says the rest."""
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
