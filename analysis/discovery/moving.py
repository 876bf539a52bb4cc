"""Slots moved together on all draws by the elements of a sorting."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter

import numpy as np
from jaxtyping import Float

from .slots import Features, Lens, Permutations, Signs, Slot, Values
from .sorting import Mask, Sorting, sort_by

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
