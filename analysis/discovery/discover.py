"""Find the interchangeable components of a posterior from only its draws.

The result is a lower bound: labels leave no trace if components are equal, or have the same labelling in all draws.

A slot is an axis of components, or a whole variable with both signs. Every slot of a thinned part of the draws is
sorted alone; a slot that gains more than noise is a seed. Its elements are tried on all other slots with as many
components; slots that come closer move along. Such a candidate is certain if it repairs R-hat, or if labels change at
every draw and sorting leaves much less variance than in noise. Otherwise its components overlap or turn into one
another. Slots with few components come first; if one of them repairs everything, slots with many are skipped.
Thresholds were set on simulated posteriors of 52 families with known answers: see
docs/explanations/finding-symmetries.md. Literature: Stephens 2000 (JRSS B 62), Papastamoulis 2016 (JSS 69),
Papastamoulis and Ntzoufras 2022 (Stat. Comput. 32).

A proposal is judged by some of the entries that move. The best proposal is finished: all draws are moved, with other
slots that come a little closer, and R-hat of all entries decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, groupby
from operator import itemgetter

import numpy as np
from jaxtyping import Bool, Float

from ..summaries.summary import rhat_of_entries
from .candidates import (
    Candidate,
    Tuples,
    apart,
    are_tied,
    companions,
    exchanging,
    is_mirrored_elsewhere,
    numbered,
    of_chains,
    tuples_of,
    unlike,
    with_tuples,
)
from .sorting import (
    FEW,
    Elements,
    Features,
    Gain,
    Lens,
    Slot,
    Sorting,
    Turning,
    Values,
    apply,
    best_sorting,
    closer,
    elements_of,
    find_turning,
    flat,
    gain_of,
    gain_together,
    joined,
    mask_of,
    may_be_sorted,
    moved_values,
    slots,
    sort,
    spread,
)

BAD_RHAT = 1.05
"""R-hat of a bad entry: among equal chains with an ESS of 400, 1.01 is its mean and 1.05 its quantile .99999."""
MENDED = 0.99
"""Minimum share of the moved entries with a good R-hat afterwards."""
JUDGED = 256
"""Maximum number of entries whose R-hat is computed to judge a candidate."""
CLEAR_ELEMENTS = 0.95
"""Certainty above which a candidate precedes others that repair as many entries."""

Bad = Mapping[str, Bool[np.ndarray, " param"]]
"""Entries with a bad R-hat, by variable."""


@dataclass(frozen=True, eq=False)
class Proposal:
    """A candidate that was judged by some of its entries."""

    lenses: tuple[Lens, ...]  # The seed first.
    gain: Gain  # The smaller of the common gain and the seed's gain.
    certain: bool
    repaired: int  # Approximate number of entries whose R-hat becomes good.

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The slots, the seed first."""
        return tuple(lens.slot for lens in self.lenses)

    @cached_property
    def places(self) -> set[tuple[str, tuple[int, ...]]]:
        """The places of the slots."""
        return {place for slot in self.slots for place in slot.places}


def is_part(one: Proposal, other: Proposal) -> bool:
    """Check whether `other` exchanges more parameters, including those of `one`, and repairs at least as much."""
    own = {n for slot in one.slots for n in slot.members}
    if not own or not other.certain or other.repaired < one.repaired:
        return False
    return own < {n for slot in other.slots for n in slot.members}


def rank(candidate: Proposal) -> tuple[bool, int, bool, float]:
    """Rank candidates by certainty, by repaired entries, by clarity, and by the variance left relative to noise."""
    unclear = candidate.gain.sorting.certainty < CLEAR_ELEMENTS
    left = beside(candidate.slots[0], candidate.gain)
    return (not candidate.certain, -candidate.repaired, unclear, left)


def beside(seed: Slot, gain: Gain) -> float:
    """Return the variance left relative to noise; a seed with signs has a penalty, because signs add freedom."""
    return gain.beside_noise * (1.7 if seed.signed else 1)


def propose(
    lenses: Sequence[Lens],
    gain: Gain,
    values: Values,
    bad: Bad,
    *,
    first: bool,
    independent: bool = False,
) -> Proposal | None:
    """Propose slots by their gain and their effect on R-hat of some entries; None if they are not a symmetry.

    `first` means that nothing was found before. Labels of `independent` draws need not change all the time.
    """
    slots = [lens.slot for lens in lenses]
    elements = elements_of(lenses, gain.sorting, values)
    was_bad = np.concatenate([bad[slot.name] for slot in slots])
    total = was_bad.size
    rows = np.unique(np.linspace(0, total - 1, min(total, JUDGED)).round().astype(int))
    signed = any(slot.signed for slot in slots)
    certainty, left = gain.sorting.certainty, gain.beside_noise
    before, after = was_bad[rows], _are_bad(slots, values, elements, rows)
    repaired = round(float((before & ~after).sum()) / (len(rows) / total))
    if before.any():
        # Labels differ between chains, and certain elements or those of whole chains repair R-hat.
        repairs = bool(np.mean(~after) >= MENDED)
        certain = repairs and gain.gain < 0.9 and certainty >= 0.985 and left < 0.75
        if repairs and not certain and gain.gain < 0.9 and certainty >= 0.8 and left < 0.9:
            by_chain = _are_bad(slots, values, [_most_frequent(*each) for each in elements], rows)
            certain = bool(np.mean(~by_chain) >= MENDED)
        little = left < (0.6 if signed else 0.8) and certainty > 0.8
        ambiguous = first and repairs and little and (gain.switching > 0.8 or repaired > 0)
    else:
        # Labels change at every draw, or there are no labels.
        changing = gain.switching > 0.9
        certain = gain.gain < 0.75 and left < 0.75 and certainty >= 0.985
        certain &= changing or independent
        # An entry of a square belongs to two components, so noise of single components is no comparison for squares.
        squares = all(len(slot.axes) == 2 for slot in slots)
        overlap = (left < 0.8 and certainty > 0.8) or (left < 0.6 and certainty > 0.5)
        ambiguous = not signed and not squares and changing and gain.gain < 0.9 and overlap
    return Proposal(tuple(lenses), gain, certain, repaired) if certain or ambiguous else None


def _are_bad(
    slots: Sequence[Slot], values: Values, elements: Elements, rows: np.ndarray
) -> Bool[np.ndarray, " entry"]:
    """Mark the moved entries, numbered by `rows`, whose R-hat is bad after the moves."""
    found, first = [], 0
    for slot in slots:
        entries = flat(moved_values(slot, values[slot.name], elements))
        last = first + entries.shape[2]
        at = rows[(rows >= first) & (rows < last)] - first
        found.append(split_rhat(entries[..., at]) > BAD_RHAT)
        first = last
    return np.concatenate(found)


def _most_frequent(permutation: np.ndarray, signs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the most frequent element, once per draw."""
    found, counts = np.unique(np.hstack([permutation, signs]), axis=0, return_counts=True)
    size = permutation.shape[1]
    every = np.broadcast_to(found[counts.argmax()], (len(permutation), found.shape[1]))
    return every[:, :size].astype(int), every[:, size:]


def finish(
    proposal: Proposal, values: Values, lenses: Sequence[Lens], bad: Bad
) -> Candidate | None:
    """Move all draws, with slots that come a little closer; None if that does not repair R-hat."""
    # Number the components as in the first draw.
    sorting = proposal.gain.sorting
    start = {name: drawn[:1, :1] for name, drawn in values.items()}
    (permutation, *_), (signs, *_) = elements_of(proposal.lenses, sorting, start)[0]
    back, signed = np.argsort(permutation), mask_of(proposal.lenses)
    mean = np.where(signed, signs[:, None] * sorting.mean, sorting.mean)
    sorting = replace(sorting, mean=mean[back], variance=sorting.variance[back])
    elements = elements_of(proposal.lenses, sorting, values)
    others = (lens.slot for lens in lenses)
    found = list(proposal.slots)
    own = {slot.name: moved_values(slot, values[slot.name], elements) for slot in found}
    for slot in closer(proposal.slots, others, values, elements):
        drawn = moved_values(slot, values[slot.name], elements)
        still_bad = np.mean(split_rhat(flat(drawn)) > BAD_RHAT) > 1 - MENDED
        if not (bad[slot.name].any() and still_bad):  # Otherwise it came closer by chance.
            own[slot.name] = drawn
            found.append(slot)
    if not _are_repaired(own, bad):
        return None
    permutation, signs = (np.stack(each) for each in zip(*elements, strict=True))
    ordered, moved = _in_order(found, values), apart(found, own)
    closest = _closest(sorting, signed)
    return Candidate(
        ordered, proposal.gain, proposal.certain, False, moved, permutation, signs, *closest
    )


def finish_turning(turning: Turning, values: Values, bad: Bad) -> Candidate | None:
    """Turn all draws; None if that does not repair R-hat."""
    own = turning.move(values)
    if not _are_repaired(own, bad):
        return None
    still = np.zeros((*next(iter(own.values())).shape[:2], 1), int)
    return Candidate(
        _in_order(turning.slots, values), turning.gain, False, True, own, still, still + 1.0
    )


def _are_repaired(own: Values, bad: Bad) -> bool:
    """Check whether nearly all moved entries have a good R-hat, or had one before."""
    if not any(bad[name].any() for name in own):
        return True
    left = np.concatenate([bad_entries(drawn) for drawn in own.values()])
    return bool(left.sum() <= (1 - MENDED) * left.size)


def _in_order(slots: Sequence[Slot], values: Values) -> tuple[Slot, ...]:
    order = list(values)
    return tuple(sorted(slots, key=lambda slot: order.index(slot.name)))


def _closest(sorting: Sorting, signed: np.ndarray) -> tuple[tuple[int, int], float]:
    """Return the two closest components and their distance; the same component twice if its sign is least clear."""
    mean, variance = sorting.mean, sorting.variance
    both = (variance[:, None] + variance[None]) / 2
    distances = ((mean[:, None] - mean[None]) ** 2 / both).sum(axis=2)
    np.fill_diagonal(distances, np.inf)
    if signed.any():
        mirrored = np.where(signed, -mean, mean)
        flipped = ((mean[:, None] - mirrored[None]) ** 2 / both).sum(axis=2)
        distances = np.minimum(distances, flipped)
    first, second = sorted(map(int, np.unravel_index(distances.argmin(), distances.shape)))
    return (first, second), float(np.sqrt(distances.min()))


def split_rhat(values: Float[np.ndarray, "chain draw entry"]) -> Float[np.ndarray, " entry"]:
    """Return a fast R-hat of halves of chains, without ranks; NaN if nothing varies."""
    half = values.shape[1] // 2
    halves = np.concatenate([values[:, :half], values[:, half : 2 * half]])
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = halves.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.sqrt((half - 1) / half + between / within)


def bad_entries(values: Float[np.ndarray, "chain draw *event"]) -> Bool[np.ndarray, " param"]:
    """Mark entries with a bad R-hat; an undefined R-hat is not bad."""
    return rhat_of_entries(flat(values)) > BAD_RHAT


SEARCHED = 400
"""Number of draws that are searched, spread evenly over all chains."""
ROUNDS = 3
"""Maximum number of candidates that are applied one after the other."""
COMES_CLOSER = 0.95
"""Ratio of variances after and before, below which a slot moves along."""
MOSTLY_OF_CHAINS = 0.9
"""Share of draws with their chain's element above which the elements of other draws are treated as mistakes."""
SEEDS = 64
"""Number of seeds of a size after which a seed is skipped if a clear candidate moves its slots."""
MIRRORED = 0.5
"""Variance after changes of sign, over that after exchanges, below which signs change."""
RARELY = 0.02
"""Share of draws up to which a rare sign is ignored."""


def discover(
    values: Values, *, known: Mapping[str, np.ndarray] | None = None, independent: bool = False
) -> tuple[Candidate, ...]:
    """Find components of real, finite variables (chain, draw, *event) whose labels change between or within chains.

    `known` is the R-hat of some variables' entries in C order. R-hat of `independent` draws, such as those of a fit,
    does not show labels, and some labels may be rare.

    Returns
    -------
    tuple of Candidate
        Certain candidates in the order in which they were found, each on draws aligned by those before it. The last
        one may be uncertain: its components overlap or turn into one another.
    """
    bad = {name: np.asarray(each).ravel() > BAD_RHAT for name, each in (known or {}).items()}
    bad |= {n: bad_entries(v) for n, v in values.items() if n not in bad}
    found = _of_whole_variables(values, bad, independent)
    kept = [candidate for candidate in found if candidate.certain]
    moved = {name for candidate in kept for name in candidate.values}
    some: list[Candidate] = []
    for each in _of_some_places({n: v for n, v in values.items() if n not in moved}, bad):
        # A candidate that moves with another one is not a separate block.
        if not any(are_tied(each.labels, other.labels) for other in (*kept, *some)):
            some.append(each)
    moved = {name for candidate in some for name in candidate.values}
    return (*(c for c in found if moved.isdisjoint(c.values)), *some) if some else found


def _of_whole_variables(values: Values, bad: Bad, independent: bool) -> tuple[Candidate, ...]:
    """Search with all components of every variable, then also for separate parameters if the draws suggest them."""
    found = _in_rounds(values, bad, independent=independent)
    certain = [candidate for candidate in found if candidate.certain]
    several = any(are_tied(a.labels, b.labels) for a, b in combinations(certain, 2))
    several |= any(unlike(v, each.labels) for each in certain for v in each.values.values())
    if certain and not several and not companions(certain, values):
        return found
    tuples = tuples_of(values, bad)
    # Two entries that both change sign with the labels look as if they changed places.
    both = any(
        2 in v.shape[2:] and v.min() < 0 < v.max() for n, v in values.items() if bad[n].any()
    )
    if not certain and not tuples[0] and not both:
        return found
    wider = _in_rounds(values, bad, tuples, independent=independent)
    alone = [candidate for candidate in wider if candidate.certain]
    return wider if alone and not (certain and companions(alone, values)) else found


def _of_some_places(values: Values, bad: Bad) -> list[Candidate]:
    """Search for components that change places within chains while others stay."""
    found: list[Candidate] = []
    for size, places in exchanging({name: thinned(value) for name, value in values.items()}):
        shapes = {n: v.shape[2:] for n, v in values.items()}
        axes = {n: shape.index(size) for n, shape in shapes.items() if shape.count(size) == 1}
        some = {n: v.take(places, axes[n] + 2) if n in axes else v for n, v in values.items()}
        own = {n: bad[n].reshape(shape) for n, shape in shapes.items()}
        own = {n: each.take(places, axes[n]) if n in axes else each for n, each in own.items()}
        candidates = _in_rounds(some, {n: each.ravel() for n, each in own.items()})
        certain = (c for c in candidates if c.certain and c.values.keys() <= axes.keys())
        found += [c for each in certain if (c := each.among(places, values, size)) is not None]
    return found


def _in_rounds(
    values: Values,
    bad: Bad,
    tuples: tuple[Tuples, Tuples] | None = None,
    *,
    independent: bool = False,
) -> tuple[Candidate, ...]:
    """Search for one candidate after the other; with tuples, also for variables that mirror two components."""
    rng = np.random.default_rng(0)
    bad = {n: each for n, each in bad.items() if n in values}
    every = () if tuples is None else (*tuples[0], *tuples[1])
    present = with_tuples(values, every)
    for own in every:
        bad["~".join(own)] = np.concatenate([bad[text.removeprefix("1-")] for text in own])
    certain: list[Candidate] = []
    taken: list[Slot] = []
    for _ in range(ROUNDS):
        how = {"first": not certain, "independent": independent}
        best = _Search(present, bad, rng, taken, tuples, **how).best()
        if best is None or not best.certain:
            ambiguous = best is not None and (best.turns or not certain)
            return (*certain, best) if best is not None and ambiguous else tuple(certain)
        certain.append(best)
        present = with_tuples({n: best.values.get(n, present[n]) for n in values}, every)
        moved = [n for n in present if not best.values.keys().isdisjoint(n.split("~"))]
        bad |= {name: bad_entries(present[name]) for name in moved}
        taken += best.slots
    return tuple(certain)


class _Search:
    """One round over all free slots."""

    def __init__(
        self,
        values: Values,
        bad: Bad,
        rng: np.random.Generator,
        taken: Sequence[Slot],
        tuples: tuple[Tuples, Tuples] | None,
        **how: bool,
    ) -> None:
        self.values, self.bad, self.rng, self.how = values, bad, rng, how
        self.searched = {name: thinned(value) for name, value in values.items()}
        self.wide, first_tuples, others = tuples is not None, *(tuples or ((), ()))
        tied = [Slot("~".join(m), (0,), len(m), members=m) for m in (*first_tuples, *others)]
        self.along_alone = {slot.name for slot in tied[len(first_tuples) :]}
        own = {n: v for n, v in self.searched.items() if n not in {slot.name for slot in tied}}
        self.num_bad = sum(int(bad[name].sum()) for name in own)
        free = _apart_from(taken, (*slots(own), *tied))
        self.lenses = [lens for slot in free if (lens := self._lens(slot)) is not None]

    def best(self) -> Candidate | None:
        """Return the best candidate by `rank`, or one that turns if none is certain."""
        free = [lens.slot for lens in self.lenses]
        every = find_turning(free, self.searched, self.rng, some_bad=self.num_bad > 0)
        turned = [finish_turning(each, self.values, self.bad) for each in every]
        turning = [candidate for candidate in turned if candidate is not None]
        found = self._found([slot for each in turning for slot in each.slots])
        if turning and not any(candidate.certain for candidate in found):
            return turning[0]
        finished = (
            finish(each, self.values, self.lenses, self.bad)
            for each in sorted(found, key=rank)
            if not any(is_part(each, other) for other in found)
        )
        kept = (c for c in finished if c and not (c.certain and is_mirrored_elsewhere(c)))
        return next(kept, None)

    def _found(self, turning: Sequence[Slot]) -> list[Proposal]:
        """Make proposals from every seed that does not turn."""
        found: list[Proposal] = []
        free = {*_apart_from(turning, (lens.slot for lens in self.lenses))}
        self.lenses = [lens for lens in self.lenses if lens.slot in free]

        def of_few(lens: Lens) -> tuple[int, int]:
            return -len(lens.slot.members), lens.slot.size  # Long tuples come first.

        for (_, size), lenses in groupby(sorted(self.lenses, key=of_few), key=of_few):
            if size > FEW and (turning or any(map(self._mends_all, found))):
                break
            seeds = sorted(self._seeds(list(lenses)), key=lambda s: beside(s[0].slot, s[1]))
            for number, seed in enumerate(seeds):
                places = {*seed[0].slot.places}
                others = (c for c in found if places <= c.places)
                if any(map(self._mends_all if number < SEEDS else _is_clear, others)):
                    continue
                candidate = self._candidate(*seed)
                found += [candidate] if candidate is not None else []
        return found

    def _mends_all(self, candidate: Proposal) -> bool:
        return _is_clear(candidate) and candidate.repaired >= self.num_bad

    def _lens(self, slot: Slot) -> Lens | None:
        """Return a slot's lens; None if it can neither be a seed nor move along."""
        values = self.searched[slot.name]
        if not (self.num_bad or slot.mirrors or self.how["independent"]):
            # If labels change all the time, the spread of entries is about their size.
            raw = slot.raw(values)
            squares = np.mean(raw**2, axis=(0, 1))
            kept = squares > 1e-24 * squares.max(initial=0.0)
            ratio = raw.var(axis=0).mean(axis=0)[kept] / squares[kept]
            if not kept.any() or not ratio.mean() >= 0.5:
                return None
        lens = Lens.of(slot, values)
        return lens if lens.matrix.size else None

    def _features(self, lens: Lens) -> Features:
        return lens(self.searched[lens.slot.name])

    def _seeds(self, lenses: list[Lens]) -> Iterator[tuple[Lens, Gain]]:
        """Yield slots that gain more than noise."""
        for lens in (lens for lens in lenses if lens.slot.name not in self.along_alone):
            features = self._features(lens)
            changing = self.num_bad or self.how["independent"]
            if not changing and spread(features) < 0.85 * np.mean(features**2):
                continue
            mask = mask_of([lens])
            if not may_be_sorted(features, mask, self.rng):
                continue
            sorting = best_sorting(features, mask, self.rng)
            if sorting.spread >= 0.85 * spread(features) or self._is_mirrored(lens.slot, sorting):
                continue
            if lens.slot.signed and not _signs_change(sorting):
                continue  # The slot without signs is equivalent.
            gain = gain_of(features, mask, self.rng, sorting)
            if gain.beside_noise < 0.9:
                yield lens, gain

    def _candidate(self, seed: Lens, alone: Gain) -> Proposal | None:
        """Propose a seed with the slots that move along, sorted together."""
        lenses, sorting = [seed], alone.sorting
        for _ in range(2):
            lenses = [seed, *self._along(seed, sorting)]
            start = (sorting.permutation, sorting.signs)
            sorting = sort(joined(lenses, self.searched), mask_of(lenses), start)
        found = self._judged(lenses, sorting, alone)
        if found is None and len(lenses) > 1:  # A slot moved along only by chance.
            return self._judged([seed], alone.sorting, alone)
        return found

    def _judged(self, lenses: list[Lens], sorting: Sorting, alone: Gain) -> Proposal | None:
        if lenses[0].slot.signed and not _signs_change(sorting):
            return None
        features = joined(lenses, self.searched)
        gain = gain_together(alone, features, mask_of(lenses), self.rng, sorting)
        return propose(lenses, gain, self.values, self.bad, **self.how)

    def _along(self, seed: Lens, sorting: Sorting) -> list[Lens]:
        """Choose the slot of every other variable, if any, that the seed's elements bring closest."""
        size, sorting = seed.slot.size, self._of_chains(sorting)
        lenses = [lens for lens in self.lenses if lens.slot.size == size]
        lenses += self._mirrored if size == 2 else []
        names = {*seed.slot.names}
        others: dict[str, tuple[float, Lens]] = {}
        for lens in lenses:
            slot = lens.slot
            if (slot.signed and not seed.slot.signed) or not names.isdisjoint(slot.names):
                continue
            ratio = self._ratio(lens, sorting)
            better = ratio < min(COMES_CLOSER, others.get(slot.name, (np.inf, lens))[0] - 0.01)
            if better and not self._is_mirrored(slot, sorting):
                others[slot.name] = (ratio, lens)
        closest: set[Lens] = set()
        for _, lens in sorted(others.values(), key=itemgetter(0)):
            if names.isdisjoint(lens.slot.names):
                names |= {*lens.slot.names}
                closest.add(lens)
        return [lens for _, lens in others.values() if lens in closest]

    def _of_chains(self, sorting: Sorting) -> Sorting:
        """Use the most frequent element for all draws of a chain, if chains differ and few draws do."""
        elements = sorting.permutation, sorting.signs
        chains = len(next(iter(self.values.values())))
        labels = numbered(np.hstack(elements).reshape(chains, -1, 2 * sorting.signs.shape[1]))
        of_chain, _ = of_chains(labels)
        few = np.mean(labels == of_chain[:, None]) > MOSTLY_OF_CHAINS
        if not few or (of_chain == of_chain[0]).all():
            return sorting
        first = np.unique(labels, return_index=True)[1]  # A row with each label.
        rows = np.repeat(first[of_chain], labels.shape[1])
        return replace(sorting, permutation=elements[0][rows], signs=elements[1][rows])

    @cached_property
    def _mirrored(self) -> list[Lens]:
        """Find entries that may become their complement, or change sign, as two components change places."""
        weights = [
            n for n, v in self.searched.items() if v.ndim == 1 and v.min() > 0 and v.max() < 1
        ]
        both = [n for n, v in self.searched.items() if v.size and v.min() < 0 < v.max()]
        signs = [Slot(n, (), 2, reflected=True) for n in both if self.wide and "~" not in n]
        found = [Slot(name, (), 2, complement=True) for name in weights]
        lenses = [self._lens(slot) for slot in (*found, *signs)]
        return [lens for lens in lenses if lens is not None]

    def _ratio(self, lens: Lens, sorting: Sorting) -> float:
        """Return the ratio of the features' variances after and before."""
        if len(lens.slot.axes) == 2:
            return self._left(lens.slot, sorting)
        features = self._features(lens)
        moved = apply(features, mask_of([lens]), sorting.permutation, sorting.signs)
        return spread(moved) / spread(features)

    def _is_mirrored(self, slot: Slot, sorting: Sorting) -> bool:
        """Check by the level of two entries whether their signs change rather than their places."""
        mirrored = replace(slot, axes=(), reflected=True)
        draws = self.searched[slot.name]
        both = slot.size == 2 and bool(slot.axes) and draws.min() < 0 < draws.max()
        if not (self.wide and both):
            return False
        return self._left(mirrored, sorting) < MIRRORED * self._left(slot, sorting)

    def _left(self, slot: Slot, sorting: Sorting) -> float:
        """Return the ratio of the draws' variances after and before; unlike features, draws include their level."""
        values = self.searched[slot.name]
        return spread(slot.moved(values, sorting.permutation, sorting.signs)) / spread(values)


def thinned(values: Float[np.ndarray, "chain draw *event"]) -> Float[np.ndarray, row * event]:
    """Return the draws that are searched, spread evenly over all chains."""
    chains, draws = values.shape[:2]
    rows = np.linspace(0, draws - 1, min(draws, max(SEARCHED // chains, 2))).round().astype(int)
    return np.concatenate(list(values[:, rows]))


def _signs_change(sorting: Sorting) -> bool:
    rarer = np.minimum((sorting.signs < 0).mean(axis=0), (sorting.signs > 0).mean(axis=0))
    return bool((rarer > RARELY).any())


def _is_clear(candidate: Proposal) -> bool:
    return candidate.certain and candidate.gain.sorting.certainty >= CLEAR_ELEMENTS


def _apart_from(taken: Iterable[Slot], every: Iterable[Slot]) -> list[Slot]:
    """Choose slots that share no axis of a parameter with the taken ones."""
    known: dict[str, list[tuple[int, ...]]] = {}
    for name, axes in (place for slot in taken for place in slot.places):
        known.setdefault(name, []).append(axes)

    def is_taken(name: str, axes: tuple[int, ...]) -> bool:
        return any(not axes or not others or {*axes} & {*others} for others in known.get(name, ()))

    return [slot for slot in every if not any(is_taken(*place) for place in slot.places)]
