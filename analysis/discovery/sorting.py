"""Slots of interchangeable components in draws, and their sorting draw by draw.

A slot is an axis of a variable, both axes of a square, or a whole variable. Draws of a variable are (draw, *event). The
features of a slot (draw, component, feature) are entries divided by their root mean square, reduced to at most
`DIRECTIONS` leading directions. If no sign changes, the mean over components is subtracted in each draw, because a
common level is not a label.

A draw's element is the one under which its components are likeliest, given means and variances over draws (Stephens
2000, section 4); both are updated until no draw moves. Noise is Gaussian with the components' covariance over features,
and has the same distribution for all components. Sorting brings the components of noise closer too, so it is the
baseline.

In a `Gain`, V is the mean square of the features, B their variance over the draws as sampled, and A the variance of the
sorted draws. Three numbers decide: ``gain`` A / B, ``switching`` B / V (near 1 if labels change all the time) and
``beside_noise`` (A / V) / (A0 / V0), with A0 and V0 those of noise.

Unidentified components turn into one another: rotations sort them (Procrustes: Gower 1975, Psychometrika 40), while
orders and signs do not. Components turn only if rotations gain far more than on Gaussian draws with the moments of the
sorted ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from operator import itemgetter

import numpy as np
from jaxtyping import Bool, Float, Int

from onebasin.models.symmetry.elements import complement, negate, scale, take
from onebasin.models.symmetry.rotation import nearest_rotation

Values = Mapping[str, Float[np.ndarray, "chain draw ..."]]
Features = Float[np.ndarray, "draw component feature"]
Permutations = Int[np.ndarray, "draw component"]
Signs = Float[np.ndarray, "draw component"]
Mask = Bool[np.ndarray, " feature"]
"""Features that change sign with their component."""

DIRECTIONS = 8
"""Maximum number of features of a slot; further features contain mostly a common level."""
MOST_COMPONENTS = 64
"""Maximum number of components of a slot."""
_ROWS = 600
"""Approximate number of draws of components from which directions are found."""


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
    """Yield every axis of 2 to `MOST_COMPONENTS` components, both axes of squares, and whole variables.

    Slots with signs belong to variables with both signs.
    """
    for name, drawn in values.items():
        shape = drawn.shape[1:]
        both_signs = drawn.size and drawn.min() < 0 < drawn.max()
        for axis, size in enumerate(shape):
            if 2 <= size <= MOST_COMPONENTS:
                yield Slot(name, (axis,), size)
                if both_signs:
                    yield Slot(name, (axis,), size, signed=True)
        if len(shape) == 2 and shape[0] == shape[1] and 2 <= shape[0] <= MOST_COMPONENTS:
            yield Slot(name, (0, 1), shape[0])
        if both_signs:
            yield Slot(name, (), 1, signed=True)


FEW = 5
"""Maximum number of components for which all permutations are tried."""
MANY = 12
"""Components above which there are fewer starts and noises, because assignments take longer."""
NOISES = 3
CLEAR = 0.35
"""Ratio to quickly sorted noise below which a better sorting of noise would not change a decision."""
_ROUNDS = 25
_FEW_ROUNDS = 10
"""Rounds for many components."""
_AT_REST = 0.005
"""Share of moving components below which a sorting has converged."""
_FLOOR = 1e-6  # Minimum variance of features with a mean square of 1.


@dataclass(frozen=True, eq=False)
class Sorting:
    """An element for every draw, and the moments of the sorted draws.

    Component i of the sorted draw is `signs[i]` times component `permutation[i]`. `cost` is the mean over draws of
    minus twice the log likelihood. `certainty` is the mean of 1 / (1 + sum of exp(-d / 2)), over swaps and changes of
    one sign, with the rise d in cost.
    """

    permutation: Permutations
    signs: Signs
    mean: Float[np.ndarray, "component feature"]  # Of the sorted draws.
    variance: Float[np.ndarray, "component feature"]
    cost: float
    certainty: float

    @property
    def spread(self) -> float:
        """Mean variance of the sorted draws."""
        return float(self.variance.mean())


@dataclass(frozen=True, eq=False)
class Gain:
    """A sorting and its three numbers, which the module's docstring defines."""

    sorting: Sorting
    gain: float
    switching: float
    beside_noise: float


def apply(features: Features, signed: Mask, permutation: Permutations, signs: Signs) -> Features:
    """Move draws' features; signs apply to the marked features."""
    alone = features.shape[1] == 1
    moved = features if alone else np.take_along_axis(features, permutation[..., None], axis=1)
    return np.where(signed, signs[..., None] * moved, moved)


def sort(
    features: Features, signed: Mask, start: tuple[Permutations, Signs], rounds: int = _ROUNDS
) -> Sorting:
    """Sort from one start until nearly no component moves."""
    permutation, signs = start
    for _ in range(rounds):
        mean, variance = _moments(apply(features, signed, permutation, signs))
        prices, sign_of = _prices(features, mean, variance, signed)
        new = _assign(prices)
        new_signs = _taken(sign_of, new)
        moved = ((new != permutation) | (new_signs != signs)).mean()
        permutation, signs = new, new_signs
        if moved <= _AT_REST:
            break
    aligned = apply(features, signed, permutation, signs)
    mean, variance = _moments(aligned)
    prices, _ = _prices(features, mean, variance, signed)
    cost = float(_taken(prices, permutation).sum(axis=1).mean())
    odds: np.ndarray = np.zeros(len(features))
    if prices.shape[1] > 1:
        # (draw, place, place's component).
        ordered = np.take_along_axis(prices, permutation[:, None, :], axis=2)
        own = np.diagonal(ordered, axis1=1, axis2=2)
        rise = ordered + ordered.swapaxes(1, 2) - own[:, :, None] - own[:, None, :]
        upper = np.triu_indices(prices.shape[1], 1)
        odds = np.exp(-np.maximum(rise[:, upper[0], upper[1]], 0) / 2).sum(axis=1)
    if signed.any():
        flip = 4 * (aligned * (mean / variance))[..., signed].sum(axis=2)
        odds = odds + np.exp(-np.maximum(flip, 0) / 2).sum(axis=1)
    certainty = float((1 / (1 + odds)).mean())
    return Sorting(permutation, signs, mean, variance, cost, certainty)


def sort_by(
    features: Features, signed: Mask, mean: np.ndarray, variance: np.ndarray
) -> tuple[Permutations, Signs]:
    """Return the likeliest element of every draw under given moments."""
    prices, sign_of = _prices(features, mean, variance, signed)
    permutation = _assign(prices)
    return permutation, _taken(sign_of, permutation)


def best_sorting(features: Features, signed: Mask, rng: np.random.Generator) -> Sorting:
    """Return the best sorting from a few starts: as sampled, by the leading direction, like a random draw (twice)."""
    few = features.shape[1] <= MANY
    starts = [identity(features), _by_direction(features, signed)]
    for row in rng.integers(len(features), size=2 if few else 0):
        variance = np.maximum(features.var(axis=(0, 1)), _FLOOR) * np.ones_like(features[0])
        starts.append(sort_by(features, signed, features[row], variance))
    rounds = _ROUNDS if few else _FEW_ROUNDS
    sortings = (sort(features, signed, start, rounds) for start in starts)
    return min(sortings, key=lambda sorting: sorting.cost)


def may_be_sorted(features: Features, signed: Mask, rng: np.random.Generator) -> bool:
    """Check on half of the draws whether many components can be sorted with some certainty."""
    if features.shape[1] <= MANY:
        return True
    return best_sorting(features[::2], signed, rng).certainty > 0.5


def gain_of(features: Features, signed: Mask, rng: np.random.Generator, sorting: Sorting) -> Gain:
    """Measure the gain of a sorting."""
    total = float(np.mean(features**2))
    before = float(features.var(axis=0).mean())
    left = sorting.spread / total
    noise = noise_like(features, signed, rng)
    # A few rounds from the leading direction come within a few per cent of the best sorting.
    quick = sort(noise, signed, _by_direction(noise, signed), rounds=3)
    beside = left / _left_of(noise, quick)
    if not beside < CLEAR:
        noises = [noise]
        if features.shape[1] <= MANY:
            noises += [noise_like(features, signed, rng) for _ in range(NOISES - 1)]
        beside = left / min(_left_of(each, best_sorting(each, signed, rng)) for each in noises)
    return Gain(sorting, sorting.spread / before, before / total, beside)


def gain_together(
    alone: Gain, features: Features, signed: Mask, rng: np.random.Generator, sorting: Sorting
) -> Gain:
    """Measure the gain of a seed with other slots. The smaller ratios are used, because weak slots dilute them.

    In a clear case the seed's variance relative to noise suffices.
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


def noise_like(features: Features, signed: Mask, rng: np.random.Generator) -> Features:
    """Draw equal Gaussian components with the features' covariance, centred like the features."""
    num_draws, size, dim = features.shape
    flat = features.reshape(-1, dim)
    covariance = flat.T @ flat / len(flat)
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0))
    drawn = rng.standard_normal((num_draws, size, dim)) @ root.T
    if size == 1:
        return drawn
    centred = (drawn - drawn.mean(axis=1, keepdims=True)) * math.sqrt(size / (size - 1))
    return np.where(signed, drawn, centred)


def spread(values: np.ndarray) -> float:
    """Return the mean variance over the first axis."""
    return float(values.var(axis=0).mean())


def identity(features: Features) -> tuple[Permutations, Signs]:
    """Return the identity for every draw."""
    shape = features.shape[:2]
    return np.broadcast_to(np.arange(shape[1]), shape).copy(), np.ones(shape)


def _moments(aligned: Features) -> tuple[np.ndarray, np.ndarray]:
    return aligned.mean(axis=0), np.maximum(aligned.var(axis=0), _FLOOR)


def _prices(
    features: Features, mean: np.ndarray, variance: np.ndarray, signed: Mask
) -> tuple[np.ndarray, np.ndarray]:
    """Return the cost of component k at place j (draw, place, component) with the better sign, and that sign."""
    weight = 1 / variance
    aim = mean * weight
    level = ((mean**2) * weight + np.log(variance)).sum(axis=1)
    prices = features**2 @ weight.T + level
    if not signed.all():
        prices -= 2 * (features[..., ~signed] @ aim[:, ~signed].T)
    if not signed.any():
        return prices.swapaxes(1, 2), np.ones((1, 1, 1))
    cross = features[..., signed] @ aim[:, signed].T
    prices -= 2 * np.abs(cross)
    return prices.swapaxes(1, 2), np.where(cross < 0, -1.0, 1.0).swapaxes(1, 2)


def _taken(table: np.ndarray, permutation: Permutations) -> np.ndarray:
    if table.size == 1:
        return np.broadcast_to(table[0, 0], permutation.shape)
    if table.shape[2] == 1:
        return np.asarray(table[..., 0])
    return np.take_along_axis(table, permutation[..., None], axis=2)[..., 0]


def _assign(prices: np.ndarray) -> Permutations:
    size = prices.shape[1]
    if size == 1:
        return np.zeros(prices.shape[:2], int)
    if size <= FEW:
        orders = np.array(list(permutations(range(size))))
        totals = prices[:, np.arange(size), orders].sum(axis=2)
        return orders[totals.argmin(axis=1)]
    prices = np.ascontiguousarray(prices)
    best = prices.argmin(axis=2)
    clash = (np.sort(best, axis=1) != np.arange(size)).any(axis=1)
    if clash.any():  # Two places have the same cheapest component.
        from scipy.optimize import linear_sum_assignment  # Imported here because it loads slowly.

        for row in np.flatnonzero(clash):
            best[row] = linear_sum_assignment(prices[row])[1]
    return best


def _by_direction(features: Features, signed: Mask) -> tuple[Permutations, Signs]:
    """Sort by size along the leading direction; if all features are signed, with the sign along it."""
    flat = features.reshape(-1, features.shape[2])
    leading = features @ np.linalg.eigh(flat.T @ flat)[1][:, -1]
    sign = np.where(leading < 0, -1.0, 1.0) if signed.all() else np.ones_like(leading)
    order = np.argsort(leading * sign, axis=1, kind="stable")
    return order, np.take_along_axis(sign, order, axis=1)


def _left_of(noise: Features, sorting: Sorting) -> float:
    """Return A0 / V0."""
    return sorting.spread / float(np.mean(noise**2))


MOST = 12  # Maximum number of components that are turned.
FAR_MORE = 0.5
"""Variance left by rotations, relative to draws that do not turn, below which components turn."""
BESIDE_NOISE = 0.6
"""Variance left by rotations, relative to noise, below which components may turn."""
_ENTRIES = 48
_TURNS = 12

Rotations = Float[np.ndarray, "draw component component"]


@dataclass(frozen=True, eq=False)
class Turning:
    """Signed slots of one size that turn together."""

    slots: tuple[Slot, ...]
    mean: Float[np.ndarray, "component entry"]  # Of all slots side by side, after turning.
    gain: Gain  # Of rotations; its sorting is the best one by order and signs.

    def move(self, values: Values) -> dict[str, np.ndarray]:
        """Turn all draws."""
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
    """Find slots that turn, with the slots that turn along, in the searched draws (draw, *event).

    Without any bad R-hat (`some_bad`), only components that turn all the time can be seen.
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
    """Turn every draw to the mean of all, a fixed number of times; the first draw hardly moves."""
    mean = features[0]
    for _ in range(_TURNS):
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
    """Return some entries of each component of all slots, side by side."""
    every = (slot.raw(draws[slot.name]) for slot in slots)
    return np.concatenate([raw[..., :: -(-raw.shape[2] // _ENTRIES)] for raw in every], axis=2)


COMES_A_LITTLE_CLOSER = 0.99
"""Like `COMES_CLOSER`, for all draws and known elements."""
Elements = Sequence[tuple[Permutations, Signs]]
"""Elements of draws, chain by chain."""


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
    """Yield slots of other variables that come a little closer on all draws; tuples and mirrored ones last."""
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
    """Move a variable by elements."""
    return np.stack([slot.moved(v, *e) for v, e in zip(values, elements, strict=True)])


def joined(lenses: Sequence[Lens], values: Mapping[str, Float[np.ndarray, "draw ..."]]) -> Features:
    """Return the features of slots side by side."""
    return np.concatenate([lens(values[lens.slot.name]) for lens in lenses], axis=2)


def mask_of(lenses: Sequence[Lens]) -> Mask:
    """Mark the features that change sign."""
    return np.concatenate([np.full(lens.matrix.shape[1], lens.slot.signed) for lens in lenses])


def flat(values: Float[np.ndarray, "chain draw *event"]) -> Float[np.ndarray, "chain draw param"]:
    """Return the entries of a variable side by side."""
    return values.reshape(*values.shape[:2], -1)


def _spread_of_all(values: np.ndarray) -> float:
    return float(values.var(axis=(0, 1)).mean())
