"""Candidates: slots that move together, as a block of a symmetry, with what speaks for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from onebasin.models.symmetry.blocks import Block, Counterparts, Exchangeable, Flip, Rotation
from onebasin.models.symmetry.words import spell

from .slots import Labels, Slot, Values, numbered
from .sorting import Gain


@dataclass(frozen=True, eq=False)
class Candidate:
    """Slots that move together, as a block of a symmetry; draws can be aligned by one that is certain."""

    slots: tuple[Slot, ...]  # in the order of the variables
    gain: Gain
    certain: bool  # else its components overlap or turn into one another
    turns: bool  # by continuous rotations, as factors that are not identified do
    values: Values  # the moved variables (chain, draw, *event), aligned
    permutation: Int[np.ndarray, "chain draw component"]  # all the same where components turn
    signs: Float[np.ndarray, "chain draw component"]
    closest: tuple[int, int] = (0, 1)  # twice the same part where its own sign is least clear
    distance: float = 0.0  # of these two, in their standard deviations
    places: tuple[int, ...] = ()  # the components that change places, where others do not

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
        axes = {s.name: s.axes if len(s.axes) > 1 else s.axes[0] for s in moved if s.axes}
        flips = tuple(slot.name for slot in moved if slot.signed)
        if tuples:
            return Counterparts(tuples, axes, flips or False, complements)
        if not axes:
            return Flip(tuple(slot.name for slot in moved), complements)
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
        flat = self.permutation.reshape(-1, self.size)
        rows, counts = np.unique(flat, axis=0, return_counts=True)
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
        first, second = self.closest
        moved = replace(
            self,
            slots=tuple(replace(slot, size=size) for slot in self.slots),
            values=values,
            permutation=permutation,
            signs=signs,
            closest=(int(places[first]), int(places[second])),
        )
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
