"""Bayesian networks in Stan: the data that describe one to the programs, and draws read back under NumPyro's names.

All networks share two programs, `programs/regression.stan` and `programs/classification.stan`. Their parameters are
packed vectors; this module knows the order: layer after layer, matrices (in, out) by columns, and Givens-like arrays of
the unconstrained space by rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from onebasin.models.networks.architecture import Layer
from onebasin.models.networks.bayesian import NetworkTarget
from onebasin.models.networks.likelihood import Gaussian

PROGRAMS = Path(__file__).parent / "programs"
ACTIVATION_CODES = {
    "identity": 1,
    "relu": 2,
    "leaky_relu": 3,
    "tanh": 4,
    "selu": 5,
    "softplus": 6,
    "silu": 7,
}
CHART_CODES = {"free": 0, "givens": 1, "givens_seamless": 2, "unit_vector": 3}


def program_path(target: NetworkTarget) -> Path:
    """The Stan program that serves the target."""
    return PROGRAMS / ("classification.stan" if target.model.is_classifier else "regression.stan")


def program_data(target: NetworkTarget) -> dict[str, Any]:
    """The `data` block for the target, ready for JSON."""
    model = target.model
    network = model.network
    num_layers = len(network.layers)
    data: dict[str, Any] = {
        "num_obs": len(target.x),
        "num_hidden_layers": len(network.hidden),
        "width": list(network.widths),
        "x": target.x,
        "activation": ACTIVATION_CODES[network.activation],
        "has_biases": int(network.biases),
        "sum_readout": int(network.readout == "sum"),
        "has_skips": int(network.skip is not None),
        "skips": np.concatenate(
            [np.empty(0), *(s.ravel(order="F") for s in network.skip_matrices())]
        ),
        "weight_chart": CHART_CODES[model.parametrisation.weights],
        "ordered_biases": int(model.parametrisation.biases == "ordered"),
        "weight_scale": list(model.prior.weight_scales(num_layers)),
        "bias_scale": list(model.prior.bias_scales(num_layers)),
    }
    if isinstance(model.likelihood, Gaussian):
        data |= {
            "y": target.y,
            "predict_noise": int(model.predicts_noise),
            "infer_noise": int(model.infers_noise),
            "noise": _noise(model.likelihood),
            "noise_scale": model.likelihood.noise_scale,
        }
    else:
        data["label"] = target.y + 1
    return data


def _noise(likelihood: Gaussian) -> float:
    """The known standard deviation, or the scale of one that is predicted; 0 where it is inferred."""
    known = likelihood.noise_sd
    return likelihood.noise_scale if isinstance(known, str) else known or 0.0


def read_draws(target: NetworkTarget, variables: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Unpack the programs' variables into ``W1``, ``b1``, ..., ``sigma``.

    Parameters
    ----------
    target : NetworkTarget
        What was sampled.
    variables : mapping
        ``weights`` (..., packed), ``biases`` (..., packed) and, where it is inferred, ``sigma`` (..., 1).

    Returns
    -------
    dict
        Arrays with the same leading axes and the shapes of `Network.shapes`.
    """
    out = _split(target, variables["weights"], variables.get("biases"))
    if target.model.infers_noise:
        out["sigma"] = variables["sigma"][..., 0]
    return {name: out[name] for name in variable_names(target)}


def variable_names(target: NetworkTarget) -> tuple[str, ...]:
    """Names of the parameters, in the order of the NumPyro model's sites."""
    names = tuple(target.model.network.shapes)
    return (*names, "sigma") if target.model.infers_noise else names


def pack_unconstrained(target: NetworkTarget, values: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Arrays of the NumPyro model's unconstrained space, as the programs' parameters.

    The inverse question to `read_draws`; Stan's ``sigma`` is positive, so it is exponentiated.

    Parameters
    ----------
    target : NetworkTarget
        The target.
    values : mapping
        Site name to unconstrained array.

    Returns
    -------
    dict
        ``weights_raw``, ``biases_raw``, ``sigma``.
    """
    weights, biases = [np.empty(0)], [np.empty(0)]
    for layer in target.model.network.layers:
        if layer.weight:
            weights.append(np.asarray(values[layer.weight]).ravel(order=_raw_order(target, layer)))
        if layer.bias:
            biases.append(np.asarray(values[layer.bias]))
    sigma = [np.exp(values["sigma"])] if target.model.infers_noise else []
    return {
        "weights_raw": np.concatenate(weights),
        "biases_raw": np.concatenate(biases),
        "sigma": np.asarray(sigma, dtype=np.float64),
    }


def unpack_gradient(target: NetworkTarget, gradient: np.ndarray, shapes: Mapping[str, Any]) -> dict:
    """A gradient over the programs' unconstrained vector, as arrays of the NumPyro model's unconstrained space.

    Parameters
    ----------
    target : NetworkTarget
        The target.
    gradient : array (param,)
        In Stan's order: weights_raw, biases_raw, log sigma.
    shapes : mapping
        Site name to shape in the unconstrained space.
    """
    out: dict[str, np.ndarray] = {}
    at = 0
    layers = target.model.network.layers
    for name, order in [(a.weight, _raw_order(target, a)) for a in layers] + [
        (a.bias, "C") for a in layers
    ]:
        if name:
            size = int(np.prod(shapes[name]))
            out[name] = gradient[at : at + size].reshape(shapes[name], order=order)
            at += size
    if target.model.infers_noise:
        out["sigma"] = gradient[at]
    return out


def _raw_order(target: NetworkTarget, layer: Layer) -> Any:
    """Memory order in which a layer's unconstrained weights are packed: charts work row by row."""
    return "C" if layer.hidden and target.model.parametrisation.unit_norm else "F"


def _split(
    target: NetworkTarget, weights: np.ndarray, biases: np.ndarray | None
) -> dict[str, np.ndarray]:
    out: dict[str, np.ndarray] = {}
    w = b = 0
    for layer in target.model.network.layers:
        if layer.weight:
            size = layer.in_dim * layer.out_dim
            part = weights[..., w : w + size]
            by_column = part.reshape(*part.shape[:-1], layer.out_dim, layer.in_dim)
            out[layer.weight] = np.swapaxes(by_column, -1, -2)
            w += size
        if layer.bias and biases is not None:
            out[layer.bias] = biases[..., b : b + layer.out_dim]
            b += layer.out_dim
    return out
