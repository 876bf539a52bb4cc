"""Which posteriors may stand beside each other: of one network or of none, and of the same data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np

from onebasin.posteriors import schema
from onebasin.posteriors.view import View

from ..predictive.points import Points

if TYPE_CHECKING:
    from onebasin.models.networks.bayesian import BayesianNetwork


def check_comparable(views: Mapping[str, View], truth: str) -> None:
    """Refuse posteriors of another network, or of other data, than the truth's.

    Parametrisations and priors may differ.

    Raises
    ------
    ValueError
        If networks or likelihoods differ, only some are of a network, or data differ that both keep.
    """
    for view in views.values():
        _ = view.posterior  # it says what is wrong with a tree that holds no draws
    ours = _facts(views[truth].network)
    for name, view in views.items():
        theirs = _facts(view.network)
        unlike = [fact for fact in ours | theirs if ours.get(fact) != theirs.get(fact)]
        if unlike:
            fact = unlike[0]
            raise ValueError(
                f"`posteriors` hold `{name}` with {fact} {theirs.get(fact) or 'none'}, and `{truth}` with {fact} "
                f"{ours.get(fact) or 'none'}: give posteriors of the same network."
            )
        _check_data(name, view, truth, views[truth])


def stored_points(view: View, model: BayesianNetwork, name: str) -> Points:
    """Return the data that a network's posterior was fitted to and keeps.

    Raises
    ------
    ValueError
        If it keeps no inputs.
    """
    if view.x is None:
        raise ValueError(
            f"`x` is not given, and `{name}` keeps no inputs in the group `constant_data`: give "
            "points to predict at."
        )
    return Points.of(model, view.x, view.y)


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
    """What must be the same: architecture and kind of likelihood."""
    if model is None:
        return {"network": None}
    network = asdict(model.network)
    del network[
        "heads"
    ]  # noise may be predicted by one and not by another: their predictions are compared
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
            raise ValueError(
                f"`posteriors` hold `{name}` fitted to data named {', '.join(names[0])}, and `{truth}` to "
                f"{', '.join(names[1])}: give posteriors of the same data."
            )
        for variable in names[0]:
            if not _equal(ours[variable].values, theirs[variable].values):
                raise ValueError(
                    f"`posteriors` hold `{name}` fitted to other values of {variable} than `{truth}`: "
                    "give posteriors of the same data."
                )


def _equal(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether arrays are the same, up to what single precision keeps of them and of the largest entry."""
    if a.shape != b.shape:
        return False
    if not {a.dtype.kind, b.dtype.kind} <= set("biuf"):
        return bool(np.array_equal(a, b))
    largest = float(np.max(np.abs(a), initial=0.0, where=np.isfinite(a)))
    return np.allclose(a, b, rtol=1e-6, atol=1e-7 * largest, equal_nan=True)
