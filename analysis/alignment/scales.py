"""By what each variable is divided before distances are measured.

Networks: the prior's standard deviations. Any other posterior: the spread of a variable over all
draws and all its entries, which relabelling does not change; about 0 where signs may flip, about 1/2 where
a value may become its complement.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from onebasin.models.checks import check_positive
from onebasin.models.networks.bayesian import BayesianNetwork
from onebasin.models.symmetry.blocks import Symmetry

from .features import Features


def choose_scales(
    given: Mapping[str, float] | None, model: BayesianNetwork | None, features: Features
) -> dict[str, float]:
    """Return the scale of every feature: the one given, the prior's, or the draws' spread.

    Raises
    ------
    ValueError
        If `given` names what is not matched, or a scale is not positive.
    """
    given = dict(given or {})
    for name, scale in given.items():
        check_positive(f"scales[{name!r}]", scale)
        if name not in features.names:
            raise ValueError(
                f"`scales` names {name}, which is not matched; that are {', '.join(features.names)}."
            )
    if features.transform is not None:
        default = dict.fromkeys(features.names, 1.0)
    elif model is not None and set(features.names) <= set(model.network.shapes):
        default = prior_scales(model)
    elif set(features.names) <= set(given):
        default = {}
    else:
        default = spreads(features)
    return {name: float(given.get(name, default.get(name, 1.0))) for name in features.names}


def prior_scales(model: BayesianNetwork) -> dict[str, float]:
    """Prior standard deviation of every weight and bias; of weights with norm 1, 1 / sqrt(inputs)."""
    layers = model.network.layers
    out: dict[str, float] = {}
    for layer, weight, bias in zip(
        layers,
        model.prior.weight_scales(len(layers)),
        model.prior.bias_scales(len(layers)),
        strict=True,
    ):
        if layer.weight:
            on_sphere = layer.hidden and model.parametrisation.unit_norm
            out[layer.weight] = layer.in_dim**-0.5 if on_sphere else weight
        if layer.bias:
            out[layer.bias] = bias
    return out


def spreads(features: Features) -> dict[str, float]:
    """Root mean square of each variable about its centre; 1 where it never varies."""
    centres = _centres(features.symmetry)
    count: dict[str, float] = dict.fromkeys(features.names, 0.0)
    first, second = dict(count), dict(count)
    for chunk in features.chunks:
        for name, values in features.read(chunk).items():
            if name not in count:
                continue
            around = values.astype(np.float64) - centres.get(name, 0.0)
            count[name] += around.size
            first[name] += float(around.sum())
            second[name] += float((around**2).sum())
    out = {}
    for name in features.names:
        mean = 0.0 if name in centres else first[name] / count[name]
        square = second[name] / count[name]
        variance = square - mean**2
        out[name] = float(np.sqrt(variance)) if variance > 1e-12 * square else 1.0
    return out


def _centres(symmetry: Symmetry) -> dict[str, float]:
    out: dict[str, float] = {}
    for block in symmetry:
        out |= dict.fromkeys(block.flipped, 0.0) | dict.fromkeys(block.complemented, 0.5)
    return out
