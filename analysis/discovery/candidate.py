"""Candidates: slots that move together, as a block of a symmetry, with the numbers that speak for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from onebasin.models.symmetry.blocks import Block, Counterparts, Exchangeable, Flip, Rotation
from onebasin.models.symmetry.words import spell

from .slots import Labels, Slot, Values, numbered


@dataclass(frozen=True)
class CandidateNumbers:
    """Numbers that speak for a candidate.

    Attributes
    ----------
    gain : float
        Variance of the sorted draws over that of the draws as they came.
    switching : float
        Variance of the draws as they came over their mean square: near 1 where labels change all the time.
    beside_noise : float
        What sorting leaves over what it leaves of noise: 1 for noise.
    certainty : float
        Mean probability, over draws, of the element that was chosen against swaps of two parts and changes of one sign.
    entries, bad, mended, left : int
        Entries that move; those whose R-hat was bad; those of them whose R-hat is good afterwards; all whose R-hat is
        bad afterwards.
    rhat_before, rhat_after : float
        Worst R-hat of the entries that move; NaN where it is not defined.
    closest : tuple of int
        The two parts that are closest to one another; the same part twice where its own sign is least clear.
    distance : float
        How far they are apart, in their standard deviations.
    """

    gain: float
    switching: float
    beside_noise: float
    certainty: float
    entries: int
    bad: int
    mended: int
    left: int
    rhat_before: float
    rhat_after: float
    closest: tuple[int, int]
    distance: float


@dataclass(frozen=True, eq=False)
class Candidate:
    """Slots that move together.

    Attributes
    ----------
    slots : tuple of Slot
        In the order of the variables.
    numbers : CandidateNumbers
        What speaks for it.
    certain : bool
        Whether draws can be aligned by it; otherwise its components overlap or turn into one another.
    turns : bool
        Whether components turn into one another by continuous rotations, as factors that are not identified do.
    values : mapping of str to array (chain, draw, *event)
        The moved variables, aligned.
    permutation, signs : array (chain, draw, component)
        The element of every draw; all the same where components turn.
    places : tuple of int
        The components that change places, where others do not; empty for all.
    """

    slots: tuple[Slot, ...]
    numbers: CandidateNumbers
    certain: bool
    turns: bool
    values: Values
    permutation: Int[np.ndarray, "chain draw component"]
    signs: Float[np.ndarray, "chain draw component"]
    places: tuple[int, ...] = ()

    @cached_property
    def labels(self) -> Labels:
        """The number of every draw's labelling."""
        return numbered(np.concatenate([self.permutation, self.signs], axis=2))

    @property
    def block(self) -> Block:
        """The candidate as a block of a symmetry, to align by."""
        if self.turns:  # loadings have fewer entries than scores, as a rule
            slots = sorted(self.slots, key=lambda slot: self.values[slot.name].size)
            return Rotation({slot.name: slot.axes[0] for slot in slots})
        if self.places:
            return self._block_of_places
        complements = tuple(slot.name for slot in self.slots if slot.complement)
        tuples = tuple(slot.members for slot in self.slots if slot.members)
        tuples += tuple((slot.name, f"-{slot.name}") for slot in self.slots if slot.reflected)
        moved = [slot for slot in self.slots if not (slot.mirrors or slot.members)]
        if tuples:
            along = {s.name: s.axes if len(s.axes) > 1 else s.axes[0] for s in moved}
            flips = tuple(slot.name for slot in moved if slot.signed)
            return Counterparts(tuples, along, flips or False, complements)
        if not any(slot.axes for slot in moved):
            return Flip(tuple(slot.name for slot in moved), complements)
        axes = {s.name: s.axes if len(s.axes) > 1 else s.axes[0] for s in moved}
        flips = tuple(slot.name for slot in moved if slot.signed)
        return Exchangeable(axes, len(flips) == len(moved) or flips or False, complements)

    @property
    def _block_of_places(self) -> Block:
        tuples = tuple(
            tuple(f"{slot.name}[{':,' * slot.axes[0]}{place}]" for place in self.places)
            for slot in self.slots
        )
        signed = (slot.signed for slot in self.slots)
        flips = tuple("~".join(own) for own, yes in zip(tuples, signed, strict=True) if yes)
        return Counterparts(tuples, flips=flips or False)

    @cached_property
    def few_places(self) -> Candidate | None:
        """The exchange of those components alone that change places in the draws; None where all do."""
        rows, counts = np.unique(
            self.permutation.reshape(-1, self.size), axis=0, return_counts=True
        )
        changes = (self.permutation != rows[counts.argmax()]).mean(axis=(0, 1)) > 0.01
        plain = all(len(slot.axes) == 1 and not slot.members for slot in self.slots)
        if not plain or not 1 < changes.sum() < self.size:
            return None
        return replace(self, places=tuple(int(k) for k in np.flatnonzero(changes)))

    def among(
        self, places: Int[np.ndarray, " place"], whole: Values, size: int
    ) -> Candidate | None:
        """Give the exchange of some places, found in these alone, as one of variables of more components."""
        still = np.broadcast_to(np.arange(size), (*self.permutation.shape[:2], size))
        permutation, signs = still.copy(), np.ones(still.shape)
        permutation[..., places], signs[..., places] = places[self.permutation], self.signs
        values = {}
        for slot in self.slots:
            values[slot.name] = whole[slot.name].copy()
            front = np.moveaxis(values[slot.name], slot.axes[0] + 2, 0)
            front[places] = np.moveaxis(self.values[slot.name], slot.axes[0] + 2, 0)
        first, second = self.numbers.closest
        numbers = replace(self.numbers, closest=(int(places[first]), int(places[second])))
        slots = tuple(replace(slot, size=size) for slot in self.slots)
        moved = Candidate(slots, numbers, self.certain, self.turns, values, permutation, signs)
        return moved.few_places

    @property
    def word(self) -> str:
        """The text to declare with ``--exchangeable``."""
        return spell(self.block)

    @property
    def size(self) -> int:
        """Number of components; 1 where whole variables change sign."""
        return self.slots[0].size


def of_few_places(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Give certain candidates of whole variables by the components alone that change places, where others do not."""
    whole = (each for each in candidates if each.certain and not each.places)
    return tuple(few for each in whole if (few := each.few_places) is not None)
