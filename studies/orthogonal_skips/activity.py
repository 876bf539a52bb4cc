"""Collapsed units of a mean-field fit: signal-to-noise ratio of every hidden unit's weights, and KL to the prior.

If a fit prunes a unit, its outgoing weights are near zero and its incoming weights return to the prior (Trippe and
Turner 2018). A unit counts as active if one of its weights to an active unit of the next layer, or to an output, has a
mean more than `THRESHOLD` standard deviations from zero. With orthogonal skips, weights to any unit of the next layer
count, because skips pass on the input of every unit.
"""

from itertools import pairwise

import numpy as np
import pandas as pd
import xarray as xr

from onebasin.models import BayesianNetwork
from onebasin.posteriors import schema

from ..networks import by_variable

THRESHOLD = 1.0

Moments = dict[str, tuple[np.ndarray, np.ndarray]]
"""Mean and standard deviation of each weight matrix and bias vector, by name."""


def moments_of(fit: xr.Dataset, model: BayesianNetwork, evaluation: int | None = None) -> Moments:
    """Read the moments from the group `variational` of a fit, at one evaluation of the ELBO or at the end."""
    if evaluation is not None:
        fit = fit[[schema.LOC_TRACE, schema.SCALE_TRACE]].isel(evaluation=evaluation)
        fit = fit.rename({schema.LOC_TRACE: "loc", schema.SCALE_TRACE: "scale"})
    vectors = np.stack([np.asarray(fit[name].values, np.float64) for name in ("loc", "scale")])
    ordered = {layer.bias for layer in model.network.layers if layer.hidden}
    found: Moments = {}
    for name, (loc, scale) in by_variable(vectors, model).items():
        if model.parametrisation.biases == "ordered" and name in ordered:
            # z_1, z_1 + exp(z_2), ... are sums of a normal and independent lognormals.
            steps = np.exp(loc[1:] + scale[1:] ** 2 / 2)
            variances = np.concatenate([scale[:1] ** 2, np.expm1(scale[1:] ** 2) * steps**2])
            loc = np.cumsum(np.concatenate([loc[:1], steps]))
            scale = np.sqrt(np.cumsum(variances))
        found[name] = loc, scale
    return found


def unit_activity(moments: Moments, model: BayesianNetwork) -> pd.DataFrame:
    """Return one row per hidden unit: `layer`, `active`, and KL and largest signal-to-noise of weights in and out."""
    layers = model.network.layers
    signal = {n: np.abs(mean) / sd for n, (mean, sd) in moments.items()}
    kl = weight_divergences(moments, model)
    rows: list[pd.DataFrame] = []
    seen = np.ones(layers[-1].out_dim, bool)
    for layer, after in reversed(list(pairwise(layers))):
        into, out = str(layer.weight), str(after.weight)
        active = (signal[out][:, seen] > THRESHOLD).any(axis=1)
        columns = {"kl_in": kl[into].sum(axis=0), "kl_out": kl[out].sum(axis=1)}
        columns |= {"snr_in": signal[into].max(axis=0), "snr_out": signal[out].max(axis=1)}
        rows.insert(0, pd.DataFrame({"layer": layer.out_axis, "active": active, **columns}))
        seen = active if model.network.skip is None else np.ones_like(active)
    return pd.concat(rows, ignore_index=True)


def weight_divergences(moments: Moments, model: BayesianNetwork) -> dict[str, np.ndarray]:
    """Return the KL from every weight's Gaussian to its prior, in nats."""
    layers = model.network.layers
    scales = zip(layers, model.prior.weight_scales(len(layers)), strict=True)
    found = {}
    for name, scale in ((str(layer.weight), scale) for layer, scale in scales):
        mean, sd = moments[name]
        found[name] = (mean**2 + sd**2) / (2 * scale**2) - 0.5 - np.log(sd / scale)
    return found
