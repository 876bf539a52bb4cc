"""Outputs of a network whose weights are independent normals, drawn layer by layer at each input.

A layer's values are normal given the layer before, so they can be drawn themselves instead of the weights
that make them: far fewer random numbers, and gradients of far smaller variance (Kingma, Salimans and
Welling 2015, "Variational dropout and the local reparameterization trick", section 2.2).

Convention: every input sees weights of its own, so the joint distribution over inputs is not that of one
network; what is right is the distribution at each input, and whatever is a mean over inputs. Biases that are drawn
already are those of one network at all inputs of a sample.
"""

from __future__ import annotations

from collections.abc import Mapping

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .architecture import Network

Weights = Mapping[str, jax.Array]


def sample_outputs(
    rng_key: jax.Array,
    network: Network,
    mean: Weights,
    sd: Weights,
    x: Float[Array, "obs in"],
    num_samples: int,
    *,
    drawn: Weights | None = None,
    keep_noise: bool = False,
) -> Float[Array, "sample obs out"]:
    """Draw the network's outputs (sample, obs, out), without observation noise, at every input (obs, in).

    `mean` and `sd` are those of each weight and bias, with the shapes of `network.shapes`. Biases that are no normals
    are `drawn` (sample, out), and their `mean` and `sd` not used. With `keep_noise` a derivative keeps the normal
    numbers; otherwise the compiler makes them a second time, which takes less memory and nearly twice the time. The
    outputs are the same but for rounding.
    """
    f, drawn = network.nonlinearity.function, drawn or {}
    skips = network.skip_matrices()
    before = h = jnp.broadcast_to(x[None], (num_samples, *x.shape))
    keys = jax.random.split(rng_key, len(network.layers))
    for i, (layer, key) in enumerate(zip(network.layers, keys, strict=True)):
        if layer.weight is None:
            return jnp.sum(before, -1, keepdims=True)
        # All samples meet the same inputs: their moments are needed once.
        shared = before[:1] if i == 0 else before
        of_sample = drawn.get(layer.bias) if layer.bias else None
        normal_bias = layer.bias if of_sample is None else None
        centre = shared @ mean[layer.weight]
        variance = shared**2 @ sd[layer.weight] ** 2
        if normal_bias:
            centre = centre + mean[normal_bias][None, None, :]
            variance = variance + sd[normal_bias][None, None, :] ** 2
        # The gradient of a square root at 0 is infinite, and a layer without biases meets inputs that are 0.
        variance = jnp.maximum(variance, jnp.finfo(variance.dtype).tiny)
        eps = jax.random.normal(key, (num_samples, *centre.shape[1:]), centre.dtype)
        if keep_noise:
            eps = jax.lax.optimization_barrier(eps)
        after = centre + jnp.sqrt(variance) * eps
        if of_sample is not None:
            after = after + of_sample[:, None, :]
        if skips:
            after = after + h @ jnp.asarray(skips[i], x.dtype)
        h, before = after, f(after)
    return h
