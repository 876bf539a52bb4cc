"""Trained networks as they stand: one aligned to another, how far apart they are, and the loss between them.

Convention: weights and biases are arrays (network, ...) by variable. Alignment is that of Git Re-Basin (Ainsworth,
Hayase and Srinivasa 2023): whole units in their own scale, so that distances are Euclidean. Units of odd
activations may also change their signs, which no transposition counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import chain
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Float

from onebasin.base.errors import ArgumentError
from onebasin.models.networks.bayesian import BayesianNetwork
from onebasin.models.symmetry.blocks import Exchangeable, blocks_of

from .align import align
from .transpositions import Transpositions, transpositions_of

Values = Mapping[str, np.ndarray]
Loss = Callable[[dict[str, np.ndarray]], Any]

_AT_ONCE = 16
"""Networks whose losses are computed at a time."""


def align_networks(
    model: BayesianNetwork, reference: Values, others: Values
) -> tuple[dict[str, np.ndarray], Transpositions]:
    """Align networks (network, ...) to one, and count the transpositions that it took, by hidden layer (1, network)."""
    symmetry = blocks_of(model.symmetry, Exchangeable)
    found = align(
        as_draws(model, others),
        symmetry,
        reference=as_draws(model, reference),
        scales=dict.fromkeys(chain.from_iterable(block.variables for block in symmetry), 1.0),
        gauge="keep",
    )
    dataset = found.posterior["posterior"].to_dataset()
    moved = {name: dataset[name].values[0] for name in others}
    return moved, transpositions_of(found.element)


def as_draws(model: BayesianNetwork, networks: Values) -> xr.Dataset:
    """Lay networks out as the draws of one chain."""
    dims = model.network.dims
    return xr.Dataset({n: (("chain", "draw", *dims[n]), networks[n][None]) for n in dims})


def distances(reference: Values, others: Values) -> Float[np.ndarray, " network"]:
    """Measure how far networks are from one, over all their variables."""
    apart = [others[name] - reference[name] for name in others]
    return np.sqrt(sum(np.square(a).reshape(len(a), -1).sum(axis=1) for a in apart))


def network_loss(model: BayesianNetwork, x: np.ndarray, y: np.ndarray) -> Loss:
    """Make the loss whose barrier is measured: the mean negative log likelihood of data, in nats.

    Raises
    ------
    ValueError
        If the network infers its noise, without which its weights have no likelihood.
    """
    if model.infers_noise:
        raise ArgumentError(
            "`model` infers its noise; give one whose likelihood has a `noise_sd`, such as the residuals'."
        )
    return partial(_losses, model, x, y)


@partial(jax.jit, static_argnames="model")
def _losses(model: BayesianNetwork, x: jax.Array, y: jax.Array, weights: Any) -> jax.Array:
    def one(member: dict[str, jax.Array]) -> jax.Array:
        return -jnp.mean(model.likelihood.log_density(model.network.apply(member, x), y))

    return jax.lax.map(one, weights, batch_size=_AT_ONCE)
