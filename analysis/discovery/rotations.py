"""Components that turn into one another by continuous rotations, as factors that nothing identifies do.

No order and no signs sort such draws; rotations do (Procrustes: Gower 1975, Psychometrika 40). A rotation brings any
draws closer than an order with signs does, and by how much is known from Gaussian draws with the moments of the sorted
ones: only where rotations gain far more than on those, components turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from onebasin.models.symmetry.varimax import nearest_rotation

from .slots import Features, Slot, Values
from .sorting import Gain, best_sorting, noise_like, spread

MOST = 12
"""Components that are turned at most."""
FAR_MORE = 0.5
"""Variance left by rotations, relative to that of draws that do not turn, below which components turn."""
BESIDE_NOISE = 0.6
"""Variance left by rotations, relative to that of noise, below which they do more than turn noise."""

_ENTRIES = 48
_ROUNDS = 12

Rotations = Float[np.ndarray, "draw component component"]


@dataclass(frozen=True, eq=False)
class Turning:
    """Signed slots of one size that turn together."""

    slots: tuple[Slot, ...]
    mean: Float[np.ndarray, "component entry"]  # of all slots side by side, once turned
    gain: Gain  # by rotations; its sorting is the best order and signs, which leave much more

    def move(self, values: Values) -> dict[str, np.ndarray]:
        """All draws, turned."""
        moved = {slot.name: np.empty_like(values[slot.name]) for slot in self.slots}
        for chain in range(len(values[self.slots[0].name])):
            draws = {slot.name: values[slot.name][chain] for slot in self.slots}
            turns = _towards(_entries(self.slots, draws), self.mean)
            for slot in self.slots:
                moved[slot.name][chain] = turn(slot, draws[slot.name], turns)
        return moved


def find_turning(
    slots: Sequence[Slot],
    searched: Mapping[str, Float[np.ndarray, "draw ..."]],
    rng: np.random.Generator,
    *,
    some_bad: bool,
) -> list[Turning]:
    """Find free slots that turn, together with those that turn with them, by the searched draws (draw, *event).

    Where R-hat is not bad anywhere (`some_bad`), only what turns all the time can be seen.
    """
    able = [
        slot
        for slot in slots
        if slot.signed and len(slot.axes) == 1 and slot.size <= MOST
        if searched[slot.name][0].size // slot.size >= slot.size
    ]
    found: list[Turning] = []
    for slot in able:
        if any(slot.name == other.name for each in found for other in each.slots):
            continue
        features = _entries((slot,), searched)
        if not some_bad and spread(features) < 0.9 * np.mean(features**2):
            continue
        if (each := _turning(slot, features, able, searched, rng)) is not None:
            found.append(each)
    return found


def _turning(
    slot: Slot,
    features: Features,
    able: Sequence[Slot],
    searched: Mapping[str, np.ndarray],
    rng: np.random.Generator,
) -> Turning | None:
    signed = np.ones(features.shape[2], bool)
    total, before = float(np.mean(features**2)), spread(features)
    turned, turns = procrustes(features)
    left = spread(turned)
    noise = procrustes(noise_like(features, signed, rng))[0]
    beside = left / total / (spread(noise) / float(np.mean(noise**2)))
    if beside >= BESIDE_NOISE:
        return None
    sorting = best_sorting(features, signed, rng)
    like = sorting.mean + np.sqrt(sorting.variance) * rng.standard_normal(features.shape)
    expected = spread(procrustes(like)[0]) / spread(like)
    if left / sorting.spread >= FAR_MORE * expected:
        return None
    along: dict[str, Slot] = {}
    for other in able:
        if other.name != slot.name and other.size == slot.size:
            value = searched[other.name]
            if spread(turn(other, value, turns)) < 0.95 * spread(value):
                along[other.name] = other
    together = (slot, *along.values())
    joint = procrustes(_entries(together, searched))[0]
    gain = Gain(sorting, left / before, before / total, beside)
    return Turning(together, joint.mean(axis=0), gain)


def procrustes(features: Features) -> tuple[Features, Rotations]:
    """Turn every draw to the mean of all, until the mean rests; the first draw stays about where it is."""
    mean = features[0]
    for _ in range(_ROUNDS):
        turns = _towards(features, mean)
        turned = turns @ features
        mean = turned.mean(axis=0)
    return turned, turns


def _towards(features: Features, mean: Float[np.ndarray, "component entry"]) -> Rotations:
    return nearest_rotation(mean @ np.swapaxes(features, 1, 2))


def turn(
    slot: Slot, values: Float[np.ndarray, "draw ..."], turns: Rotations
) -> Float[np.ndarray, "draw ..."]:
    """Turn the components of a slot."""
    front = np.moveaxis(values, slot.axes[0] + 1, 1)
    turned = (turns @ front.reshape(*front.shape[:2], -1)).reshape(front.shape)
    return np.moveaxis(turned, 1, slot.axes[0] + 1)


def _entries(slots: Sequence[Slot], draws: Mapping[str, np.ndarray]) -> Features:
    """Some entries of each component, of all slots side by side."""
    every = (slot.raw(draws[slot.name]) for slot in slots)
    return np.concatenate([raw[..., :: -(-raw.shape[2] // _ENTRIES)] for raw in every], axis=2)
