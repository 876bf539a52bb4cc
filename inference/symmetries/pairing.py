"""Candidates for exchanges of separate parameters, or of single positions: members that answer alike.

With all coordinates of the unconstrained space at zero, parameters of one support are equal, simplexes even and signed
parameters zero: a point that every exchange leaves alone. A member's answer is the log density there with this member
alone moved. Members that an exchange maps onto one another answer alike, and pairs of members answer as the pairs do
that they are mapped onto. So the exchange of two members tells which others move along: those whose answers with the
first and with the second differ. n members, m of them alike, take about 2 n + m^2 evaluations, and no list of names.
What comes of it is a candidate, which the search compares at random points.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from onebasin.models.symmetry.counterparts import Member

from .measuring import BudgetedDensity, points_of

LEVELS = (0.0, 0.8, -0.5)
"""Coordinates: of the point that exchanges leave alone, and of what members are moved to."""
MOST = 32
"""Members that answer alike whose pairs are compared; of more the largest groups are left out."""
Tuples = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Answers:
    """The answers of the log density.

    `pairs` (member, member) are answers where the first member is moved up and the second one down; NaN of one member.
    The members in `turned` are zero or one half at the point that exchanges leave alone, so that an exchange may turn
    them into their negative or complement: no pair tells of that, as they are moved up and down by unequal steps.
    """

    groups: tuple[tuple[int, ...], ...]  # members of one support that answer alike, several each
    pairs: np.ndarray
    slack: float  # what rounding may change
    turned: frozenset[int]
    own: tuple[str, ...]  # what a member changes: of a variable and its complement only one moves

    def exchange(self, first: int, second: int) -> dict[int, int] | None:
        """The exchange of two members with all that has to move along; None where nothing fits."""
        moved = {first: second, second: first}
        if self.own[first] == self.own[second] or not self._fits(first, second, moved):
            return None
        others = [(k, group) for group in self.groups for k in group]
        signs: set[int] = set()
        changed = True
        while changed:
            changed = False
            for k, group in others:
                taken = {self.own[each] for each in (*moved, *signs)}
                if self.own[k] in taken or self._fits(k, k, moved):
                    continue
                free = (m for m in group if self.own[m] not in {self.own[k], *taken})
                found = next(
                    (m for m in free if self._fits(k, m, moved) and self._fits(m, k, moved)), None
                )
                if found is None and k not in self.turned:
                    return None
                if found is None:
                    signs.add(k)
                    continue
                moved |= {k: found, found: k}
                changed = True
        return moved

    def _fits(self, k: int, image: int, moved: dict[int, int]) -> bool:
        """Tell whether a member answers with everything that moves as its image does with the images."""
        here, there = list(moved), list(moved.values())
        with np.errstate(invalid="ignore"):
            change = np.abs(
                [
                    self.pairs[k, here] - self.pairs[image, there],
                    self.pairs[here, k] - self.pairs[there, image],
                ]
            )
        return not (change > self.slack).any()


def candidates(measured: BudgetedDensity, members: Sequence[str]) -> Iterator[Tuples]:
    """Yield tuples of counterparts that may change places together, all of one length at a time."""
    answers = _answers(measured, members)
    if answers is None:
        return
    used: set[int] = set()
    for group in answers.groups:
        for first in group:
            if first in used:
                continue
            exchanges: dict[int, dict[int, int]] = {}
            for second in group:
                known = {answers.own[k] for k in exchanges}
                if second > first and second not in used and answers.own[second] not in known:
                    moved = answers.exchange(first, second)
                    if moved and not used & set(moved):
                        exchanges[second] = moved
            if exchanges:
                rows = _assembled(first, exchanges)
                taken = {answers.own[k] for row in rows for k in row}
                used |= {k for k, name in enumerate(answers.own) if name in taken}
                yield tuple(tuple(members[k] for k in row) for row in rows)


def _assembled(first: int, exchanges: dict[int, dict[int, int]]) -> list[tuple[int, ...]]:
    """Components from the exchanges of the first one with others: those that move the same quantities of the first."""
    seconds = list(exchanges)
    chosen = seconds[:1]
    # Of each pair that moves along with two members, the one that is declared first.
    pairs = exchanges[chosen[0]].items()
    along = {min(pair) for pair in pairs if not set(pair) & {first, chosen[0]}}
    for other in seconds[1:]:
        before = set(exchanges[seconds[0]]) - {first, seconds[0]}
        after = set(exchanges[other]) - {first, other}
        shared = before & after
        rows = [(first, *chosen, other)]
        rows += [(k, *(exchanges[j][k] for j in (*chosen, other))) for k in sorted(shared)]
        flat = [k for row in rows for k in row]
        fits = len(after) == len(before) == 2 * len(shared) and len(set(flat)) == len(flat)
        if fits and (len(chosen) == 1 or shared == along):
            chosen, along = [*chosen, other], shared
    return [(first, *chosen), *((k, *(exchanges[j][k] for j in chosen)) for k in sorted(along))]


def _answers(measured: BudgetedDensity, members: Sequence[str]) -> Answers | None:
    """Ask for all answers; None where nothing can be told."""
    density = measured.density
    values = density.constrain(np.outer(LEVELS, np.ones(density.dim)))
    base, up, down = points_of(values)
    probe = measured.probe(base)
    if not probe.known:
        return None
    read = [Member.read(text) for text in members]
    plain = [each._replace(sign="") for each in read]

    def moved(*changes: tuple[int, dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
        out = dict(base)
        for k, source in changes:
            read[k].put(out, plain[k].of(source, 0), 0)
        return out

    every = range(len(read))
    alone = measured([moved((k, level)) for k in every for level in (up, down)]).reshape(-1, 2)
    known = np.isfinite(alone).all(axis=1)
    largest = np.abs(alone[known]).max(initial=abs(probe.value))
    slack = 4.0 * probe.tolerance * (1.0 + largest) / (1.0 + abs(probe.value))
    supports = [np.stack([plain[k].of(level, 0) for level in (base, up, down)]) for k in every]

    def alike(a: int, b: int) -> bool:
        if supports[a].shape != supports[b].shape or abs(alone[a, 1] - alone[b, 1]) > slack:
            return False
        return np.allclose(supports[a], supports[b], rtol=1e-9, atol=1e-12)

    groups: list[list[int]] = []
    for k in np.flatnonzero(known).tolist():
        near = (own for own in groups if abs(alone[own[0], 0] - alone[k, 0]) <= slack)
        group = next((own for own in near if alike(own[0], k)), None)
        if group is None:
            groups.append([k])
        else:
            group.append(k)
    groups = sorted((group for group in groups if len(group) > 1), key=len)
    while sum(map(len, groups)) > MOST:
        groups.pop()
    flat = [k for group in groups for k in group]
    if not flat:
        return None
    pairs = np.full((len(read), len(read)), np.nan)
    places = list(permutations(flat, 2))
    found = measured([moved((a, up), (b, down)) for a, b in places])
    pairs[tuple(np.transpose(places))] = found
    centre = [np.asarray(plain[k].of(base, 0)) for k in every]
    turned = frozenset(k for k in flat if np.isin(centre[k], (0.0, 0.5)).all())
    own = tuple(text.removeprefix("1-") for text in members)
    return Answers(tuple(map(tuple, groups)), pairs, slack, turned, own)
