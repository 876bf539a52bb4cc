"""From a posterior to what is matched: symmetry, network, inputs, features, scales, another posterior's mean.

Networks are divided by the prior's standard deviations. Any other posterior: by the spread of a variable, as `units`
finds it; 1 where it never varies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import xarray as xr

from onebasin.base.checks import check_inputs, check_positive
from onebasin.base.errors import ArgumentError
from onebasin.models.symmetry.blocks import Symmetry
from onebasin.models.symmetry.elements import Element, Part, Permuted, as_rotation
from onebasin.models.symmetry.group import Group
from onebasin.posteriors.draws import event_shapes
from onebasin.posteriors.view import Posterior, View, as_view

from ..discovery.density import advice
from ..discovery.resolve import Resolved, resolve
from .draws import DrawReader, Workers
from .features import Features, activations, weights
from .parts import Parts, lead_by
from .units import FeatureUnits

if TYPE_CHECKING:
    from onebasin.models.networks.bayesian import BayesianNetwork


@dataclass(frozen=True, eq=False)
class Preparation:
    """A recipe that takes features from any posterior of one model.

    Attributes
    ----------
    symmetry : Symmetry
        Of the draws.
    model : BayesianNetwork or None
        The network, where there is one.
    inputs : array (obs, in) or None
        For activations; None where weights are matched.
    gauge : str
        How scalings are divided out.
    max_bytes : int
        Of a chunk.
    team : Workers
        Threads.
    """

    symmetry: Symmetry
    model: BayesianNetwork | None
    inputs: np.ndarray | None
    gauge: str
    max_bytes: int
    team: Workers

    def features(self, dataset: xr.Dataset, argument: str = "posterior") -> Features:
        """Check a posterior, whose draws have to be finite and fit the symmetry, and make its features."""
        names = tuple(dict.fromkeys(n for block in self.symmetry for n in block.variables))
        if self.inputs is None or self.model is None:
            reader = self._reader(dataset, names, argument, 0)
            return weights(reader, self.symmetry, self.gauge, self.team)
        extra = len(self.inputs) * sum(self.model.network.hidden)
        reader = self._reader(dataset, names, argument, extra)
        return activations(reader, self.symmetry, self.gauge, self.model, self.inputs)

    def _reader(
        self, dataset: xr.Dataset, names: tuple[str, ...], argument: str, extra: int
    ) -> DrawReader:
        reader = DrawReader(dataset, names, self.max_bytes, argument, extra)
        Group(self.symmetry, reader.shapes)  # refuses what does not fit
        reader.check_finite()
        return reader

    def mean_of(self, other: Posterior, own: Features) -> dict[str, np.ndarray]:
        """Return the mean of another posterior's features, of the same shapes."""
        view = as_view(other, "reference")
        dataset = view.posterior
        shapes = event_shapes(dataset, own.reader.names)
        for name, shape in own.reader.shapes.items():
            if shapes.get(name, shape) != shape:
                raise ArgumentError(
                    f"`{view.argument}` holds {name} of shape {shapes[name]}, and `{own.reader.argument}` "
                    f"of shape {shape}; give a posterior of the same model."
                )
        theirs = self.features(dataset, view.argument).in_units(own.units)
        sums: dict[str, Any] = dict.fromkeys(own.names, 0.0)
        for chunk in theirs.chunks:
            values = theirs.read(chunk)
            sums = {n: s + values[n].sum(axis=0, dtype=np.float64) for n, s in sums.items()}
        return {name: np.asarray(total / theirs.total) for name, total in sums.items()}


def prepare(
    view: View,
    symmetry: Symmetry,
    cost: str,
    x: Any,
    gauge: str,
    max_bytes: int,
    team: Workers,
) -> Preparation:
    """Gather the settings that alignment needs in addition to the draws."""
    if not symmetry:
        raise ArgumentError(
            "`symmetry` has no blocks: there is nothing to align; give at least one."
        )
    model = view.network
    inputs = None
    if cost == "activations":
        if model is None:
            raise ArgumentError(
                f"`cost` is 'activations', but `{view.argument}` has no attribute `model` that describes a "
                "network; use cost='weights'."
            )
        x = view.x if x is None else x
        if x is None:
            raise ArgumentError(
                "`cost` is 'activations', which needs inputs: give `x` (obs, in), or a posterior that "
                "keeps its own in the group `constant_data`."
            )
        inputs = check_inputs(x, model.network.in_dim)
    return Preparation(symmetry, model, inputs, gauge, max_bytes, team)


def whole_element(features: Features, parts: Parts) -> Element:
    """The element of the declared symmetry: scalings and rotations first, then what the features were moved by."""
    symmetry = features.declared
    group = Group(symmetry, features.reader.shapes)
    unmoved = group.identity((features.total,))
    scaled, rotated, moving = iter(features.scaled), iter(features.rotated), iter(parts)
    first: list[Part] = []
    then: list[Part] = []
    for block, still in zip(symmetry, unmoved, strict=True):
        if block.discrete is not block:
            first.append(next(rotated))
            then.append(as_rotation(cast(Permuted, next(moving))))
            continue
        first.append(still if block.keeps_density else next(scaled))
        then.append(next(moving) if block.keeps_density else still)
    return lead_by(group.compose(tuple(first), tuple(then)), features.reader.lead)


def choose_symmetry(view: View, symmetry: Any) -> Resolved:
    """Resolve the symmetry to align by: what was asked for, what the posterior declares, or what its draws show.

    What does not hold is refused, and where there is nothing to align by.
    """
    resolved = resolve(view, symmetry)
    if resolved.source == "refuted":
        raise ArgumentError(f"`posterior` cannot be aligned. {resolved.caveat}")
    if resolved.source == "none":
        resolved = resolve(view, look=True)
        if resolved.source == "partial":
            seen = ", ".join(resolved.words)
            why = f"Its draws show that components of {seen} change places. {resolved.reason} To move only some of"
            why += f" these parameters would leave the posterior. {advice(view)}"
            if resolved.alone:
                why = f"Its draws look as if components of {seen} had changed places. {resolved.reason} No symmetry"
                why += " joins such modes: `ob.sample_modes` estimates their masses."
            raise ArgumentError(f"`posterior` cannot be aligned. {why}")
        if not resolved.blocks:
            what = "no labels that switch: there is nothing to align"
            if shown := resolved.candidates:
                what = f"that components of {shown[0].word} change places and overlap, which no alignment undoes"
                what += " for sure"
                if shown[0].turns:
                    what = f"that components rotate, by {shown[0].word!r}: declare it to align by varimax"
            raise ArgumentError(
                f"`symmetry` is not given, `posterior` declares none, and its draws show {what}. Give blocks "
                "or words of what is interchangeable, such as 'mu,sigma'."
            )
    return resolved


def choose_scales(
    given: Mapping[str, float] | None,
    model: BayesianNetwork | None,
    features: Features,
    units: FeatureUnits,
) -> dict[str, float]:
    """Return the scale of every feature: the one given, the prior's, or the draws' spread."""
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
