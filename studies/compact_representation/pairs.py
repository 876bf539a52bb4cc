"""Trained pairs of networks for the paper's Figures 2 and 3.

Losses are mean negative log likelihoods of the training images in nats. Distances are Euclidean over all weights and
biases. Alignment is by Git Re-Basin, on whole units without rescaling. Each network sees its batches in a different
order: in the same order, training would preserve a permutation exactly.
"""

from typing import Any

import numpy as np
import xarray as xr

from onebasin.analysis.alignment import barriers
from onebasin.analysis.alignment.barriers import Barrier, barrier
from onebasin.inference.training.ensemble import Ensemble, Train
from onebasin.inference.training.train import first_values, train
from onebasin.models import NetworkTarget
from onebasin.models.symmetry.elements import Permuted
from onebasin.models.symmetry.group import Group

from ..networks import tree_of
from .design import PairSettings, permutations_of

MAX_IMAGES = 5000  # Largest number of training images for losses; the first images are used.

Values = dict[str, np.ndarray]


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
        moved, _ = barriers.align_networks(target.model, first, second)
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
    moves = [
        [barriers.swapped(rng, units, num) for num in settings.swaps] for _ in range(settings.runs)
    ]
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
    moved, needed = barriers.align_networks(target.model, first, others)
    count = needed.total[0]
    whole = {name: np.repeat(value, len(count), axis=0) for name, value in first.items()}
    line = np.linspace(0, 1, settings.points)
    between = {
        name: np.concatenate([(1 - t) * first[name] + t * others[name][-1:] for t in line])
        for name in first
    }
    return {
        "after": count.astype(np.float64),
        "distance_raw": barriers.distances(first, others),
        "distance_aligned": barriers.distances(first, moved),
        "barrier_raw": _barrier(target, whole, others, settings).height,
        "barrier_aligned": _barrier(target, whole, moved, settings).height,
        "between": barriers.align_networks(target.model, first, between)[1].total[0],
    }


def _training(settings: PairSettings) -> Train:
    shared = {n: getattr(settings, n) for n in ("epochs", "batch_size", "learning_rate")}
    return Train(objective="likelihood", **shared)


def _barrier(
    target: NetworkTarget, first: Values, second: Values, settings: PairSettings
) -> Barrier:
    loss = barriers.network_loss(target.model, target.x[:MAX_IMAGES], target.y[:MAX_IMAGES])
    return barrier(first, second, loss, num_points=settings.points)


def _take(values: Values, which: Any) -> Values:
    return {name: value[which] for name, value in values.items()}


def _tree(target: NetworkTarget, values: Any, name: str, variables: dict[str, Any]) -> xr.DataTree:
    arrays = {n: np.asarray(value) for n, value in values.items()}
    groups = {"posterior": barriers.as_draws(target.model, arrays), name: xr.Dataset(variables)}
    return tree_of(groups, {"model": target.model.describe(), "target": target.name})
