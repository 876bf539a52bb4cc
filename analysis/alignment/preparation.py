"""From a posterior to what is matched: symmetry, network, inputs, features, scales, another posterior's mean.

And conditions on an aligned posterior: the log density of the draws as they came, and nothing left behind.

Networks are divided by the prior's standard deviations. Any other posterior: by the spread of a variable, as `units`
finds it; 1 where it never varies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from onebasin.base.card import in_brief
from onebasin.base.checks import check_inputs, check_positive
from onebasin.base.errors import ArgumentError
from onebasin.models.symmetry.elements import labels_of, on_arrays
from onebasin.models.symmetry.group import Group
from onebasin.posteriors.draws import event_shapes
from onebasin.posteriors.view import Posterior, View, as_view

from ..discovery.density import LeavesPosterior, advice, parameters_of, spelt
from ..discovery.partial import followers, nearly_exchangeable, recorded_companions, recurring, tied
from ..discovery.resolve import Resolved, resolve
from ..discovery.slots import numbered
from ..summaries.deciding import every_few, looked_at
from .features import Features
from .result import Alignment

if TYPE_CHECKING:
    from onebasin.models.networks.bayesian import BayesianNetwork


def choose_inputs(
    view: View, cost: str, x: Any
) -> tuple[BayesianNetwork, Float[np.ndarray, "obs in"]] | None:
    """Return the network and the inputs whose activations are matched; None where weights are."""
    if cost != "activations":
        return None
    model = view.network
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
    return model, check_inputs(x, model.network.in_dim)


def mean_of(
    other: Posterior, find: Callable[[View], Features], own: Features
) -> dict[str, np.ndarray]:
    """Return the mean of another posterior's features, in the units and of the shapes of `own`."""
    view = as_view(other, "reference")
    shapes = event_shapes(view.posterior, own.reader.names)
    for name, shape in own.reader.shapes.items():
        if shapes.get(name, shape) != shape:
            raise ArgumentError(
                f"`{view.argument}` holds {name} of shape {shapes[name]}, and `{own.reader.argument}` "
                f"of shape {shape}; give a posterior of the same model."
            )
    theirs = find(view).in_units(own.units)
    sums: dict[str, Any] = dict.fromkeys(own.names, 0.0)
    for chunk in theirs.chunks:
        values = theirs.read(chunk)
        sums = {n: s + values[n].sum(axis=0, dtype=np.float64) for n, s in sums.items()}
    return {name: np.asarray(total / theirs.total) for name, total in sums.items()}


def choose_symmetry(view: View, symmetry: Any) -> Resolved:
    """Resolve the symmetry to align by: what was asked for, what the posterior declares, or what its draws show.

    What does not hold is refused, and where there is nothing to align by.
    """
    resolved = resolve(view, symmetry)
    if resolved.source == "refuted":
        raise ArgumentError(f"`posterior` cannot be aligned. {resolved.caveat}")
    if resolved.source == "none":
        if near := nearly_exchangeable(view):
            raise ArgumentError(
                f"`{view.argument}` cannot be aligned. Labels of {in_brief(tuple(near), NAMED)} are at most "
                "nearly exchangeable: the weights are broken off a stick, which has an order, so that aligned draws "
                "would leave the posterior. Tell the heavy components apart by a rule of your own, such as the order "
                "of their means."
            )
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
    if not resolved.blocks:
        raise ArgumentError(
            "`symmetry` has no blocks: there is nothing to align; give at least one."
        )
    return resolved


def choose_scales(
    given: Mapping[str, float] | None, model: BayesianNetwork | None, features: Features
) -> dict[str, float]:
    """Return the scale of every feature: the one given, the prior's, or the draws' spread."""
    asked, given = given or {}, dict[str, float]()
    for name, scale in asked.items():
        check_positive(f"scales[{name!r}]", scale)
        own = [n for n in features.names if name in (n, *features.plain.sources(n))]
        if not own:
            raise ArgumentError(
                f"`scales` names {name}, which is not matched; that are {', '.join(features.names)}."
            )
        given = dict.fromkeys(own, scale) | given
    if features.transform is not None:
        default = dict.fromkeys(features.names, 1.0)
    elif model is not None and set(features.names) <= set(model.network.shapes):
        default = prior_scales(model)
    elif set(features.names) <= set(given):
        default = {}
    else:
        default = {name: spread or 1.0 for name, spread in features.units.spread.items()}
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


NAMED = 6
"""Names that a sentence lists."""


def check_alignment(alignment: Alignment, resolved: Resolved) -> None:
    """Refuse an alignment that leaves the posterior: by its log density, else by what the draws show.

    Raises
    ------
    LeavesPosterior
        If the log density changes; or if nobody has checked the symmetry on a density, and quantities that it does not
        move change with the labels.
    """
    checked = alignment.density is not None and alignment.density.compared
    if checked or resolved.known or resolved.source == "found" or alignment.source.network:
        return
    view = alignment.source
    moved = {name for block in alignment.symmetry for name in block.variables}
    moved |= {*alignment.allocations}
    drawn = {n for n, v in view.arrays.items() if v.dtype.kind in "biuf" and "draw" in v.dims}
    names = [name for name in parameters_of(view) if name in drawn - moved]
    ours = sorted(drawn & moved)
    step = every_few(view, [*names, *ours])
    thin = tuple(on_arrays(part, lambda a: a[:, ::step]) for part in alignment.element)
    rows = [labels_of(part) for part in thin]
    labels = [numbered(each.reshape(*each.shape[:2], -1)) for each in rows if each.size]
    looked = looked_at(view, names, step)
    others = {n: np.where(np.isfinite(v), v, 0.0) for n, v in looked.items()}
    left = recorded_companions(view, moved) or followers(labels, others, sure=True)
    if others and not left and any(map(recurring, labels)):
        values = looked_at(view, ours, step)
        shapes = {name: value.shape[2:] for name, value in values.items()}
        aligned = Group(alignment.symmetry, shapes).act(thin, values)
        left = tuple(name for own in labels for name in tied(own, aligned, others))
    if left:
        raise LeavesPosterior(
            view.argument,
            spelt(alignment.symmetry),
            f"Alignment would leave what changes with the labels behind: {in_brief(left, NAMED)}.",
            advice(view),
        )
