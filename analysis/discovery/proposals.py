"""A candidate before all its entries are looked at: whether it is one, and which of several comes first."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .moving import BAD_RHAT, MENDED, MovedEntries, Moving, split_rhat
from .slots import Slot
from .sorting import Gain

CLEAR_ELEMENTS = 0.95
"""Certainty from which a candidate comes before others that repair as much."""


@dataclass(frozen=True, eq=False)
class Proposal:
    """A candidate before all its entries are looked at.

    Attributes
    ----------
    moving : Moving
        What moves.
    gain : Gain
        The ratios are the lesser of all together and the seed's own.
    certain : bool
        As of a `Candidate`.
    repaired : int
        About how many entries' R-hat was bad and is good afterwards.
    """

    moving: Moving
    gain: Gain
    certain: bool
    repaired: int

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The slots that move, the seed first."""
        return self.moving.slots

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


def judge(moving: Moving, gain: Gain, entries: MovedEntries, *, first: bool) -> Proposal | None:
    """Decide on a candidate by its gain and its effect on R-hat; None where it is no symmetry.

    `first` says whether nothing was found before.
    """
    signed = any(slot.signed for slot in moving.slots)
    certainty, left = gain.sorting.certainty, gain.beside_noise
    after = split_rhat(entries.own) > BAD_RHAT
    repaired = round(float((entries.before & ~after).sum()) / entries.share)
    if entries.before.any():
        # Labels differ between chains, and whole chains' elements or sure draws' repair that.
        repairs = bool(np.mean(~after) >= MENDED)
        certain = repairs and gain.gain < 0.9 and certainty >= 0.985 and left < 0.75
        if repairs and not certain and gain.gain < 0.9 and certainty >= 0.8 and left < 0.9:
            certain = bool(np.mean(~(split_rhat(entries.common()) > BAD_RHAT)) >= MENDED)
        little = left < (0.6 if signed else 0.8) and certainty > 0.8
        ambiguous = first and repairs and little and (gain.switching > 0.8 or repaired > 0)
    else:
        # Labels change at every draw, or there is nothing.
        changing = gain.switching > 0.9
        certain = changing and gain.gain < 0.75 and left < 0.75 and certainty >= 0.985
        # An entry of a square belongs to two parts, so that noise of single parts is no yardstick for squares alone.
        squares = all(len(slot.axes) == 2 for slot in moving.slots)
        overlap = (left < 0.8 and certainty > 0.8) or (left < 0.6 and certainty > 0.5)
        ambiguous = not signed and not squares and changing and gain.gain < 0.9 and overlap
    if not (certain or ambiguous):
        return None
    return Proposal(moving, gain, certain, repaired)
