"""Slots with as many components, all tried together on the elements of one seed.

An element moves components and changes signs, so that it leaves the mean square of a slot's features over draws and
components. Its variance after it follows from the means of the moved features alone: one matrix product for all slots.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from jaxtyping import Float

from .slots import Features, Lens
from .sorting import Sorting, spread

_STEADY = 1e-3
"""Variance over mean square of features below which single precision does not give what is left."""
_ROUNDING = 0.01
"""Error of a ratio in single precision, at most."""


class Alike:
    """Features of slots with as many components, side by side in single precision.

    That is enough to tell which come nowhere near a ratio.
    """

    def __init__(self, lenses: Sequence[Lens], features_of: Callable[[Lens], Features]) -> None:
        self.lenses = lenses
        self._square, self._before = np.zeros(len(lenses)), np.zeros(len(lenses))
        known: dict[bool, tuple[list[int], list[np.ndarray]]] = {}
        for place, lens in enumerate(lenses):
            if len(lens.slot.axes) == 2:
                continue  # whose features are no rows of components
            features = features_of(lens)
            self._square[place], self._before[place] = np.mean(features**2), spread(features)
            places, single = known.setdefault(lens.slot.signed, ([], []))
            places.append(place)
            single.append(features.astype(np.float32))
        self._parts = {
            signed: (np.array(places), [f.shape[2] for f in single], np.concatenate(single, axis=2))
            for signed, (places, single) in known.items()
        }

    def near(self, sorting: Sorting, ratio: float) -> Iterator[Lens]:
        """Give the slots, in their order, whose variance after elements may be less than a ratio of that before."""
        kept = self._before <= _STEADY * self._square
        kept |= self.ratios(sorting) < ratio + _ROUNDING
        return (self.lenses[place] for place in np.flatnonzero(kept).tolist())

    def ratios(self, sorting: Sorting) -> Float[np.ndarray, " lens"]:
        """Give the variance after elements over that before of each slot, about; NaN for both axes of a square."""
        draws, size = sorting.permutation.shape
        after = self._square.copy()
        for signed, (places, widths, features) in self._parts.items():
            weights = np.zeros((size, draws, size), np.float32)
            signs = sorting.signs.T if signed else 1.0
            at = (np.arange(size)[:, None], np.arange(draws), sorting.permutation.T)
            weights[at] = signs / draws
            means = weights.reshape(size, -1) @ features.reshape(draws * size, -1)
            sums = np.add.reduceat(np.square(means).mean(axis=0), np.cumsum([0, *widths[:-1]]))
            after[places] -= sums / widths
        with np.errstate(divide="ignore", invalid="ignore"):  # of what does not vary
            return np.asarray(after / self._before)
