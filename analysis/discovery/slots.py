"""Places of interchangeable components in draws: an axis of a variable, both axes of a square, a whole variable.

Draws of a variable are (draw, *event). The features of a slot (draw, component, feature) are entries divided by their
root mean square, reduced to at most `DIRECTIONS` leading directions. If no sign changes, the mean over components is
subtracted in each draw, because a common level is not a label.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from jaxtyping import Float, Int, Num

from onebasin.models.symmetry.elements import complement, negate, scale, take

DIRECTIONS = 8
"""Maximum number of features of a slot; further features contain mostly a common level."""
MOST = 64
"""Maximum number of components of a slot."""
FEW_PARTS, EVENLY, TWO_SIDED = 16, 0.2, 0.2
"""Maximum number of components for a search of exchanged pairs, and limits on the difference of such a pair, relative
to its mean square: on the squared mean, and on the variance of the absolute value (0.36 for a Gaussian)."""
_ROWS = 600
"""Approximate number of draws of components from which directions are found."""

Values = Mapping[str, Float[np.ndarray, "chain draw ..."]]
Features = Float[np.ndarray, "draw component feature"]
Permutations = Int[np.ndarray, "draw component"]
Signs = Float[np.ndarray, "draw component"]
Labels = Int[np.ndarray, "chain draw"]
"""Numbers of the draws' labellings."""


def numbered(rows: Num[np.ndarray, "chain draw what"]) -> Labels:
    """Number the labellings that rows of whole numbers describe, by hashes of the rows."""
    weights = np.random.default_rng(0).integers(1, 2**62, size=rows.shape[-1])
    sums = (rows.astype(np.int64) * weights).sum(axis=-1)
    return np.unique(sums, return_inverse=True)[1].reshape(rows.shape[:2])


def of_chains(labels: Labels) -> tuple[Int[np.ndarray, " chain"], bool]:
    """Return the most frequent labelling of every chain, and whether nearly all draws have it."""
    of_chain = np.array([np.bincount(row).argmax() for row in labels])
    return of_chain, bool(np.mean(labels == of_chain[:, None]) > 0.95)


@dataclass(frozen=True)
class Slot:
    """The place of a variable's components: one axis, both axes of a square, or none for a whole variable."""

    name: str
    axes: tuple[int, ...]
    size: int  # Number of components.
    signed: bool = False  # Components may change sign.
    complement: bool = False  # Theta becomes 1 - theta as two components change places.
    reflected: bool = False  # The sign changes as two components change places.
    members: tuple[str, ...] = ()  # Parameters along the only axis, one per component.

    @property
    def mirrors(self) -> bool:
        """Check whether a whole variable changes as two components change places."""
        return self.complement or self.reflected

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return tuple(text.removeprefix("1-") for text in self.members) or (self.name,)

    @property
    def places(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Names and axes of the parameters."""
        return tuple((name, () if self.members else self.axes) for name in self.names)

    def raw(self, values: Float[np.ndarray, "draw ..."]) -> Features:
        """Return the entries of each component side by side; without signs, subtract their common level."""
        values = np.asarray(values, np.float64)
        raw = self._by_component(values)
        return raw if self.signed else raw - raw.mean(axis=1, keepdims=True)

    def moved(
        self, values: Float[np.ndarray, "draw ..."], permutation: Permutations, signs: Signs
    ) -> Float[np.ndarray, "draw ..."]:
        """Replace component i of draws by `signs[i]` times component `permutation[i]`."""
        if self.complement:
            return complement(values, permutation[:, 0] == 1)
        if self.reflected:
            return negate(values, permutation[:, 0] == 1)
        if not self.axes:
            return negate(values, signs[:, 0] < 0)
        for axis in self.axes:
            values = take(values, permutation, axis)
            if self.signed:
                values = scale(values, signs, axis)
        return values

    def _by_component(self, values: np.ndarray) -> Features:
        if self.mirrors:
            flat = values.reshape(len(values), 1, -1)
            return np.concatenate([flat, 1 - flat if self.complement else -flat], axis=1)
        if not self.axes:
            return values.reshape(len(values), 1, -1)
        if len(self.axes) == 2:
            # The diagonal entry, the sorted row and the sorted column are invariant.
            shape = (len(values), self.size, self.size - 1)
            off = ~np.eye(self.size, dtype=bool)
            rows = np.sort(values[:, off].reshape(shape), axis=2)
            columns = np.sort(values.swapaxes(1, 2)[:, off].reshape(shape), axis=2)
            diagonal = values[:, np.arange(self.size), np.arange(self.size)]
            return np.concatenate([diagonal[..., None], rows, columns], axis=2)
        front = np.moveaxis(values, self.axes[0] + 1, 1)
        return front.reshape(len(values), self.size, -1)


@dataclass(frozen=True, eq=False)
class Lens:
    """The units and directions of a slot's features."""

    slot: Slot
    matrix: Float[np.ndarray, "entry feature"]  # Without columns if nothing varies.

    @classmethod
    def of(cls, slot: Slot, values: Float[np.ndarray, "draw ..."]) -> Lens:
        """Find units and directions from some draws."""
        raw = slot.raw(values)
        scale = np.sqrt(np.mean(raw**2, axis=(0, 1)))
        kept = scale > 1e-12 * float(scale.max(initial=0.0))
        unit = 1 / scale[kept]
        if len(unit) <= DIRECTIONS:
            return cls(slot, np.diag(1 / np.where(kept, scale, 1.0))[:, kept])
        flat = (raw[..., kept] * unit).reshape(-1, len(unit))
        flat = flat[:: max(1, len(flat) // _ROWS)]
        if flat.shape[1] <= len(flat):
            directions = np.linalg.eigh(flat.T @ flat)[1][:, -DIRECTIONS:]
        else:
            squares, left = np.linalg.eigh(flat @ flat.T)
            size = np.sqrt(np.maximum(squares[-DIRECTIONS:], 1e-12 * squares[-1]))
            directions = flat.T @ left[:, -DIRECTIONS:] / size
        matrix = np.zeros((len(scale), directions.shape[1]))
        matrix[kept] = unit[:, None] * directions
        return cls(slot, matrix)

    def __call__(self, values: Float[np.ndarray, "draw ..."]) -> Features:
        """Return the features of draws."""
        return self.slot.raw(values) @ self.matrix


def slots(values: Mapping[str, Float[np.ndarray, "draw ..."]]) -> Iterator[Slot]:
    """Yield every axis of 2 to `MOST` components, both axes of squares, and whole variables.

    Slots with signs belong to variables with both signs.
    """
    for name, drawn in values.items():
        shape = drawn.shape[1:]
        both_signs = drawn.size and drawn.min() < 0 < drawn.max()
        for axis, size in enumerate(shape):
            if 2 <= size <= MOST:
                yield Slot(name, (axis,), size)
                if both_signs:
                    yield Slot(name, (axis,), size, signed=True)
        if len(shape) == 2 and shape[0] == shape[1] and 2 <= shape[0] <= MOST:
            yield Slot(name, (0, 1), shape[0])
        if both_signs:
            yield Slot(name, (), 1, signed=True)


def exchanging(
    values: Mapping[str, Float[np.ndarray, "draw ..."]],
) -> Iterator[tuple[int, Int[np.ndarray, " place"]]]:
    """Find numbers of components, and groups of components that change places while others do not.

    Two such components differ equally often in both directions, and hardly ever by little.
    """
    pairs: dict[int, np.ndarray] = {}
    for slot in slots(values):
        if slot.signed or len(slot.axes) != 1 or not 2 < slot.size <= FEW_PARTS:
            continue
        features = Lens.of(slot, values[slot.name])(values[slot.name])
        if not features.size:  # Squares overflow.
            continue
        found = pairs.setdefault(slot.size, np.eye(slot.size, dtype=bool))
        for first, second in combinations(range(slot.size), 2):
            apart = features[:, first] - features[:, second]
            along = apart @ np.linalg.svd(apart, full_matrices=False)[2][:1].T
            square = np.mean(along**2)
            two_sided = np.abs(along).var() < TWO_SIDED * square
            found[first, second] |= two_sided and along.mean() ** 2 < EVENLY * square
    for size, own in pairs.items():
        if own.sum() == size:
            continue
        from scipy.sparse.csgraph import connected_components  # It loads slowly.

        number, group = connected_components(own, directed=False)
        for places in (np.flatnonzero(group == each) for each in range(number)):
            if 1 < len(places) < size:
                yield size, places
