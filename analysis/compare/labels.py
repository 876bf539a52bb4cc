"""One posterior's entries under another's names: what a file calls its axes and labels is no part of the model.

A CSV numbers entries from 0 and an engine from 1, where a model with named coordinates says `mu[a]`: entries of equal
shapes correspond by place. Only where an axis has the same labels in another order do they correspond by label.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from onebasin.posteriors import schema
from onebasin.posteriors.draws import entry_names
from onebasin.posteriors.view import View, as_view


def labelled_as(view: View, other: View, names: Sequence[str]) -> View:
    """Give variables of a posterior the axes and labels that they have in another one.

    Returns
    -------
    View
        One that holds these variables alone; the posterior itself where its entries have these names already, and
        where variables are missing or of other shapes, which is for the comparison to refuse.
    """
    shapes = [(_shape(view, name), _shape(other, name)) for name in names]
    if any(own is None or own != theirs for own, theirs in shapes):
        return view
    pairs = {name: (view.posterior[name], other.posterior[name]) for name in names}
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
        if own in variable.coords and theirs in like.coords:
            order = _order(variable.coords[own].values, like.coords[theirs].values)
            variable = variable if order is None else variable.isel({own: order})
    bare = variable.drop_vars([c for c in variable.coords if c not in schema.SAMPLE_DIMS])
    labels = {dim: like.coords[dim].values for dim in axes.values() if dim in like.coords}
    return bare.rename(axes).assign_coords(labels)


def _order(labels: np.ndarray, wanted: np.ndarray) -> list[int] | None:
    """Places of the wanted labels; None where they are others, or in order already."""
    place = {label: number for number, label in enumerate(labels.tolist())}
    if len(place) < len(labels) or set(place) != set(wanted.tolist()):
        return None
    order = [place[label] for label in wanted.tolist()]
    return None if order == sorted(order) else order


def _shape(view: View, name: str) -> tuple[int, ...] | None:
    if name not in view.variables:
        return None
    variable = view.posterior[name]
    return tuple(variable.sizes[dim] for dim in _axes(variable))


def _axes(variable: xr.DataArray) -> list[str]:
    return [str(dim) for dim in variable.dims if dim not in schema.SAMPLE_DIMS]
