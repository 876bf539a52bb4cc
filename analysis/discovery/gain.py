"""What sorting one slot gains: on the draws, and beside noise.

Convention: total V is the mean square of the features, before B their variance over the draws as they came, after A the
variance of the sorted draws. Three numbers decide: ``gain`` A / B, ``switching`` B / V (near 1 where labels change all the
time) and ``beside_noise`` (A / V) / (A0 / V0), A0 and V0 those of noise, the least of three.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .slots import Features
from .sorting import MANY, Mask, Sorting, best_sorting, noise_like

_NOISES = 3


@dataclass(frozen=True, eq=False)
class Gain:
    """A sorted slot.

    Attributes
    ----------
    sorting : Sorting
        The elements.
    gain, switching, beside_noise : float
        See above; NaN where the features do not vary.
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
    return Gain(
        sorting, left / before, before / total, left / total / noise_gain(features, signed, rng)
    )


def noise_gain(features: Features, signed: Mask, rng: np.random.Generator) -> float:
    """A0 / V0: what sorting leaves of noise."""
    left = []
    for _ in range(_NOISES if features.shape[1] <= MANY else 1):
        noise = noise_like(features, signed, rng)
        left.append(best_sorting(noise, signed, rng).spread / float(np.mean(noise**2)))
    return min(left)
