"""Trained pairs of networks for the paper's Figures 2 and 3.

Losses are mean negative log likelihoods of the training images in nats. Distances are Euclidean over all weights and
biases. Alignment is by Git Re-Basin, on whole units without rescaling. Each network sees its batches in a different
order: in the same order, training would preserve a permutation exactly.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float, Int

from onebasin.analysis.alignment.barriers import (
    Barrier,
    Transpositions,
    barrier,
    match_weights,
    network_loss,
)
from onebasin.inference.training.ensemble import Ensemble, Train
from onebasin.inference.training.train import first_values, train
from onebasin.models import BayesianNetwork, NetworkTarget
from onebasin.models.symmetry.blocks import Exchangeable, Group, blocks_of
from onebasin.models.symmetry.elements import Permuted

from ..networks import tree_of
from .design import PairSettings, permutations_of

MAX_IMAGES = 5000  # Largest number of training images for losses; the first images are used.

Values = Mapping[str, np.ndarray]


def swapped(rng: np.random.Generator, size: int, num: int) -> Int[np.ndarray, " component"]:
    """Draw a permutation of exactly `num` < `size` transpositions, each of which joins two cycles."""
    permutation, cycle = np.arange(size), np.arange(size)
    for _ in range(num):
        first = rng.integers(size)
        second = rng.choice(np.flatnonzero(cycle != cycle[first]))
        permutation[[first, second]] = permutation[[second, first]]
        cycle[cycle == cycle[second]] = cycle[first]
    return permutation


def align_networks(
    model: BayesianNetwork, reference: Values, others: Values
) -> tuple[dict[str, np.ndarray], Transpositions]:
    """Align networks (network, ...) to a reference network, and count transpositions by layer (1, network)."""
    return match_weights(blocks_of(model.symmetry, Exchangeable), reference, others)


def as_draws(model: BayesianNetwork, networks: Values) -> xr.Dataset:
    """Return networks as the draws of one chain."""
    dims = model.network.dims
    return xr.Dataset({n: (("chain", "draw", *dims[n]), networks[n][None]) for n in dims})


def distances(reference: Values, others: Values) -> Float[np.ndarray, " network"]:
    """Compute the Euclidean distance of each network from a reference network, over all variables."""
    apart = [others[name] - reference[name] for name in others]
    return np.sqrt(sum(np.square(a).reshape(len(a), -1).sum(axis=1) for a in apart))


def train_dynamics(target: NetworkTarget, settings: PairSettings, seed: int) -> xr.DataTree:
    """Train two networks, and measure the loss between them after every epoch."""
    keys = np.random.SeedSequence(seed).generate_state(2)
    start = first_values(target, Ensemble(members=2), int(keys[0]))
    found = train(target, start, _training(settings), seed=int(keys[1]), record_every=1)
    raw, aligned = [], []
    for epoch in range(len(found.recorded_at)):
        first, second = (
            _take(found.checkpoints, (epoch, slice(place, place + 1))) for place in (0, 1)
        )
        moved, _ = align_networks(target.model, first, second)
        raw.append(_barrier(target, first, second, settings).loss[0])
        aligned.append(_barrier(target, first, moved, settings).loss[0])
    curves = {
        "loss_raw": (("epoch", "position"), np.stack(raw)),
        "loss_aligned": (("epoch", "position"), np.stack(aligned)),
        "position": ("position", np.linspace(0, 1, settings.points)),
        "epoch": ("epoch", found.recorded_at),
    }
    return _tree(target, found.values, "dynamics", curves)


def train_swaps(target: NetworkTarget, settings: PairSettings, seed: int) -> xr.DataTree:
    """Train pairs from initial weights that differ by a number of transpositions."""
    rng = np.random.default_rng(seed)
    start = first_values(target, Ensemble(members=settings.runs), int(rng.integers(2**31)))
    (units,) = target.model.network.hidden
    group = Group(permutations_of(target.model), target.model.network.shapes)
    moves = [[swapped(rng, units, num) for num in settings.swaps] for _ in range(settings.runs)]
    repeated = {n: np.repeat(v[:, None], len(settings.swaps), axis=1) for n, v in start.items()}
    twins = group.act((Permuted(np.asarray(moves)),), repeated)
    members = {
        n: np.concatenate([v[:, None], np.asarray(twins[n])], axis=1) for n, v in start.items()
    }
    flat = {n: v.reshape(-1, *v.shape[2:]) for n, v in members.items()}
    found = train(target, flat, _training(settings), seed=int(rng.integers(2**31)))
    values = {n: np.asarray(v).reshape(members[n].shape) for n, v in found.values.items()}
    runs = [_compare(target, _take(values, run), settings) for run in range(settings.runs)]
    columns = {name: [run[name] for run in runs] for name in runs[0]}
    swaps = {
        **{
            name: (("run", "position" if name == "between" else "swap"), np.stack(values))
            for name, values in columns.items()
        },
        "before": ("swap", np.asarray(settings.swaps)),
        "position": ("position", np.linspace(0, 1, settings.points)),
    }
    return _tree(target, found.values, "swaps", swaps)


def _compare(
    target: NetworkTarget, members: Values, settings: PairSettings
) -> dict[str, np.ndarray]:
    """Compare the permuted twins with the first network of a run, and align networks on the line to the last twin."""
    first, others = _take(members, slice(0, 1)), _take(members, slice(1, None))
    moved, needed = align_networks(target.model, first, others)
    count = needed.total[0]
    whole = {name: np.repeat(value, len(count), axis=0) for name, value in first.items()}
    line = np.linspace(0, 1, settings.points)
    between = {
        name: np.concatenate([(1 - t) * first[name] + t * others[name][-1:] for t in line])
        for name in first
    }
    return {
        "after": count.astype(np.float64),
        "distance_raw": distances(first, others),
        "distance_aligned": distances(first, moved),
        "barrier_raw": _barrier(target, whole, others, settings).height,
        "barrier_aligned": _barrier(target, whole, moved, settings).height,
        "between": align_networks(target.model, first, between)[1].total[0],
    }


def _training(settings: PairSettings) -> Train:
    shared = {n: getattr(settings, n) for n in ("epochs", "batch_size", "learning_rate")}
    return Train(objective="likelihood", **shared)


def _barrier(
    target: NetworkTarget, first: Values, second: Values, settings: PairSettings
) -> Barrier:
    loss = network_loss(target.model, target.x[:MAX_IMAGES], target.y[:MAX_IMAGES])
    return barrier(first, second, loss, num_points=settings.points)


def _take(values: Values, which: Any) -> Values:
    return {name: value[which] for name, value in values.items()}


def _tree(target: NetworkTarget, values: Any, name: str, variables: dict[str, Any]) -> xr.DataTree:
    arrays = {n: np.asarray(value) for n, value in values.items()}
    groups = {"posterior": as_draws(target.model, arrays), name: xr.Dataset(variables)}
    return tree_of(groups, {"model": target.model.describe(), "target": target.name})
