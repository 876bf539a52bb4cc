"""Slots moved together on all draws by the elements of a sorting, and slots with as many components tried together.

An element moves components and changes signs, so that it leaves the mean square of a slot's features over draws and
components. Its variance after it follows from the means of the moved features alone: one matrix product for all slots.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter

import numpy as np
from jaxtyping import Float

from .slots import Features, Lens, Permutations, Signs, Slot, Values
from .sorting import Mask, Sorting, sort_by, spread

COMES_A_LITTLE_CLOSER = 0.99
"""The same as `COMES_CLOSER` for all draws, once the elements are known."""

Elements = Sequence[tuple[Permutations, Signs]]
"""The element of every draw, chain by chain."""


def elements_of(lenses: Sequence[Lens], sorting: Sorting, values: Values) -> Elements:
    """Find the likeliest element of every draw."""
    mask = mask_of(lenses)
    names = [lens.slot.name for lens in lenses]
    elements = []
    for chain in range(len(values[names[0]])):
        features = joined(lenses, {name: values[name][chain] for name in names})
        elements.append(sort_by(features, mask, sorting.mean, sorting.variance))
    return elements


def closer(
    moving: Sequence[Slot], others: Iterable[Slot], values: Values, elements: Elements
) -> Iterator[Slot]:
    """Slots of other variables that come a little closer on all draws; tuples and mirrored ones the closest first."""
    seed, names = moving[0], {name for slot in moving for name in slot.names}
    tied: list[tuple[float, Slot]] = []
    for slot in others:
        signs_fit = seed.signed or not slot.signed
        if slot.size != seed.size or names & {*slot.names} or not signs_fit:
            continue
        value = values[slot.name]
        ratio = _spread_of_all(moved_values(slot, value, elements)) / _spread_of_all(value)
        if ratio < COMES_A_LITTLE_CLOSER and (slot.members or slot.mirrors):
            tied.append((ratio, slot))
        elif ratio < COMES_A_LITTLE_CLOSER:
            names |= {*slot.names}
            yield slot
    for _, slot in sorted(tied, key=itemgetter(0)):
        if not names & {*slot.names}:
            names |= {*slot.names}
            yield slot


def moved_values(
    slot: Slot, values: Float[np.ndarray, "chain draw *event"], elements: Elements
) -> Float[np.ndarray, "chain draw *event"]:
    """A variable moved by elements."""
    return np.stack([slot.moved(v, *e) for v, e in zip(values, elements, strict=True)])


def joined(lenses: Sequence[Lens], values: Mapping[str, Float[np.ndarray, "draw ..."]]) -> Features:
    """The features of slots side by side."""
    return np.concatenate([lens(values[lens.slot.name]) for lens in lenses], axis=2)


def mask_of(lenses: Sequence[Lens]) -> Mask:
    """Which of their features change sign."""
    return np.concatenate([np.full(lens.matrix.shape[1], lens.slot.signed) for lens in lenses])


def flat(values: Float[np.ndarray, "chain draw *event"]) -> Float[np.ndarray, "chain draw param"]:
    """Entries of a variable side by side."""
    return values.reshape(*values.shape[:2], -1)


def _spread_of_all(values: np.ndarray) -> float:
    return float(values.var(axis=(0, 1)).mean())


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
