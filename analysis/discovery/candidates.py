"""Candidates: slots that move together, as a block of a symmetry, with what speaks for it.

Components may be parameters of their own, such as `mu1` and `mu2`, or `a`, `b` with `c`, `d`.
Tuples of parameters of one shape are laid side by side, as one more variable ``mu1~mu2`` whose first axis is that of
the components; the search then treats it like any other. Three components and more have names that differ in a number,
or means that they trade between chains; of two, every pair is looked at that may be a label's: where parameters
disagree between chains their sum agrees, or their difference has two signs and hardly a value near zero. Of two
probabilities, each may take the place of the other's complement, ``se~1-sp``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np
from jaxtyping import Float, Int
from scipy.sparse.csgraph import connected_components

from onebasin.models.symmetry.blocks import Block, Counterparts, Exchangeable, Flip, Rotation
from onebasin.models.symmetry.exchangeable import Member
from onebasin.models.symmetry.words import spell

from .slots import Labels, Slot, Values, numbered, of_chains
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


MOST = 40
"""Parameters of one shape that are paired at most."""
NEAR = 0.5
"""Standard deviations within chains, up to which the mean of one parameter is that of another in another chain."""
ENTRIES = 64
"""Entries of a parameter at most, to be one of its components'."""
BOTH = 0.02
"""Share of draws in which a difference has its rarer sign, from which on it may change with labels."""
APART = 0.25
"""Variance of a difference's size over its mean square, below which it is bimodal."""

RARE = 0.01
"""Share of draws up to which a labelling does not count."""
TIED = 0.9
"""Share of the draws of a labelling that have one and the same of another: overlap makes it less than 1."""
MOSTLY = 0.7
"""Share of the draws that have their chain's labelling, from which on it is the chain's: overlap hides it in some."""

_NUMBER = re.compile(r"\d+")

Tuples = tuple[tuple[str, ...], ...]


def tuples_of(values: Values, bad: Mapping[str, np.ndarray]) -> tuple[Tuples, Tuples]:
    """Choose tuples of parameters that may be components: those from which labels are read, and others.

    `bad` marks the entries whose R-hat is bad.
    """
    shapes: dict[tuple[int, ...], list[str]] = {}
    for name, drawn in values.items():
        if drawn[0, 0].size <= ENTRIES:
            shapes.setdefault(drawn.shape[2:], []).append(name)
    first: list[tuple[str, ...]] = []
    others: list[tuple[str, ...]] = []
    for names in shapes.values():
        names = sorted(names, key=lambda name: not bad[name].any())[:MOST]
        pairs = list(combinations(sorted(names, key=list(values).index), 2))
        for a, b in pairs:
            either = bool(bad[a].any() or bad[b].any())
            shown = _may_switch(values[a], values[b], either)
            (first if shown else others).append((a, b))
            shares = all(values[n].min() > 0 and values[n].max() < 1 for n in (a, b))
            if shares and not shown and _may_switch(values[a], 1 - values[b], either):
                first.append((a, f"1-{b}"))
        numbered = tuple(families(names))
        known = {name for own in numbered for name in own}
        first += numbered
        first += _trading({n: values[n] for n in names if bad[n].any() and n not in known})
    return tuple(first), tuple(others)


def _trading(values: Values) -> Iterator[tuple[str, ...]]:
    """Gather three parameters and more that have, in one chain, the mean that another of them has in another chain."""
    flat = {n: v.reshape(*v.shape[:2], -1) for n, v in values.items()}
    means = {n: v.mean(axis=1) for n, v in flat.items()}
    near = np.zeros((len(flat), len(flat)), bool)
    for (i, a), (j, b) in combinations(enumerate(flat), 2):
        spread = np.maximum(flat[a].std(axis=1).mean(axis=0), flat[b].std(axis=1).mean(axis=0))
        traded = (np.abs(means[a][:, None] - means[b]) <= NEAR * spread).all(axis=2)
        near[i, j] = (traded.any(axis=0) & ~traded.diagonal()).any()
    count, of = connected_components(near, directed=False)
    groups = (tuple(n for n, k in zip(flat, of, strict=True) if k == own) for own in range(count))
    yield from (group for group in groups if len(group) > 2)


def families(names: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """Gather names of three components and more, which differ in their last number."""
    found: dict[tuple[str, str], dict[int, str]] = {}
    for name in names:
        if (last := _last_number(name)) is not None:
            common = name[: last.start()], name[last.end() :]
            found.setdefault(common, {})[int(last.group())] = name
    yield from (tuple(each[k] for k in sorted(each)) for each in found.values() if len(each) > 2)


def numbers_in(names: Iterable[str]) -> tuple[str, ...]:
    """Return the last numbers of names that differ in nothing else, such as 1 and 2; empty if they do."""
    last = {name: found for name in names if (found := _last_number(name)) is not None}
    common = {(name[: found.start()], name[found.end() :]) for name, found in last.items()}
    return tuple(found.group() for found in last.values()) if len(common) == 1 else ()


def _last_number(name: str) -> re.Match[str] | None:
    *_, last = [None, *_NUMBER.finditer(name)]
    return last


def _may_switch(
    a: Float[np.ndarray, "chain draw *event"], b: Float[np.ndarray, "chain draw *event"], bad: bool
) -> bool:
    """Tell whether two parameters may be one quantity of two components whose labels change."""
    flat = [v.reshape(*v.shape[:2], -1) for v in (a, b)]
    difference, total = flat[0] - flat[1], flat[0] + flat[1]
    below = (difference < 0).mean(axis=(0, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = np.abs(difference).var(axis=(0, 1)) / (difference**2).mean(axis=(0, 1))
        within = [v.var(axis=1).mean(axis=0) for v in (difference, total)]
        between = [v.mean(axis=1).var(axis=0) for v in (difference, total)]
        spread = [b / w for b, w in zip(between, within, strict=True)]
    seen = np.minimum(below, 1 - below) > BOTH
    seen &= (spread[0] > 10 * spread[1]) if bad else (apart < APART)
    return bool(seen.any())


def with_tuples(values: Values, tuples: Iterable[tuple[str, ...]]) -> dict[str, np.ndarray]:
    """Add every tuple as a variable (chain, draw, component, *event)."""
    read = {"~".join(own): [Member.read(text) for text in own] for own in tuples}
    stacked = {n: np.stack([m.of(values, 2) for m in own], axis=2) for n, own in read.items()}
    return {**values, **stacked}


def apart(slots: Iterable[Slot], moved: Values) -> dict[str, np.ndarray]:
    """Give moved variables under the names of the parameters."""
    out: dict[str, np.ndarray] = {}
    for slot in slots:
        if slot.members:
            for place, text in enumerate(slot.members):
                member = Member.read(text)
                out[member.name] = member.turned(moved[slot.name][:, :, place])
        else:
            out[slot.name] = moved[slot.name]
    return out


def are_tied(first: Labels, second: Labels) -> bool:
    """Tell whether two labellings determine each other in nearly all draws, or by chain if one belongs to the chain."""
    (one, alone), (other, also) = of_chains(first), of_chains(second)
    shares = (np.mean(first == one[:, None]), np.mean(second == other[:, None]))
    if (alone or also) and min(shares) > MOSTLY:
        first, second = one[:, None], other[:, None]
    pairs, counts = np.unique(np.stack([first.ravel(), second.ravel()]), axis=1, return_counts=True)
    partners: list[dict[int, int]] = []
    for own, other in (pairs, pairs[::-1]):
        sizes = {int(k): counts[own == k] for k in np.unique(own)}
        common = {k: each for k, each in sizes.items() if each.sum() > RARE * first.size}
        if len(common) < 2 or any(each.max() < TIED * each.sum() for each in common.values()):
            return False
        partners.append({k: int(other[own == k][each.argmax()]) for k, each in common.items()})
    there, back = partners
    return there == {theirs: ours for ours, theirs in back.items()}
