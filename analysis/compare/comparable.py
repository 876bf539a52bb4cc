"""Which posteriors and which of their variables can be compared, and one posterior's entries under another's names.

A CSV numbers entries from 0 and an engine from 1, where a model with named coordinates says `mu[a]`: entries of equal
shapes correspond by place. Only where an axis has the same labels in another order do they correspond by label.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from onebasin.base.errors import ArgumentError
from onebasin.models.symmetry.blocks import Symmetry
from onebasin.posteriors import schema
from onebasin.posteriors.draws import checked, entry_names
from onebasin.posteriors.view import View, as_view

from ..discovery.discover import discover
from ..discovery.partial import companions
from ..discovery.proposals import bad_entries
from ..summaries.common_draws import draw_keys, in_common
from ..summaries.deciding import KEPT, deciding, looked_at

if TYPE_CHECKING:
    from onebasin.models.networks.bayesian import BayesianNetwork


def check_comparable(views: Mapping[str, View], truth: str) -> None:
    """Refuse posteriors of another network, or of other data, than the truth's; priors may differ."""
    for view in views.values():
        _ = view.posterior  # it says what is wrong with a tree that holds no draws
    ours = _facts(views[truth].network)
    for name, view in views.items():
        theirs = _facts(view.network)
        unlike = [fact for fact in ours | theirs if ours.get(fact) != theirs.get(fact)]
        if unlike:
            fact = unlike[0]
            raise ArgumentError(
                f"`posteriors` hold `{name}` with {fact} {theirs.get(fact) or 'none'}, and `{truth}` with {fact} "
                f"{ours.get(fact) or 'none'}: give posteriors of the same network."
            )
        _check_data(name, view, truth, views[truth])


@dataclass(frozen=True)
class Shared:
    """Variables that are compared, and those that are not."""

    names: tuple[str, ...]  # Those that every posterior has, with the same shape of one draw.
    only_in: Mapping[str, str]
    """Variables that some posterior lacks or has with another shape, and a posterior that has them."""
    with_labels: tuple[str, ...]
    """Variables that may carry labels of components and that the symmetry does not move: their means depend on the
    labelling that a chain happened to take."""


def shared_variables(views: Mapping[str, View], symmetry: Symmetry) -> Shared:
    """Find the variables that posteriors without a network can be compared on, the reference first.

    A sampled parameter that a symmetry leaves in place has no labels. A quantity computed from parameters may have
    some. It is compared if no symmetry is used, or if a check of the symmetry on the log density found it unchanged.
    """
    for view in views.values():
        for variable in view.variables:
            checked(view.arrays[variable], view.argument)
    shapes = {name: {v: shape_of(view, v) for v in view.variables} for name, view in views.items()}
    only_in: dict[str, str] = {}
    for name, own in shapes.items():
        for variable, shape in own.items():
            if any(other.get(variable) != shape for other in shapes.values()):
                only_in.setdefault(variable, name)
    first, reference = next(iter(views.items()))
    names = [variable for variable in shapes[first] if variable not in only_in]
    if not names:
        held = "; ".join(f"`{name}` has {', '.join(own)}" for name, own in shapes.items())
        raise ArgumentError(f"`posteriors` share no variable of the same shape: {held}.")
    moved = {variable for block in symmetry for variable in block.variables}
    carriers: set[str] = set()
    if moved:  # the computed quantities that no check found to be the same under every labelling
        computed = {*reference.kinds.named("transformed", "generated")}
        evidence = reference.symmetry_evidence
        if evidence is None or evidence.skipped or not (evidence.points or evidence.draws):
            carriers = computed - {*(evidence.derived if evidence else ())}
        else:
            carriers = computed & {*evidence.left_behind, *evidence.random}
    with_labels = tuple(v for v in names if v in carriers and v not in moved)
    kept = tuple(v for v in names if v not in with_labels)
    if not kept:
        raise ArgumentError(
            f"`posteriors` share only {', '.join(names)}, which may carry labels that the symmetry does not move: "
            "choose them with `var_names` to compare them as they are."
        )
    return Shared(kept, only_in, with_labels)


def share_draws(view: View, other: View) -> bool:
    """Tell whether a chain of one posterior has many draws of a chain of another, in the variables of both."""
    names = [name for name in view.variables if shape_of(other, name) == shape_of(view, name)]
    keys = [draw_keys(looked_at(each, names).values()) for each in (view, other)]
    return any(in_common(a, b) for a, b in product(*keys))


def labels_between(view: View, other: View, names: Sequence[str]) -> tuple[str, ...]:
    """Find words of a symmetry in the chains of either posterior, or of both; empty where they show none.

    What both show together has to bring all of their chains together: what else differs may move along.
    """
    real = deciding(view, names)[0]
    drawn = [looked_at(each, real) for each in (view, other)]
    count = min(KEPT, *(v.shape[1] for own in drawn for v in own.values()))
    # One power of two for all draws, which changes none of their digits: squares of 1e300 are no doubles.
    largest = max((np.abs(v).max(initial=0.0) for own in drawn for v in own.values()), default=0.0)
    power = -int(np.frexp(largest)[1])
    either = [{name: np.ldexp(v[:, :count], power) for name, v in own.items()} for own in drawn]
    both = {name: np.concatenate([own[name] for own in either]) for name in real}
    for values in (both, *either):
        found = [each for each in discover(values) if each.certain]
        moved = {name for each in found for name in each.values}
        others = (v for n, v in both.items() if n not in moved)
        apart = values is both and any(bad_entries(v).any() for v in others)
        if not found or not (apart or companions(found, values)):
            return tuple(each.word for each in found)
    return ()


def unlike_weights(model: BayesianNetwork, other: BayesianNetwork) -> str:
    """Tell why the weights of two networks cannot be compared; empty where they can."""
    ours, theirs = model.parametrisation.label, other.parametrisation.label
    if ours != theirs:
        return f"parametrised `{theirs}`, not `{ours}`"
    if model.predicts_noise != other.predicts_noise:
        return "of a network that " + (
            "predicts its noise" if other.predicts_noise else "does not predict its noise"
        )
    return ""


def _facts(model: BayesianNetwork | None) -> dict[str, object]:
    """Return the facts that must be the same: architecture and kind of likelihood."""
    if model is None:
        return {"network": None}
    network = asdict(model.network)
    # Noise may be predicted by one and not by another: their predictions are compared.
    del network["heads"]
    return {"likelihood": type(model.likelihood).__name__} | network


def _check_data(name: str, view: View, truth: str, other: View) -> None:
    """Refuse other data.

    Networks' data are all alike; what other programs call their data, and which constants they take, such as the scale
    of a prior, is their own, so that of those the observed data of one name are compared.
    """
    network = other.network is not None
    for group in schema.DATA_GROUPS if network else (schema.OBSERVED_DATA,):
        ours, theirs = view.group(group), other.group(group)
        if ours is None or theirs is None:
            continue
        names = [sorted(map(str, data.data_vars)) for data in (ours, theirs)]
        if not network:
            names = [sorted({*names[0]} & {*names[1]})] * 2
        if names[0] != names[1]:
            raise ArgumentError(
                f"`posteriors` hold `{name}` fitted to data named {', '.join(names[0])}, and `{truth}` to "
                f"{', '.join(names[1])}: give posteriors of the same data."
            )
        for variable in names[0]:
            if not _equal(ours[variable].values, theirs[variable].values):
                raise ArgumentError(
                    f"`posteriors` hold `{name}` fitted to other values of {variable} than `{truth}`: "
                    "give posteriors of the same data."
                )


def _equal(a: np.ndarray, b: np.ndarray) -> bool:
    """Tell whether arrays are the same, up to single precision of each entry and of the largest one."""
    if a.shape != b.shape:
        return False
    if not {a.dtype.kind, b.dtype.kind} <= set("biuf"):
        return bool(np.array_equal(a, b))
    largest = float(np.max(np.abs(a), initial=0.0, where=np.isfinite(a)))
    return np.allclose(a, b, rtol=1e-6, atol=1e-7 * largest, equal_nan=True)


def labelled_as(view: View, other: View, names: Sequence[str]) -> View:
    """Give variables of a posterior the axes and labels that they have in another one.

    The view holds these variables alone. It is the posterior itself where its entries have these names already, and
    where variables are missing or of other shapes, which is for the comparison to refuse.
    """
    shapes = [(shape_of(view, name), shape_of(other, name)) for name in names]
    if any(own is None or own != theirs for own, theirs in shapes):
        return view
    pairs = {name: (view.arrays[name], other.arrays[name]) for name in names}
    if all(tuple(entry_names(own)) == tuple(entry_names(like)) for own, like in pairs.values()):
        return view
    tree = view.tree.copy()
    tree[schema.POSTERIOR] = xr.DataTree(
        xr.Dataset({name: _labelled(*pair) for name, pair in pairs.items()})
    )
    return as_view(tree, view.argument)


def _labelled(variable: xr.DataArray, like: xr.DataArray) -> xr.DataArray:
    axes = dict(zip(_axes(variable), _axes(like), strict=True))
    for own, theirs in axes.items():
        if own in variable.indexes and theirs in like.indexes:
            labels, wanted = variable.indexes[own], like.indexes[theirs]
            if labels.is_unique and {*labels} == {*wanted}:
                variable = variable.sel({own: wanted})
    bare = variable.drop_vars([c for c in variable.coords if c not in schema.SAMPLE_DIMS])
    coords = {dim: like.coords[dim].values for dim in axes.values() if dim in like.coords}
    return bare.rename(axes).assign_coords(coords)


def shape_of(view: View, name: str) -> tuple[int, ...] | None:
    """Give the shape of a variable in one draw; None where the posterior lacks it."""
    if name not in view.variables:
        return None
    variable = view.arrays[name]
    return tuple(variable.sizes[dim] for dim in _axes(variable))


def _axes(variable: xr.DataArray) -> list[str]:
    return [str(dim) for dim in variable.dims if dim not in schema.SAMPLE_DIMS]
