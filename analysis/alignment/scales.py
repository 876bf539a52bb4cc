"""By what each variable is divided before distances are measured.

Networks: the prior's standard deviations. Any other posterior: the spread of a variable, as `units` finds it; 1 where
it never varies.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from onebasin.base.checks import check_positive
from onebasin.base.errors import ArgumentError

from .features import Features
from .units import FeatureUnits

if TYPE_CHECKING:
    from onebasin.models.networks.bayesian import BayesianNetwork


def choose_scales(
    given: Mapping[str, float] | None,
    model: BayesianNetwork | None,
    features: Features,
    units: FeatureUnits,
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
            raise ArgumentError(
                f"`scales` names {name}, which is not matched; that are {', '.join(features.names)}."
            )
    if features.transform is not None:
        default = dict.fromkeys(features.names, 1.0)
    elif model is not None and set(features.names) <= set(model.network.shapes):
        default = prior_scales(model)
    elif set(features.names) <= set(given):
        default = {}
    else:
        default = {name: spread or 1.0 for name, spread in units.spread.items()}
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
