"""Whether a candidate is a symmetry by which draws can be aligned, one whose parts overlap, or none.

Thresholds were set on simulated posteriors of 52 families with known answers, and hold for others: see
docs/explanations/finding-symmetries.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .gain import Gain
from .move import MENDED, Entries, Moving, split_rhat
from .slots import Slot

CLEAR_ELEMENTS = 0.95
"""Certainty from which a candidate comes before others that mend as much."""


@dataclass(frozen=True, eq=False)
class Judged:
    """A candidate before all its entries are looked at.

    Attributes
    ----------
    moving : Moving
        What moves.
    gain : Gain
        The ratios are the lesser of all together and the seed's own.
    certain : bool
        As of a `Candidate`.
    mended : int
        About how many entries' R-hat was bad and is good afterwards.
    limit : float
        R-hat above which an entry is bad.
    """

    moving: Moving
    gain: Gain
    certain: bool
    mended: int
    limit: float

    @property
    def slots(self) -> tuple[Slot, ...]:
        """What moves, the seed first."""
        return self.moving.slots

    @property
    def places(self) -> set[tuple[str, tuple[int, ...]]]:
        """Where that is."""
        return {(slot.name, slot.axes) for slot in self.slots}


def rank(candidate: Judged) -> tuple[bool, int, bool, float]:
    """Order candidates: certain, mending most, clear, leaving least beside noise; signs count against one."""
    unclear = candidate.gain.sorting.certainty < CLEAR_ELEMENTS
    left = beside(candidate.slots[0], candidate.gain)
    return (not candidate.certain, -candidate.mended, unclear, left)


def beside(seed: Slot, gain: Gain) -> float:
    """What is left beside noise, counted higher where signs may change, which are freer to gain."""
    return gain.beside_noise * (1.7 if seed.signed else 1)


def judge(
    moving: Moving,
    gain: Gain,
    entries: Entries,
    limit: float,
    *,
    first: bool,
) -> Judged | None:
    """Decide; None where it is no symmetry.

    Parameters
    ----------
    moving, gain, entries
        The candidate, what it gains, and what it does to R-hat.
    limit : float
        R-hat above which an entry is bad.
    first : bool
        Whether nothing was found before.
    """
    signed = any(slot.signed for slot in moving.slots)
    after = split_rhat(entries.own) > limit
    mended = round(float((entries.before & ~after).sum()) / entries.share)
    if entries.before.any():

        def by_chain() -> bool:
            return bool(np.mean(~(split_rhat(entries.common()) > limit)) >= MENDED)

        repairs = bool(np.mean(~after) >= MENDED)
        certain = repairs and _mends(gain, by_chain)
        ambiguous = first and repairs and _perhaps_mends(gain, mended, signed=signed)
    else:
        certain = _switches(gain)
        # An entry of a square belongs to two parts, so that noise of single parts is no yardstick for squares alone.
        squares = all(len(slot.axes) == 2 for slot in moving.slots)
        ambiguous = not signed and not squares and _perhaps_switches(gain)
    if not (certain or ambiguous):
        return None
    return Judged(moving, gain, certain, mended, limit)


def _mends(gain: Gain, by_chain: Callable[[], bool]) -> bool:
    """Some entry was bad: labels differ between chains, which whole chains' elements or sure draws' mend."""
    certainty, left = gain.sorting.certainty, gain.beside_noise
    if gain.gain >= 0.9:
        return False
    return (certainty >= 0.985 and left < 0.75) or (certainty >= 0.8 and left < 0.9 and by_chain())


def _perhaps_mends(gain: Gain, mended: int, *, signed: bool) -> bool:
    little = gain.beside_noise < (0.6 if signed else 0.8)
    return little and gain.sorting.certainty > 0.8 and (gain.switching > 0.8 or mended > 0)


def _switches(gain: Gain) -> bool:
    """None was bad: labels change at every draw, or there is nothing."""
    return (
        gain.switching > 0.9
        and gain.gain < 0.75
        and gain.beside_noise < 0.75
        and gain.sorting.certainty >= 0.985
    )


def _perhaps_switches(gain: Gain) -> bool:
    certainty, left = gain.sorting.certainty, gain.beside_noise
    overlap = (left < 0.8 and certainty > 0.8) or (left < 0.6 and certainty > 0.5)
    return gain.switching > 0.9 and gain.gain < 0.9 and overlap
