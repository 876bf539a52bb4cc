"""What sorting slots gains: on the draws, and beside noise.

Convention: total V is the mean square of the features, before B their variance over the draws as they came, after A the
variance of the sorted draws. Three numbers decide: ``gain`` A / B, ``switching`` B / V (near 1 where labels change all
the time) and ``beside_noise`` (A / V) / (A0 / V0), A0 and V0 those of noise.

Noise is sorted as well as it takes: once, where what the draws leave is clearly less; otherwise three times, of which
the least counts, as a local optimum would let noise look bad.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .slots import Features
from .sorting import MANY, Mask, Sorting, best_sorting, noise_like, quick_sorting

NOISES = 3
CLEAR = 0.35
"""Draws beside quickly sorted noise below which no better sorting of noise would change a decision."""


@dataclass(frozen=True, eq=False)
class Gain:
    """Sorted slots.

    Attributes
    ----------
    sorting : Sorting
        The elements.
    gain, switching, beside_noise : float
        See above.
    """

    sorting: Sorting
    gain: float
    switching: float
    beside_noise: float


def gain_of(features: Features, signed: Mask, rng: np.random.Generator, sorting: Sorting) -> Gain:
    """Measure what a sorting gains."""
    total = float(np.mean(features**2))
    before = float(features.var(axis=0).mean())
    left = sorting.spread
    beside = _beside_noise(left / total, features, signed, rng)
    return Gain(sorting, left / before, before / total, beside)


def gain_together(
    alone: Gain, features: Features, signed: Mask, rng: np.random.Generator, sorting: Sorting
) -> Gain:
    """Measure what a seed and what moves along gain: the lesser ratios, as slots that barely differ dilute them.

    What the seed alone leaves beside noise is enough to know where it is clear.
    """
    if alone.beside_noise < CLEAR:
        left = sorting.spread / float(features.var(axis=0).mean())
        return replace(alone, sorting=sorting, gain=min(left, alone.gain))
    joint = gain_of(features, signed, rng, sorting)
    return Gain(
        sorting,
        min(joint.gain, alone.gain),
        alone.switching,
        min(joint.beside_noise, alone.beside_noise),
    )


def _beside_noise(left: float, features: Features, signed: Mask, rng: np.random.Generator) -> float:
    noise = noise_like(features, signed, rng)
    beside = left / _left_of(noise, quick_sorting(noise, signed))
    if beside < CLEAR:
        return beside
    noises = [noise]
    if features.shape[1] <= MANY:
        noises += [noise_like(features, signed, rng) for _ in range(NOISES - 1)]
    return left / min(_left_of(each, best_sorting(each, signed, rng)) for each in noises)


def _left_of(noise: Features, sorting: Sorting) -> float:
    """A0 / V0."""
    return sorting.spread / float(np.mean(noise**2))
