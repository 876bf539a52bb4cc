"""A network's outputs over posterior draws."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import numpy as np
import xarray as xr
from jaxtyping import Float

from onebasin.base.checks import check_class, check_count, check_inputs, checks_arguments
from onebasin.base.errors import ArgumentError

from .architecture import Network
from .bayesian import BayesianNetwork
from .likelihood import Gaussian


@checks_arguments
def predict(
    model: BayesianNetwork, draws: Mapping[str, Any], x: Any, *, batch_size: int = 256
) -> Float[np.ndarray, "chain draw obs out"]:
    """Evaluate the network for all draws.

    Parameters
    ----------
    model : BayesianNetwork
        The model of the draws.
    draws : DataTree, Dataset, or mapping of str to array
        A posterior, its group `posterior`, or its arrays: ``W1 (chain, draw, in, hidden1)``,
        ``b1 (chain, draw, hidden1)``, ...
    x : array (obs, in)
        Inputs, in the units that the model was conditioned on.
    batch_size : int
        Draws that are evaluated at a time; limits the memory.

    Returns
    -------
    array (chain, draw, obs, out)
        Outputs: means for regression, in the units of `y`; logits for classification. Without observation noise;
        `predict_with_noise` also returns its size.

    Raises
    ------
    ValueError
        If `x` does not fit the network or is not finite, `draws` lack a parameter or have other
        shapes, or `batch_size` is not a positive whole number.

    Examples
    --------
    >>> ob.networks.predict(network.model, weights, np.zeros((5, 1))).shape
    (4, 300, 5, 1)
    """
    check_class("model", model, BayesianNetwork, remedy="give a BayesianNetwork")
    out = all_heads(model.network, draws, x, batch_size=batch_size)
    return out[..., : model.network.out_dim]


@checks_arguments
def predict_with_noise(
    model: BayesianNetwork, draws: Mapping[str, Any], x: Any, *, batch_size: int = 256
) -> tuple[Float[np.ndarray, "chain draw obs out"], Float[np.ndarray, "chain draw obs out"]]:
    """Return the mean and standard deviation of the normal that each draw predicts at each input.

    Parameters
    ----------
    model : BayesianNetwork
        The model of the draws, with a `Gaussian` likelihood.
    draws, x, batch_size : Any
        Same as in `predict`; if the noise is inferred, the draws include ``sigma``.

    Returns
    -------
    tuple of array (chain, draw, obs, out)
        The result of `predict`, and the standard deviation of the noise around it, in the units of `y`: depending on
        the likelihood the known number, the draw's ``sigma``, or the network's prediction.

    Raises
    ------
    ValueError
        As `predict`; or if the model is a classifier, or `draws` lack the ``sigma`` that it infers.

    Examples
    --------
    >>> mean, sd = ob.networks.predict_with_noise(network.model, weights, np.zeros((5, 1)))
    >>> mean.shape == sd.shape == (4, 300, 5, 1)
    True
    """
    check_class("model", model, BayesianNetwork, remedy="give a BayesianNetwork")
    mean, sd = mean_and_sd(model, draws, x, batch_size=batch_size)
    return mean, np.broadcast_to(sd, mean.shape)


def mean_and_sd(
    model: BayesianNetwork, draws: Mapping[str, Any], x: Any, *, batch_size: int = 256
) -> tuple[np.ndarray, np.ndarray]:
    """As `predict_with_noise`, with standard deviations that broadcast to the means."""
    likelihood = model.likelihood
    if not isinstance(likelihood, Gaussian):
        raise ArgumentError(
            "`model` is a classifier, so its predictions have no noise. Use `predict`."
        )
    output = all_heads(model.network, draws, x, batch_size=batch_size)
    if model.predicts_noise:
        return tuple(map(np.asarray, _split(likelihood, output)))  # type: ignore[return-value]
    if not model.infers_noise:
        return output, np.full((*output.shape[:2], 1, 1), likelihood.noise_sd)
    given = _posterior_of(draws)
    if "sigma" not in given:
        raise ArgumentError(
            f"The network infers its noise, so `draws` must contain sigma; got {', '.join(map(str, given))}. Give "
            "draws of all parameters."
        )
    return output, np.asarray(given["sigma"])[..., None, None]


def all_heads(
    network: Network, draws: Mapping[str, Any], x: Any, *, batch_size: int = 256
) -> Float[np.ndarray, "chain draw obs head"]:
    """Return the network's raw outputs: `predict` without splitting the heads, under the same checks."""
    check_count("batch_size", batch_size)
    x = check_inputs(x, network.in_dim)
    given = _posterior_of(draws)
    absent = [name for name in network.shapes if name not in given]
    if absent:
        raise ArgumentError(
            f"`draws` must contain {', '.join(absent)}; got {', '.join(map(str, given)) or 'no variables'}. Give "
            "draws of this network's parameters."
        )
    arrays = {name: np.asarray(given[name]) for name in network.shapes}
    leading = next(iter(arrays.values())).shape[:2]
    for name, shape in network.shapes.items():
        if len(leading) != 2 or arrays[name].shape != (*leading, *shape):
            raise ArgumentError(
                f"The array {name} in `draws` has shape {arrays[name].shape}, but the network needs shape "
                f"({', '.join(['chain', 'draw', *map(str, shape)])}). All arrays must have the same numbers of "
                "chains and draws."
            )
    flat = {n: v.reshape(-1, *v.shape[2:]) for n, v in arrays.items()}
    out = _predict(network, flat, x, batch_size)
    return np.asarray(out).reshape(*leading, *out.shape[1:])


_split = jax.jit(Gaussian.mean_and_sd, static_argnums=0)


@partial(jax.jit, static_argnames=("network", "batch_size"))
def _predict(
    network: Network, weights: Mapping[str, jax.Array], x: jax.Array, batch_size: int
) -> jax.Array:
    return jax.lax.map(lambda w: network.apply(w, x), weights, batch_size=batch_size)


def _posterior_of(draws: Mapping[str, Any]) -> Any:
    whole = isinstance(draws, xr.DataTree) and "posterior" in draws.children
    return draws["posterior"].to_dataset() if whole else draws
