"""Independent densities of networks and small mixtures in plain NumPy, for many points at once.

No code of `onebasin` is evaluated here; only the settings of a `BayesianNetwork` are read. With layer one affine,

    h = x O1 + x W1 + b1,    output = h O2 + f(h) W2 + b2,    or the sum of f(h) over units.

Sources: Pourzanjani et al. 2017, section 3 (constraints); Kurle et al. 2021, equation 7 (skips).
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln, log_softmax, softmax

from onebasin.networks import BayesianNetwork

from .quadrature import Values

LOG_2PI = math.log(2 * math.pi)
ACTIVATIONS = {"relu": lambda z: np.maximum(z, 0), "tanh": np.tanh}


def outputs(model: BayesianNetwork, values: Values, x: np.ndarray) -> np.ndarray:
    """Return the outputs (point, obs, head) of a network with one hidden layer."""
    network = model.network
    f, skips = ACTIVATIONS[network.activation], network.skip_matrices()
    hidden = np.einsum("oi,pih->poh", x, values["W1"])
    if network.biases:
        hidden = hidden + values["b1"][:, None, :]
    if skips:
        hidden = hidden + x @ skips[0]
    if network.readout == "sum":
        return f(hidden).sum(-1, keepdims=True)
    out = np.einsum("poh,phk->pok", f(hidden), values["W2"])
    if network.biases:
        out = out + values["b2"][:, None, :]
    return out + hidden @ skips[1] if skips else out


def predictions(model: BayesianNetwork, values: Values, x: np.ndarray) -> dict[str, np.ndarray]:
    """Return predictions at inputs: the mean and any predicted noise, or the probability of the last class."""
    out = outputs(model, values, x)
    if model.is_classifier:
        return {"probability": softmax(out, axis=-1)[..., -1]}
    if model.predicts_noise:
        noise = model.likelihood.noise_scale * np.logaddexp(0, out[..., 1])
        return {"mean": out[..., 0], "noise": noise}
    return {"mean": out[..., 0]}


def log_joint(model: BayesianNetwork, values: Values, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return log prior plus log likelihood at points (point,) with all constants."""
    return log_prior(model, values) + log_likelihood(model, values, x, y)


def log_likelihood(
    model: BayesianNetwork, values: Values, x: np.ndarray, y: np.ndarray
) -> np.ndarray:
    """Return the log likelihood of all data."""
    if model.is_classifier:
        each = log_softmax(outputs(model, values, x), axis=-1)
        return each[:, np.arange(len(y)), y].sum(-1)
    found = predictions(model, values, x)
    sd = found.get("noise", model.likelihood.noise_sd)
    if model.infers_noise:
        sd = values["sigma"][:, None]
    return log_normal(y[:, 0], found["mean"], sd).sum(-1)


def log_prior(model: BayesianNetwork, values: Values) -> np.ndarray:
    """Return the log prior density, which is relative to arc length for unit vectors in the plane."""
    total = np.zeros(len(values["W1"]))
    ways, prior = model.parametrisation, model.prior
    for name, value in values.items():
        flat = value.reshape(len(value), -1)
        if name == "sigma":
            total += math.log(2) + log_normal(value, 0, model.likelihood.noise_scale)
        elif name == "W1" and ways.unit_norm:
            total -= LOG_2PI * value.shape[-1]
        else:
            scale = prior.weight_scale if name.startswith("W") else prior.bias_scale
            total += log_normal(flat, 0, scale).sum(-1)
            if name == "b1" and ways.biases == "ordered":
                total += gammaln(flat.shape[1] + 1)
    return total


def log_normal(y: np.ndarray, mean: np.ndarray | float, sd: np.ndarray | float) -> np.ndarray:
    """Return the log density of a normal distribution."""
    return -0.5 * ((y - mean) / sd) ** 2 - np.log(sd) - 0.5 * LOG_2PI


def log_evidence_of_last_layer(features: np.ndarray, y: np.ndarray, noise_sd: float) -> np.ndarray:
    """Return the log density of y given features (point, obs, feature), with N(0, 1) output weights integrated out."""
    num_obs, size = features.shape[1:]
    scaled = features / noise_sd
    precision = np.eye(size) + np.swapaxes(scaled, -1, -2) @ scaled
    pull = np.einsum("pof,o->pf", scaled, y / noise_sd)
    mean = np.linalg.solve(precision, pull[..., None])[..., 0]
    quadratic = (y @ y) / noise_sd**2 - (pull * mean).sum(-1)
    log_det = np.linalg.slogdet(precision)[1]
    return -0.5 * (quadratic + log_det + num_obs * (LOG_2PI + 2 * math.log(noise_sd)))
