"""From a sorting to a candidate: by its gain and by R-hat of the draws that it moves.

A proposal is judged by some of the entries that move. The one that comes first is finished: all draws are moved, with
what else comes a little closer, and R-hat of all entries decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float

from ..summaries.deciding import rhat_of_entries
from .candidate import Candidate
from .counterparts import apart
from .moving import Elements, closer, elements_of, flat, mask_of, moved_values
from .rotations import Turning
from .slots import Lens, Slot, Values
from .sorting import Gain, Sorting

BAD_RHAT = 1.05
"""R-hat of a bad entry: among equal chains with an ESS of 400, 1.01 is its mean and 1.05 its quantile .99999."""
MENDED = 0.99
"""Share of the moved entries whose R-hat has to be good afterwards."""
JUDGED = 256
"""Entries whose R-hat is computed to judge a candidate, evenly of all that move."""
CLEAR_ELEMENTS = 0.95
"""Certainty from which a candidate comes before others that repair as much."""

Bad = Mapping[str, Bool[np.ndarray, " param"]]
"""Which entries of each variable have a bad R-hat."""


@dataclass(frozen=True, eq=False)
class Proposal:
    """A candidate before all its entries are looked at."""

    lenses: tuple[Lens, ...]  # the seed first
    gain: Gain  # the lesser of all together and the seed's own
    certain: bool
    repaired: int  # about how many entries' R-hat was bad and is good afterwards

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The slots that move, the seed first."""
        return tuple(lens.slot for lens in self.lenses)

    @cached_property
    def places(self) -> set[tuple[str, tuple[int, ...]]]:
        """The places of these slots."""
        return {place for slot in self.slots for place in slot.places}


def is_part(one: Proposal, other: Proposal) -> bool:
    """Tell whether another exchanges more parameters, those of one among them, and repairs as much."""
    own = {n for slot in one.slots for n in slot.members}
    if not own or not other.certain or other.repaired < one.repaired:
        return False
    return own < {n for slot in other.slots for n in slot.members}


def rank(candidate: Proposal) -> tuple[bool, int, bool, float]:
    """Order candidates: certain, repairing most, clear, leaving least relative to noise; signs count against one."""
    unclear = candidate.gain.sorting.certainty < CLEAR_ELEMENTS
    left = beside(candidate.slots[0], candidate.gain)
    return (not candidate.certain, -candidate.repaired, unclear, left)


def beside(seed: Slot, gain: Gain) -> float:
    """Return the variance left relative to noise, counted higher where signs may change, which are freer to gain."""
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
    """Decide on slots by their gain and by its effect on R-hat of some entries; None where they are no symmetry.

    `first` says whether nothing was found before; `independent` draws need not change labels all the time.
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
        # Labels differ between chains, and whole chains' elements or sure draws' repair that.
        repairs = bool(np.mean(~after) >= MENDED)
        certain = repairs and gain.gain < 0.9 and certainty >= 0.985 and left < 0.75
        if repairs and not certain and gain.gain < 0.9 and certainty >= 0.8 and left < 0.9:
            by_chain = _are_bad(slots, values, [_most_frequent(*each) for each in elements], rows)
            certain = bool(np.mean(~by_chain) >= MENDED)
        little = left < (0.6 if signed else 0.8) and certainty > 0.8
        ambiguous = first and repairs and little and (gain.switching > 0.8 or repaired > 0)
    else:
        # Labels change at every draw, or there is nothing.
        changing = gain.switching > 0.9
        certain = gain.gain < 0.75 and left < 0.75 and certainty >= 0.985
        certain &= changing or independent
        # An entry of a square belongs to two parts, so that noise of single parts is no yardstick for squares alone.
        squares = all(len(slot.axes) == 2 for slot in slots)
        overlap = (left < 0.8 and certainty > 0.8) or (left < 0.6 and certainty > 0.5)
        ambiguous = not signed and not squares and changing and gain.gain < 0.9 and overlap
    return Proposal(tuple(lenses), gain, certain, repaired) if certain or ambiguous else None


def _are_bad(
    slots: Sequence[Slot], values: Values, elements: Elements, rows: np.ndarray
) -> Bool[np.ndarray, " entry"]:
    """Tell which of some entries, by their numbers among all that move, have a bad R-hat after elements."""
    found, first = [], 0
    for slot in slots:
        entries = flat(moved_values(slot, values[slot.name], elements))
        last = first + entries.shape[2]
        at = rows[(rows >= first) & (rows < last)] - first
        found.append(split_rhat(entries[..., at]) > BAD_RHAT)
        first = last
    return np.concatenate(found)


def _most_frequent(permutation: np.ndarray, signs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The most frequent element of some draws, for each of them."""
    found, counts = np.unique(np.hstack([permutation, signs]), axis=0, return_counts=True)
    size = permutation.shape[1]
    every = np.broadcast_to(found[counts.argmax()], (len(permutation), found.shape[1]))
    return every[:, :size].astype(int), every[:, size:]


def finish(
    proposal: Proposal, values: Values, lenses: Sequence[Lens], bad: Bad
) -> Candidate | None:
    """Move all draws, with slots that come a little closer; None where R-hat of all entries is not repaired."""
    # The sorting gets the labels that the first draw of all has.
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
        if not (bad[slot.name].any() and still_bad):  # else it came closer by chance
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
    """Turn all draws; None where that leaves R-hat as bad as it was."""
    own = turning.move(values)
    if not _are_repaired(own, bad):
        return None
    still = np.zeros((*next(iter(own.values())).shape[:2], 1), int)
    return Candidate(
        _in_order(turning.slots, values), turning.gain, False, True, own, still, still + 1.0
    )


def _are_repaired(own: Values, bad: Bad) -> bool:
    """Tell whether hardly an entry of moved variables has a bad R-hat, if one had before."""
    if not any(bad[name].any() for name in own):
        return True
    left = np.concatenate([bad_entries(drawn) for drawn in own.values()])
    return bool(left.sum() <= (1 - MENDED) * left.size)


def _in_order(slots: Sequence[Slot], values: Values) -> tuple[Slot, ...]:
    order = list(values)
    return tuple(sorted(slots, key=lambda slot: order.index(slot.name)))


def _closest(sorting: Sorting, signed: np.ndarray) -> tuple[tuple[int, int], float]:
    """The two parts that are closest, by means and variances of the features; a part twice where its own sign is."""
    mean, variance = sorting.mean, sorting.variance
    both = (variance[:, None] + variance[None]) / 2
    distances = ((mean[:, None] - mean[None]) ** 2 / both).sum(axis=2)
    np.fill_diagonal(distances, np.inf)
    if signed.any():
        mirrored = np.where(signed, -mean, mean)
        flipped = ((mean[:, None] - mirrored[None]) ** 2 / both).sum(axis=2)
        distances = np.minimum(distances, flipped)
    first, second = np.unravel_index(distances.argmin(), distances.shape)
    nearest = float(np.sqrt(distances.min()))
    return (int(min(first, second)), int(max(first, second))), nearest


def split_rhat(values: Float[np.ndarray, "chain draw entry"]) -> Float[np.ndarray, " entry"]:
    """R-hat of halves of chains, without ranks: quick, to choose among candidates; NaN where nothing varies."""
    half = values.shape[1] // 2
    halves = np.concatenate([values[:, :half], values[:, half : 2 * half]])
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = halves.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.sqrt((half - 1) / half + between / within)


def bad_entries(values: Float[np.ndarray, "chain draw *event"]) -> Bool[np.ndarray, " param"]:
    """Which entries have a bad R-hat; not those of which it is not defined."""
    return rhat_of_entries(flat(values)) > BAD_RHAT
