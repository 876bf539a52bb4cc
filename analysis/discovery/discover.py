"""Which components of a posterior are interchangeable, found from its draws alone.

What is found is a lower bound: a variable whose components are all alike leaves no trace of its labels, and what all draws
have in one labelling cannot be seen at all.

Of a thinned part of the draws every slot is sorted alone; one that gains more than noise does is a seed. Its elements are
tried on all other slots with as many components: those that come closer move along. Such a candidate is certain where it
mends R-hat, or where labels change at every draw and it leaves little of what noise would leave; otherwise its components
overlap or turn into one another. Literature: Stephens 2000 (JRSS B 62), Papastamoulis 2016 (JSS 69), Papastamoulis and
Ntzoufras 2022 (Stat. Comput. 32).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from .gain import Gain, gain_of
from .slots import Features, Lens, Permutations, Signs, Slot, slots
from .sorting import MANY, Sorting, apply, best_sorting, sort, sort_by

SEARCHED = 400
"""Draws that are searched, evenly of all chains."""
ROUNDS = 3
"""Most candidates that are applied one after the other."""
BAD_RHAT = 1.05
"""R-hat of a bad entry: among equal chains with an ESS of 400, 1.01 is its mean and 1.05 its quantile .99999."""
MENDED = 0.99
"""Share of the moved entries whose R-hat has to be good afterwards."""
COMES_CLOSER = 0.95
"""Variance after over before below which a slot moves along."""
TURNS = 0.7
"""Variance over that of draws turned at random above which components turn into one another."""

Values = Mapping[str, Float[np.ndarray, "chain draw *event"]]
Rhat = Callable[[Float[np.ndarray, "chain draw param"]], Float[np.ndarray, " param"]]
"""R-hat of every entry; NaN where it is not defined."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """Slots that move together.

    Attributes
    ----------
    slots : tuple of Slot
        The seed first.
    gain : Gain
        Of all together on the searched draws; the ratios are the lesser of those and the seed's own.
    certain : bool
        Whether draws can be aligned by it; otherwise its components overlap or turn into one another.
    mended : int
        Entries whose R-hat was bad and is good afterwards.
    values : mapping of str to array (chain, draw, *event)
        The moved variables, aligned.
    """

    slots: tuple[Slot, ...]
    gain: Gain
    certain: bool
    mended: int
    values: Values


@dataclass(frozen=True, eq=False)
class Discovery:
    """What was found.

    Attributes
    ----------
    certain : tuple of Candidate
        Blocks by which draws can be aligned, in the order in which they were found.
    ambiguous : Candidate or None
        One whose components overlap or turn into one another.
    values : mapping of str to array (chain, draw, *event)
        The draws, aligned by the certain blocks.
    """

    certain: tuple[Candidate, ...]
    ambiguous: Candidate | None
    values: Values


def discover(values: Values, rhat: Rhat, *, seed: int = 0) -> Discovery:
    """Find which components change labels between or within chains.

    Parameters
    ----------
    values : mapping of str to array (chain, draw, *event)
        Real variables, all finite.
    rhat : callable
        R-hat of entries side by side.
    seed : int
        Of starts and noise.
    """
    rng = np.random.default_rng(seed)
    present: dict[str, np.ndarray] = dict(values)
    certain: list[Candidate] = []
    taken: set[tuple[str, tuple[int, ...]]] = set()
    for _ in range(ROUNDS):
        search = _Search(present, rhat, rng, taken, first=not certain)
        best = search.best()
        if best is None or not best.certain:
            return Discovery(tuple(certain), best if not certain else None, present)
        certain.append(best)
        present |= best.values
        taken |= {(slot.name, slot.axes) for slot in best.slots}
    return Discovery(tuple(certain), None, present)


class _Search:
    """One round over all slots that are not taken."""

    def __init__(
        self, values: Values, rhat: Rhat, rng: np.random.Generator, taken: set, *, first: bool
    ) -> None:
        self.values, self.rhat, self.rng, self.first = values, rhat, rng, first
        self.searched = {name: _thinned(value) for name, value in values.items()}
        self.bad = {n: _bad(v, rhat) for n, v in values.items()}
        free = [s for s in slots(self.searched) if not _overlaps(s, taken)]
        self.lenses = [lens for slot in free if (lens := self._lens(slot)).matrix.size]

    def best(self) -> Candidate | None:
        """The best candidate: certain, then mending most, then leaving least beside noise."""
        found = [c for seed in self._seeds() if (c := self._candidate(*seed)) is not None]
        return min(found, key=_rank, default=None)

    def _lens(self, slot: Slot) -> Lens:
        return Lens.of(slot, self.searched[slot.name])

    def _features(self, lens: Lens) -> Features:
        return lens(self.searched[lens.slot.name])

    def _seeds(self) -> Iterator[tuple[Lens, Gain]]:
        """Slots that gain more than noise does."""
        all_good = not any(bad.any() for bad in self.bad.values())
        for lens in self.lenses:
            features = self._features(lens)
            if all_good and features.var(axis=0).mean() < 0.85 * np.mean(features**2):
                continue
            mask = _mask([lens])
            sorting = best_sorting(features, mask, self.rng)
            unclear = lens.slot.size > MANY and sorting.certainty <= 0.5
            if unclear or sorting.spread >= 0.85 * _spread(features):
                continue
            if lens.slot.signed and (sorting.signs == sorting.signs[0]).all():
                continue  # the slot without signs says the same
            gain = gain_of(features, mask, self.rng, sorting)
            if gain.beside_noise < 0.9:
                yield lens, gain

    def _candidate(self, seed: Lens, alone: Gain) -> Candidate | None:
        """What moves with a seed, sorted together, and what that mends."""
        lenses, sorting = [seed], alone.sorting
        for _ in range(2):
            lenses = [seed, *self._along(seed, sorting)]
            start = (sorting.permutation, sorting.signs)
            sorting = sort(self._joint(lenses), _mask(lenses), start)
        joint = gain_of(self._joint(lenses), _mask(lenses), self.rng, sorting)
        gain = Gain(
            sorting,
            min(joint.gain, alone.gain),
            alone.switching,
            min(joint.beside_noise, alone.beside_noise),
        )
        moved, by_chain = self._moved(lenses, sorting)
        return self._decided(tuple(lens.slot for lens in lenses), gain, moved, by_chain, lenses)

    def _along(self, seed: Lens, sorting: Sorting) -> list[Lens]:
        """Of every other variable the slot, if any, that the seed's elements bring closest."""
        others: dict[str, tuple[float, Lens]] = {}
        for lens in [*self.lenses, *self._complements(seed)]:
            slot = lens.slot
            if slot.name == seed.slot.name or slot.size != seed.slot.size:
                continue
            if slot.signed and not seed.slot.signed:
                continue
            ratio = self._ratio(lens, sorting)
            if ratio < COMES_CLOSER and ratio < others.get(slot.name, (np.inf, lens))[0] - 0.01:
                others[slot.name] = (ratio, lens)
        return [lens for _, lens in others.values()]

    def _complements(self, seed: Lens) -> list[Lens]:
        if seed.slot.size != 2:
            return []
        weights = [n for n, v in self.searched.items() if v.ndim == 1 and v.min() > 0 and v.max() < 1]
        return [self._lens(Slot(name, (), 2, complement=True)) for name in weights]

    def _ratio(self, lens: Lens, sorting: Sorting) -> float:
        """Variance after over before."""
        element = (sorting.permutation, sorting.signs)
        if len(lens.slot.axes) == 2:
            values = self.searched[lens.slot.name]
            return _spread(lens.slot.moved(values, *element)) / _spread(values)
        features = self._features(lens)
        return _spread(apply(features, _mask([lens]), *element)) / _spread(features)

    def _joint(self, lenses: Sequence[Lens]) -> Features:
        return np.concatenate([self._features(lens) for lens in lenses], axis=2)

    def _moved(self, lenses: Sequence[Lens], sorting: Sorting) -> tuple[Values, Values]:
        """All draws, each moved by its own element, and by the most frequent one of its chain."""
        chains = [
            self._chain_elements(chain, lenses, sorting)
            for chain in range(next(iter(self.values.values())).shape[0])
        ]
        own, common = {}, {}
        for slot in (lens.slot for lens in lenses):
            pairs = zip(self.values[slot.name], chains, strict=True)
            both = [(slot.moved(v, p, s), slot.moved(v, *_mode(p, s))) for v, (p, s) in pairs]
            own[slot.name] = np.stack([a for a, _ in both])
            common[slot.name] = np.stack([b for _, b in both])
        return own, common

    def _chain_elements(
        self, chain: int, lenses: Sequence[Lens], sorting: Sorting
    ) -> tuple[Permutations, Signs]:
        features = [lens(self.values[lens.slot.name][chain]) for lens in lenses]
        joint = np.concatenate(features, axis=2)
        return sort_by(joint, _mask(lenses), sorting.mean, sorting.variance)

    def _decided(
        self,
        together: tuple[Slot, ...],
        gain: Gain,
        moved: Values,
        by_chain: Values,
        lenses: Sequence[Lens],
    ) -> Candidate | None:
        signed = any(slot.signed for slot in together)
        before = np.concatenate([self.bad[slot.name] for slot in together])
        after = np.concatenate([_bad(v, self.rhat) for v in moved.values()])
        mended = int((before & ~after).sum())
        certainty, rho = gain.sorting.certainty, gain.beside_noise
        if before.any():
            repairs = np.mean(~after) >= MENDED
            whole_chains = np.mean(~np.concatenate([_bad(v, self.rhat) for v in by_chain.values()])) >= MENDED
            certain = repairs and gain.gain < 0.9 and (
                (whole_chains and certainty >= 0.8 and rho < 0.9) or (certainty >= 0.985 and rho < 0.75)
            )
            ambiguous = (
                self.first
                and repairs
                and rho < (0.6 if signed else 0.8)
                and certainty > 0.8
                and (gain.switching > 0.8 or mended > 0)
            )
        else:
            certain = gain.switching > 0.9 and gain.gain < 0.75 and rho < 0.75 and certainty >= 0.985
            ambiguous = (
                gain.switching > 0.9
                and gain.gain < 0.9
                and not signed
                and ((rho < 0.8 and certainty > 0.8) or (rho < 0.6 and certainty > 0.5))
            )
        if not (certain or ambiguous):
            return None
        if certain and signed and together[0].size > 1 and self._turns(lenses, gain):
            certain = False
        return Candidate(together, gain, bool(certain), mended, moved)

    def _turns(self, lenses: Sequence[Lens], gain: Gain) -> bool:
        """Whether draws turned by random rotations are sorted about as closely: factors that are not identified."""
        features = self._joint(lenses)
        mask = _mask(lenses)
        size = features.shape[1]
        turns = np.linalg.qr(self.rng.standard_normal((len(features), size, size)))[0]
        turned = np.where(mask, np.einsum("nij,njf->nif", turns, features), features)
        return gain.sorting.spread / best_sorting(turned, mask, self.rng).spread > TURNS


def _rank(candidate: Candidate) -> tuple[bool, int, bool, float]:
    signs = any(slot.signed for slot in candidate.slots)
    unclear = candidate.gain.sorting.certainty < 0.95
    return (not candidate.certain, -candidate.mended, unclear, candidate.gain.beside_noise * (1.7 if signs else 1))


def _overlaps(slot: Slot, taken: set[tuple[str, tuple[int, ...]]]) -> bool:
    return any(
        slot.name == name and (set(slot.axes) & set(axes) or not slot.axes or not axes)
        for name, axes in taken
    )


def _mask(lenses: Sequence[Lens]) -> Bool[np.ndarray, " feature"]:
    return np.concatenate([np.full(lens.matrix.shape[1], lens.slot.signed) for lens in lenses])


def _spread(values: np.ndarray) -> float:
    return float(values.var(axis=0).mean())


def _thinned(values: Float[np.ndarray, "chain draw *event"]) -> Float[np.ndarray, "draw *event"]:
    chains, draws = values.shape[:2]
    rows = np.linspace(0, draws - 1, min(draws, SEARCHED // chains)).round().astype(int)
    return values[:, rows].reshape(-1, *values.shape[2:])


def _bad(values: Float[np.ndarray, "chain draw *event"], rhat: Rhat) -> Bool[np.ndarray, " param"]:
    return rhat(values.reshape(*values.shape[:2], -1)) > BAD_RHAT


def _mode(permutation: Permutations, signs: Signs) -> tuple[Permutations, Signs]:
    """The most frequent element, for every draw."""
    rows, counts = np.unique(np.hstack([permutation, signs]), axis=0, return_counts=True)
    common = np.broadcast_to(rows[counts.argmax()], (len(permutation), rows.shape[1]))
    size = permutation.shape[1]
    return common[:, :size].astype(int), common[:, size:]
