"""A network's outputs over posterior draws."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Float

from ..checks import check_count, check_inputs
from .architecture import Network
from .bayesian import BayesianNetwork


def predict(
    model: BayesianNetwork, draws: Mapping[str, Any], x: Any, *, batch_size: int = 256
) -> Float[np.ndarray, "chain draw obs out"]:
    """Run the network over all draws.

    Parameters
    ----------
    model : BayesianNetwork
        The model that the draws are of.
    draws : DataTree, Dataset, or mapping of str to array
        A posterior, its group `posterior`, or its arrays: ``W1 (chain, draw, in, hidden1)``,
        ``b1 (chain, draw, hidden1)``, ...
    x : array (obs, in)
        Inputs, in the units that the model was conditioned on.
    batch_size : int
        Draws that are run at a time; bounds the memory.

    Returns
    -------
    array (chain, draw, obs, out)
        Outputs: means for regression, in the units of `y`; logits for classification. Without observation noise.

    Raises
    ------
    ValueError
        If `x` does not fit the network or is not finite, `draws` lack a parameter or have other
        shapes, or `batch_size` is not a positive whole number.

    Examples
    --------
    >>> ob.predict(network.model, weights, np.zeros((5, 1))).shape
    (4, 300, 5, 1)
    """
    check_count("batch_size", batch_size)
    x = check_inputs(x, model.network.in_dim)
    arrays = _check_draws(draws, model.network)
    leading = next(iter(arrays.values())).shape[:2]
    flat = {n: jnp.asarray(v.reshape(-1, *v.shape[2:])) for n, v in arrays.items()}
    out = _predict(model.network, flat, jnp.asarray(x), batch_size)
    return np.asarray(out).reshape(*leading, *out.shape[1:])


@partial(jax.jit, static_argnames=("network", "batch_size"))
def _predict(
    network: Network, weights: Mapping[str, jax.Array], x: jax.Array, batch_size: int
) -> jax.Array:
    return jax.lax.map(lambda w: network.apply(w, x), weights, batch_size=batch_size)


def _check_draws(draws: Mapping[str, Any], network: Network) -> dict[str, np.ndarray]:
    whole = isinstance(draws, xr.DataTree) and "posterior" in draws.children
    given: Any = draws["posterior"].to_dataset() if whole else draws
    absent = [name for name in network.shapes if name not in given]
    if absent:
        raise ValueError(
            f"`draws` lack {', '.join(absent)}; they hold {', '.join(map(str, given)) or 'none'}."
            " Give draws of the same model."
        )
    arrays = {name: np.asarray(given[name]) for name in network.shapes}
    leading = next(iter(arrays.values())).shape[:2]
    for name, shape in network.shapes.items():
        if len(leading) != 2 or arrays[name].shape != (*leading, *shape):
            raise ValueError(
                f"`draws` hold {name} of shape {arrays[name].shape}; the network needs (chain, "
                f"draw, {', '.join(map(str, shape))}), chains and draws as many as in the others."
            )
    return arrays
