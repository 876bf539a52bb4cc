"""Bayesian networks in Stan: the data for their programs, and their draws under NumPyro's names.

All networks share two programs, `programs/regression.stan` and `programs/classification.stan`, whose parameters are
packed vectors. The vectors contain one layer after the other, with matrices (in, out) by columns and unconstrained
arrays of Givens-like parametrisations by rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np

from onebasin.models.networks.bayesian import NetworkTarget
from onebasin.models.networks.likelihood import Gaussian

PROGRAMS = Path(__file__).parent / "programs"
_ACTIVATIONS = ("identity", "relu", "leaky_relu", "tanh", "selu", "softplus", "silu")
ACTIVATION_CODES = {name: code for code, name in enumerate(_ACTIVATIONS, start=1)}
CHART_CODES = {"free": 0, "givens": 1, "givens_seamless": 2, "unit_vector": 3}


def program_path(target: NetworkTarget) -> Path:
    """Return the Stan program of a network."""
    return PROGRAMS / ("classification.stan" if target.model.is_classifier else "regression.stan")


def program_data(target: NetworkTarget) -> dict[str, Any]:
    """Return the variables of the `data` block."""
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
        # `noise` is the known standard deviation, the scale of a predicted one, or 0 if it is inferred.
        known, scale = model.likelihood.noise_sd, model.likelihood.noise_scale
        data |= {
            "y": target.y,
            "predict_noise": int(model.predicts_noise),
            "infer_noise": int(model.infers_noise),
            "noise": scale if isinstance(known, str) else known or 0.0,
            "noise_scale": scale,
        }
    else:
        data["label"] = target.y + 1
    return data


def read_draws(target: NetworkTarget, variables: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Unpack ``weights`` (..., packed), ``biases`` (..., packed) and an inferred ``sigma`` (..., 1).

    The result has ``W1``, ``b1``, ..., ``sigma``, with the shapes of `Network.shapes`.
    """
    weights, biases = variables["weights"], variables.get("biases")
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
    if target.model.infers_noise:
        out["sigma"] = variables["sigma"][..., 0]
    return {name: out[name] for name in variable_names(target)}


def variable_names(target: NetworkTarget) -> tuple[str, ...]:
    """Return the names of the parameters, in the order of the NumPyro model's sites."""
    names = tuple(target.model.network.shapes)
    return (*names, "sigma") if target.model.infers_noise else names


def pack_unconstrained(target: NetworkTarget, values: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Pack a point of the NumPyro model's unconstrained space into ``weights_raw``, ``biases_raw`` and ``sigma``.

    Stan's ``sigma`` is positive, so it is exponentiated.
    """
    weights, biases = [np.empty(0)], [np.empty(0)]
    by_rows = target.model.parametrisation.unit_norm
    for layer in target.model.network.layers:
        if layer.weight:
            order: Literal["C", "F"] = "C" if layer.hidden and by_rows else "F"
            weights.append(np.asarray(values[layer.weight]).ravel(order=order))
        if layer.bias:
            biases.append(np.asarray(values[layer.bias]))
    sigma = [np.exp(values["sigma"])] if target.model.infers_noise else []
    return {
        "weights_raw": np.concatenate(weights),
        "biases_raw": np.concatenate(biases),
        "sigma": np.asarray(sigma, dtype=np.float64),
    }
