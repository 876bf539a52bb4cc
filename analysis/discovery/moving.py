"""Slots moved together on all draws, and what that does to R-hat."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

import numpy as np
from jaxtyping import Bool, Float

from .candidate import Candidate, CandidateNumbers
from .counterparts import apart
from .rotations import Turning
from .slots import Features, Lens, Permutations, Signs, Slot, Values
from .sorting import Gain, Mask, Sorting, sort_by

BAD_RHAT = 1.05
"""R-hat of a bad entry: among equal chains with an ESS of 400, 1.01 is its mean and 1.05 its quantile .99999."""
MENDED = 0.99
"""Share of the moved entries whose R-hat has to be good afterwards."""
JUDGED = 256
"""Entries whose R-hat is computed to judge a candidate, evenly of all that move."""
COMES_A_LITTLE_CLOSER = 0.99
"""The same as `COMES_CLOSER` for all draws, once the elements are known."""

Rhat = Callable[[Float[np.ndarray, "chain draw param"]], Float[np.ndarray, " param"]]
"""R-hat of every entry; NaN where it is not defined."""


@dataclass(frozen=True, eq=False)
class Moving:
    """Slots sorted together.

    Attributes
    ----------
    lenses : tuple of Lens
        The seed first.
    sorting : Sorting
        Of the searched draws.
    features : Features
        Of the searched draws, side by side.
    """

    lenses: tuple[Lens, ...]
    sorting: Sorting
    features: Features

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The slots that move."""
        return tuple(lens.slot for lens in self.lenses)

    def like_first(self, values: Values) -> Moving:
        """The same with the labels that the first draw of all has."""
        (permutation, *_), (signs, *_) = self.elements({n: v[:1, :1] for n, v in values.items()})[0]
        back = np.argsort(permutation)
        turned = np.where(
            mask_of(self.lenses), signs[:, None] * self.sorting.mean, self.sorting.mean
        )
        sorting = replace(self.sorting, mean=turned[back], variance=self.sorting.variance[back])
        return replace(self, sorting=sorting)

    def elements(self, values: Values) -> list[tuple[Permutations, Signs]]:
        """The likeliest element of every draw, chain by chain."""
        chains = len(next(iter(values.values())))
        mask, sorting = mask_of(self.lenses), self.sorting
        each = [{s.name: values[s.name][chain] for s in self.slots} for chain in range(chains)]
        return [
            sort_by(joined(self.lenses, draws), mask, sorting.mean, sorting.variance)
            for draws in each
        ]


@dataclass(frozen=True, eq=False)
class MovedEntries:
    """Some of the entries that move, before and after.

    Attributes
    ----------
    before : array (entry,)
        Which had a bad R-hat.
    own : array (chain, draw, entry)
        Each draw moved by its own element.
    common : callable
        The same moved by the most frequent element of each chain.
    share : float
        Of all entries that move.
    """

    before: Bool[np.ndarray, " entry"]
    own: Float[np.ndarray, "chain draw entry"]
    common: Callable[[], Float[np.ndarray, "chain draw entry"]]
    share: float


def judged_entries(moving: Moving, values: Values, bad: Mapping[str, np.ndarray]) -> MovedEntries:
    """Move all draws, and take some of the entries."""
    elements = moving.elements(values)
    total = sum(bad[slot.name].size for slot in moving.slots)
    rows = np.unique(np.linspace(0, total - 1, min(total, JUDGED)).round().astype(int))
    before = np.concatenate([bad[slot.name] for slot in moving.slots])[rows]

    def moved(by: Sequence[tuple[Permutations, Signs]]) -> np.ndarray:
        parts, first = [], 0
        for slot in moving.slots:
            last = first + bad[slot.name].size
            at = rows[(rows >= first) & (rows < last)] - first
            parts.append(_flat(moved_values(slot, values[slot.name], by))[..., at])
            first = last
        return np.concatenate(parts, axis=2)

    def common() -> np.ndarray:
        frequent = []
        for permutation, signs in elements:
            found, counts = np.unique(np.hstack([permutation, signs]), axis=0, return_counts=True)
            size, shape = permutation.shape[1], (len(permutation), found.shape[1])
            every = np.broadcast_to(found[counts.argmax()], shape)
            frequent.append((every[:, :size].astype(int), every[:, size:]))
        return moved(frequent)

    return MovedEntries(before, moved(elements), common, len(rows) / total)


def finish(
    moving: Moving,
    gain: Gain,
    values: Values,
    lenses: Sequence[Lens],
    bad: Mapping[str, np.ndarray],
    rhat: Rhat,
    *,
    certain: bool,
) -> Candidate | None:
    """Move all draws, with slots that come a little closer; None where R-hat of all entries is not repaired."""
    moving = moving.like_first(values)
    elements = moving.elements(values)
    others = (lens.slot for lens in lenses)
    own = {s.name: moved_values(s, values[s.name], elements) for s in moving.slots}
    found = list(moving.slots)
    for slot in closer(moving.slots, others, values, elements):
        moved = moved_values(slot, values[slot.name], elements)
        apart_still = split_rhat(_flat(moved)) > BAD_RHAT
        if not bad[slot.name].any() or not np.mean(apart_still) > 1 - MENDED:  # by chance
            own[slot.name] = moved
            found.append(slot)
    numbers = _numbers(gain, _closest(moving), own, values, bad, rhat)
    permutation, signs = (np.stack(each) for each in zip(*elements, strict=True))
    ordered, moved = _in_order(found, values), apart(found, own)
    return _mended(Candidate(ordered, numbers, certain, False, moved, permutation, signs))


def finish_turning(
    turning: Turning, values: Values, bad: Mapping[str, np.ndarray], rhat: Rhat
) -> Candidate | None:
    """Turn all draws; None where that leaves R-hat as bad as it was."""
    own = turning.move(values)
    numbers = _numbers(turning.gain, ((0, 1), 0.0), own, values, bad, rhat)
    still = np.zeros((*next(iter(own.values())).shape[:2], 1), int)
    ordered = _in_order(turning.slots, values)
    return _mended(Candidate(ordered, numbers, False, True, own, still, still + 1.0))


def _numbers(
    gain: Gain,
    closest: tuple[tuple[int, int], float],
    own: Values,
    values: Values,
    bad: Mapping[str, np.ndarray],
    rhat: Rhat,
) -> CandidateNumbers:
    """Measure the gain of moving, and its effect on the R-hat of every entry."""
    before = np.concatenate([rhat(_flat(values[name])) for name in own])
    after = np.concatenate([rhat(_flat(value)) for value in own.values()])
    was_bad = np.concatenate([bad[name] for name in own])
    return CandidateNumbers(
        gain=gain.gain,
        switching=gain.switching,
        beside_noise=gain.beside_noise,
        certainty=gain.sorting.certainty,
        entries=after.size,
        bad=int(was_bad.sum()),
        mended=int((was_bad & ~(after > BAD_RHAT)).sum()),
        left=int((after > BAD_RHAT).sum()),
        rhat_before=_largest(before),
        rhat_after=_largest(after),
        closest=closest[0],
        distance=closest[1],
    )


def _mended(candidate: Candidate) -> Candidate | None:
    numbers = candidate.numbers
    unmended = numbers.bad and numbers.left > (1 - MENDED) * numbers.entries
    return None if unmended else candidate


def _in_order(slots: Sequence[Slot], values: Values) -> tuple[Slot, ...]:
    order = {name: place for place, name in enumerate(values)}
    return tuple(sorted(slots, key=lambda slot: order[slot.name]))


def closer(
    moving: Sequence[Slot],
    others: Iterable[Slot],
    values: Values,
    elements: Sequence[tuple[Permutations, Signs]],
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
    slot: Slot,
    values: Float[np.ndarray, "chain draw *event"],
    elements: Sequence[tuple[Permutations, Signs]],
) -> Float[np.ndarray, "chain draw *event"]:
    """A variable moved by elements, one list of them a chain."""
    return np.stack([slot.moved(v, *e) for v, e in zip(values, elements, strict=True)])


def split_rhat(values: Float[np.ndarray, "chain draw entry"]) -> Float[np.ndarray, " entry"]:
    """R-hat of halves of chains, without ranks: quick, to choose among candidates; NaN where nothing varies."""
    half = values.shape[1] // 2
    halves = np.concatenate([values[:, :half], values[:, half : 2 * half]])
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = halves.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.sqrt((half - 1) / half + between / within)


def bad_entries(
    values: Float[np.ndarray, "chain draw *event"], rhat: Rhat
) -> Bool[np.ndarray, " param"]:
    """Which entries have a bad R-hat; not those of which it is not defined."""
    return np.asarray(rhat(_flat(values))) > BAD_RHAT


def joined(lenses: Sequence[Lens], values: Mapping[str, Float[np.ndarray, "draw ..."]]) -> Features:
    """The features of slots side by side."""
    return np.concatenate([lens(values[lens.slot.name]) for lens in lenses], axis=2)


def mask_of(lenses: Sequence[Lens]) -> Mask:
    """Which of their features change sign."""
    return np.concatenate([np.full(lens.matrix.shape[1], lens.slot.signed) for lens in lenses])


def _spread_of_all(values: np.ndarray) -> float:
    return float(values.var(axis=(0, 1)).mean())


def _flat(values: Float[np.ndarray, "chain draw *event"]) -> Float[np.ndarray, "chain draw param"]:
    return values.reshape(*values.shape[:2], -1)


def _closest(moving: Moving) -> tuple[tuple[int, int], float]:
    """The two parts that are closest, by means and variances of the features; a part twice where its own sign is."""
    mean, variance = moving.sorting.mean, moving.sorting.variance
    signed = mask_of(moving.lenses)
    both = (variance[:, None] + variance[None]) / 2
    apart = ((mean[:, None] - mean[None]) ** 2 / both).sum(axis=2)
    if signed.any():
        mirrored = np.where(signed, -mean, mean)
        flipped = ((mean[:, None] - mirrored[None]) ** 2 / both).sum(axis=2)
        apart = np.minimum(np.where(np.eye(len(mean), dtype=bool), np.inf, apart), flipped)
    else:
        np.fill_diagonal(apart, np.inf)
    first, second = np.unravel_index(apart.argmin(), apart.shape)
    return (int(min(first, second)), int(max(first, second))), float(np.sqrt(apart.min()))


def _largest(values: np.ndarray) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.max()) if finite.size else float("nan")
