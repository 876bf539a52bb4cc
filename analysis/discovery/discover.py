"""Which components of a posterior are interchangeable, found from its draws alone.

What is found is a lower bound: a variable whose components are all alike leaves no trace of its labels, and what all
draws have in one labelling cannot be seen at all.

Of a thinned part of the draws every slot is sorted alone; one that gains more than noise does is a seed. Its elements
are tried on all other slots with as many components: those that come closer move along. Such a candidate is certain
where it mends R-hat, or where labels change at every draw and it leaves little of what noise would leave; otherwise its
components overlap or turn into one another (`decision`). Slots with few components come first, and where one of them
mends everything, those with many are not looked at. Literature: Stephens 2000 (JRSS B 62), Papastamoulis 2016 (JSS 69),
Papastamoulis and Ntzoufras 2022 (Stat. Comput. 32).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import groupby

import numpy as np
from jaxtyping import Float

from .candidate import Candidate, Discovery, Values
from .decide import CLEAR_ELEMENTS, Judged, beside, judge, rank
from .gain import Gain, gain_of, gain_together
from .move import (
    Moving,
    bad_entries,
    finish,
    finish_turning,
    joined,
    judged_entries,
    mask_of,
)
from .rotations import find_turning
from .slots import Features, Lens, Slot, slots
from .sorting import FEW, Sorting, apply, best_sorting, may_be_sorted, sort, spread

SEARCHED = 400
"""Draws that are searched, evenly of all chains."""
ROUNDS = 3
"""Most candidates that are applied one after the other."""
BAD_RHAT = 1.05
"""R-hat of a bad entry: among equal chains with an ESS of 400, 1.01 is its mean and 1.05 its quantile .99999."""
COMES_CLOSER = 0.95
"""Variance after over before below which a slot moves along."""
RARELY = 0.02
"""Share of draws up to which a sign that changes is taken for one that does not."""

Rhat = Callable[[Float[np.ndarray, "chain draw param"]], Float[np.ndarray, " param"]]
"""R-hat of every entry; NaN where it is not defined."""


def discover(
    values: Values,
    rhat: Rhat,
    *,
    seed: int = 0,
    known: Mapping[str, np.ndarray] | None = None,
) -> Discovery:
    """Find which components change labels between or within chains.

    Parameters
    ----------
    values : mapping of str to array (chain, draw, *event)
        Real variables, all finite.
    rhat : callable
        R-hat of entries side by side.
    seed : int
        Of starts and noise.
    known : mapping of str to array (param,), optional
        R-hat of some variables' entries in C order, which need not be computed again.

    Returns
    -------
    Discovery
        Blocks, numbers and aligned draws.
    """
    rng = np.random.default_rng(seed)
    present: dict[str, np.ndarray] = dict(values)
    bad = {name: np.asarray(each).ravel() > BAD_RHAT for name, each in (known or {}).items()}
    bad |= {n: bad_entries(v, rhat, BAD_RHAT) for n, v in present.items() if n not in bad}
    certain: list[Candidate] = []
    taken: set[tuple[str, tuple[int, ...]]] = set()
    for _ in range(ROUNDS):
        best = _Search(present, bad, rhat, rng, taken, first=not certain).best()
        if best is None or not best.certain:
            ambiguous = best if best is not None and (best.turns or not certain) else None
            return Discovery(tuple(certain), ambiguous, present)
        certain.append(best)
        present |= best.values
        bad |= {name: bad_entries(v, rhat, BAD_RHAT) for name, v in best.values.items()}
        taken |= {(slot.name, slot.axes) for slot in best.slots}
    return Discovery(tuple(certain), None, present)


class _Search:
    """One round over all slots that are not taken."""

    def __init__(
        self,
        values: Values,
        bad: Mapping[str, np.ndarray],
        rhat: Rhat,
        rng: np.random.Generator,
        taken: set[tuple[str, tuple[int, ...]]],
        *,
        first: bool,
    ) -> None:
        self.values, self.bad, self.rhat, self.rng, self.first = values, bad, rhat, rng, first
        self.num_bad = sum(int(each.sum()) for each in bad.values())
        self.searched = {name: thinned(value) for name, value in values.items()}
        free = [s for s in slots(self.searched) if not _overlaps(s, taken)]
        self.lenses = [lens for slot in free if (lens := self._lens(slot)) is not None]

    def best(self) -> Candidate | None:
        """The best candidate: certain, then mending most, then leaving least beside noise; else one that turns."""
        turning = self._turning()
        found = self._found({(s.name, s.axes) for each in turning for s in each.slots})
        if turning and not any(candidate.certain for candidate in found):
            return turning[0]
        in_turn = sorted(found, key=rank)
        finished = (self._finished(candidate) for candidate in in_turn)
        return next((candidate for candidate in finished if candidate is not None), None)

    def _finished(self, judged: Judged) -> Candidate | None:
        """Move all draws of a candidate that was judged on some entries."""
        everything = (self.values, self.lenses, self.bad, self.rhat)
        return finish(
            judged.moving, judged.gain, *everything, limit=judged.limit, certain=judged.certain
        )

    def _turning(self) -> list[Candidate]:
        """Slots whose components turn into one another, which no order sorts."""
        free = [lens.slot for lens in self.lenses]
        every = find_turning(free, self.searched, self.rng, some_bad=self.num_bad > 0)
        turned = [finish_turning(t, self.values, self.bad, self.rhat, BAD_RHAT) for t in every]
        return [candidate for candidate in turned if candidate is not None]

    def _found(self, turning: set[tuple[str, tuple[int, ...]]]) -> list[Judged]:
        """Candidates from every seed that does not turn."""
        found: list[Judged] = []
        self.lenses = [lens for lens in self.lenses if not _overlaps(lens.slot, turning)]
        by_size = sorted(self.lenses, key=lambda lens: lens.slot.size)
        for size, lenses in groupby(by_size, key=lambda lens: lens.slot.size):
            if size > FEW and (turning or any(map(self._mends_all, found))):
                break
            seeds = sorted(
                self._seeds(list(lenses)), key=lambda seed: beside(seed[0].slot, seed[1])
            )
            for seed in seeds:
                place = (seed[0].slot.name, seed[0].slot.axes)
                if any(self._mends_all(c) and place in c.places for c in found):
                    continue  # which left less
                candidate = self._candidate(*seed)
                found += [candidate] if candidate is not None else []
        return found

    def _mends_all(self, candidate: Judged) -> bool:
        clear = candidate.certain and candidate.gain.sorting.certainty >= CLEAR_ELEMENTS
        return clear and candidate.mended >= self.num_bad

    def _lens(self, slot: Slot) -> Lens | None:
        """A slot's lens; None where it cannot be a seed nor move along."""
        values = self.searched[slot.name]
        if not self.num_bad and not slot.complement and not _switches(slot, values):
            return None
        lens = Lens.of(slot, values)
        return lens if lens.matrix.size else None

    def _features(self, lens: Lens) -> Features:
        return lens(self.searched[lens.slot.name])

    def _seeds(self, lenses: list[Lens]) -> Iterator[tuple[Lens, Gain]]:
        """Slots that gain more than noise does."""
        for lens in lenses:
            features = self._features(lens)
            if not self.num_bad and spread(features) < 0.85 * np.mean(features**2):
                continue
            mask = mask_of([lens])
            if not may_be_sorted(features, mask, self.rng):
                continue
            sorting = best_sorting(features, mask, self.rng)
            if sorting.spread >= 0.85 * spread(features):
                continue
            if lens.slot.signed and not _signs_change(sorting):
                continue  # the slot without signs says the same
            gain = gain_of(features, mask, self.rng, sorting)
            if gain.beside_noise < 0.9:
                yield lens, gain

    def _candidate(self, seed: Lens, alone: Gain) -> Judged | None:
        """What moves with a seed, sorted together, and what that mends."""
        lenses, sorting = [seed], alone.sorting
        for _ in range(2):
            lenses = [seed, *self._along(seed, sorting)]
            start = (sorting.permutation, sorting.signs)
            sorting = sort(joined(lenses, self.searched), mask_of(lenses), start)
        if seed.slot.signed and not _signs_change(sorting):
            return None
        features = joined(lenses, self.searched)
        gain = gain_together(alone, features, mask_of(lenses), self.rng, sorting)
        moving = Moving(tuple(lenses), sorting, features)
        entries = judged_entries(moving, self.values, self.bad)
        return judge(moving, gain, entries, BAD_RHAT, first=self.first)

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
        weights = [
            n for n, v in self.searched.items() if v.ndim == 1 and v.min() > 0 and v.max() < 1
        ]
        found = [self._lens(Slot(name, (), 2, complement=True)) for name in weights]
        return [lens for lens in found if lens is not None]

    def _ratio(self, lens: Lens, sorting: Sorting) -> float:
        """Variance after over before."""
        element = (sorting.permutation, sorting.signs)
        if len(lens.slot.axes) == 2:
            values = self.searched[lens.slot.name]
            return spread(lens.slot.moved(values, *element)) / spread(values)
        features = self._features(lens)
        return spread(apply(features, mask_of([lens]), *element)) / spread(features)


def thinned(values: Float[np.ndarray, "chain draw *event"]) -> Float[np.ndarray, row * event]:
    """The draws that are searched, evenly of all chains."""
    chains, draws = values.shape[:2]
    rows = np.linspace(0, draws - 1, min(draws, max(SEARCHED // chains, 2))).round().astype(int)
    return values[:, rows].reshape(-1, *values.shape[2:])


def _switches(slot: Slot, values: Float[np.ndarray, "draw ..."]) -> bool:
    """Whether entries are spread about as wide as they are large, as where labels change all the time."""
    raw = slot.raw(values)
    squares = np.mean(raw**2, axis=(0, 1))
    kept = squares > 1e-24 * squares.max(initial=0.0)
    ratio = raw.var(axis=0).mean(axis=0)[kept] / squares[kept]
    return bool(kept.any() and ratio.mean() >= 0.5)


def _signs_change(sorting: Sorting) -> bool:
    rarer = np.minimum((sorting.signs < 0).mean(axis=0), (sorting.signs > 0).mean(axis=0))
    return bool((rarer > RARELY).any())


def _overlaps(slot: Slot, taken: set[tuple[str, tuple[int, ...]]]) -> bool:
    return any(
        slot.name == name and (set(slot.axes) & set(axes) or not slot.axes or not axes)
        for name, axes in taken
    )
