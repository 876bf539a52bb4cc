"""Components that are separate parameters or single positions, such as mu1 and mu2, searched on their stacked view.

The log density shows which members may be counterparts of one another; if it does not, their names do. Axes of a
simplex, complements, signs and positions of a vector that move along are found as for arrays.

With all coordinates of the unconstrained space at zero, parameters with one support are equal, simplexes even and
signed parameters zero; every exchange leaves this point unchanged. The answer of a member is the log density there with
only this member moved. Members that an exchange maps onto one another have the same answers, and so have pairs of
members and their images. So, when two members are exchanged, those whose joint answers with the first and with the
second differ have to move along. n members, m of them with the same answer, take about 2 n + m^2 evaluations. The
search compares the resulting candidates at random points.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations
from typing import Any

import numpy as np

from onebasin.models.symmetry.block import Block
from onebasin.models.symmetry.exchangeable import Counterparts, Member

from .groups import replaceable
from .measuring import BudgetedDensity, Generator, Shapes, on_parts, points_of, swaps
from .result import FoundBlock, positions
from .search import Axes, Search, StackedSearch, search
from .stages import exchange, held_near

LEVELS = (0.0, 0.8, -0.5)
"""Coordinates of the point that exchanges leave unchanged, and of the points to which members are moved."""
MOST = 32  # maximum number of members of which pairs are compared; the largest groups are left out first
Tuples = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Answers:
    """The answers of the log density.

    `pairs` (member, member) are answers with the first member moved up and the second one down; NaN on the diagonal.
    Members in `turned` are zero or one half at the unchanged point, so an exchange may turn them into their negative
    or complement. Pairs do not show that, because members are moved up and down by unequal steps.
    """

    groups: tuple[tuple[int, ...], ...]  # several members of one support with the same answer
    pairs: np.ndarray
    slack: float  # tolerance for rounding
    turned: frozenset[int]
    own: tuple[
        str, ...
    ]  # the variable of a member; of a variable and its complement only one moves

    def exchange(self, first: int, second: int) -> dict[int, int] | None:
        """Return the exchange of two members with all others that have to move along; None if nothing fits."""
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
        """Check whether a member's joint answers with all moved members are those of its image with their images."""
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
    """Yield tuples of counterparts that may be exchanged together, all of one length at a time."""
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
    """Combine exchanges of a first member with others that move the same quantities of its component."""
    seconds = list(exchanges)
    chosen = seconds[:1]
    # The member of each pair that is declared first.
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
    """Evaluate all answers; return None if they decide nothing."""
    density = measured.density
    values = density.constrain(np.outer(LEVELS, np.ones(density.dim)))
    base, up, down = points_of(values)
    (probe,) = measured.probes([base])
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
    slack = 4.0 * probe.slack(largest)
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


_COUNTED = re.compile(r"\d+|(?<=_)[A-Za-z](?=_|$)")
"""The part in which names of one family differ: the last number, or letter between underscores."""
FEW_PLACES = (
    8  # maximum length of a simplex of which pairs of places are tried along with other components
)


def families(shapes: Shapes) -> Mapping[str, tuple[str, ...]]:
    """Group parameters of one shape whose names differ only in a number or letter, in its order."""
    found: dict[tuple[str, tuple[int, ...]], dict[str, str]] = {}
    for name, shape in shapes.items():
        *_, last = [None, *_COUNTED.finditer(name)]
        if last is not None:
            common = f"{name[: last.start()]}#{name[last.end() :]}"
            found.setdefault((common, tuple(shape)), {})[last.group()] = name
    members = [
        tuple(each[count] for count in sorted(each, key=lambda text: (len(text), text)))
        for each in found.values()
        if len(each) > 1
    ]
    return {f"({', '.join(names)})": names for names in members}


def exchanged(s: Search) -> Iterator[FoundBlock]:
    """Yield blocks that exchange components of arrays with places of a simplex, whole parameters, or positions."""
    for length in s.lengths:  # components of arrays together with some places of a longer simplex
        free = _free(s)
        tied = _axes(free, length)
        tries = _with_places(s, swaps(tied, 0, 1), free, length) if tied else []
        yield from _of_tries(s, s, tied, tries)
    whole = _free(s)
    found = list(candidates(s.measured, list(whole)))
    paired = {name for tuples in found for own in tuples for name in own}
    named = [own for own in families(whole).values() if not paired & set(own)]
    for tuples in found:
        yield from _together(s, (*tuples, *(own for own in named if len(own) == len(tuples[0]))))
    for length in dict.fromkeys(map(len, named)):
        yield from _together(s, tuple(own for own in named if len(own) == length))
    rest = _free(s)
    mirrored = [f"1-{g.name}" for g in s.shares if g.name in rest]
    for tuples in candidates(s.measured, [*rest, *mirrored]) if len(mirrored) > 1 else ():
        yield from _together(s, tuples)
    rest = _free(s)
    members = [name for name, shape in rest.items() if not shape]
    for name, shape in rest.items():
        if len(shape) == 1 and shape[0] <= MOST:
            members += positions(Generator(name, "swap", 0), range(shape[0]), 1)
    if len(members) > sum(not shape for shape in rest.values()):
        for tuples in candidates(s.measured, members):
            # A harmless symmetry of positions has been reported for their axis.
            yield from (b for b in _together(s, tuples) if b.status != "harmless")


def _flips(s: Search) -> list[Block[Any]]:
    """Return the live blocks of whole variables that change sign."""
    blocks = [each.block for each in s.found if each.status == "live" and each.block is not None]
    return [b for b in blocks if not b.axes and set(b.variables) == set(b.flipped)]


def _with_signs(s: Search, found: FoundBlock) -> FoundBlock:
    """Join a live exchange with changes of sign of its components; others cannot be expressed with it."""
    block: Any = found.block
    if found.status != "live":
        return found
    flips = [each for each in _flips(s) if set(each.flipped) & set(block.variables)]
    signed = {name for each in flips for name in each.flipped}
    names = [name for name in block.axes if signed & set(name.split("~"))]
    components = {frozenset(own) for own in zip(*(name.split("~") for name in names), strict=False)}
    if not flips:
        return found
    if components != {frozenset(each.flipped) for each in flips}:
        said = "No block can express this together with the changes of sign that were found, so it is not used."
        return replace(found, block=None, status="incomplete", evidence=(*found.evidence, said))
    s.found[:] = [each for each in s.found if each.block not in flips]
    said = f"Each component may change the sign of {' and '.join(names)}."
    block = replace(block, flips=tuple(names))
    return replace(found, block=block, evidence=(*found.evidence, said))


def _free(s: Search) -> dict[str, tuple[int, ...]]:
    """Return the parameters that no block moves yet."""
    taken = {
        name
        for found in s.found
        if found.block is not None
        and found.status in ("live", "harmless", "undecided")
        and found.block not in _flips(s)
        for name in found.block.variables
    }
    shapes = s.measured.density.shapes
    return {name: tuple(shape) for name, shape in shapes.items() if name not in taken}


def _together(s: Search, tuples: Tuples) -> Iterator[FoundBlock]:
    """Search exchanges of counterparts, along with axes, complements, signs, and places of a longer simplex."""
    free = _free(s)
    tuples = tuple(own for own in tuples if {Member.read(text).name for text in own} <= set(free))
    if not tuples:
        return
    block, length = Counterparts(tuples), len(tuples[0])
    inner = StackedSearch(s, block)
    tied = [(name, 0) for name in block.members]
    rest = {name: shape for name, shape in free.items() if name not in block.variables}
    plain = swaps([*tied, *_axes(rest, length)], 0, 1) + (inner.shares if length == 2 else [])
    tries = [plain]
    signed = [Generator(name, "negate") for name in inner.signed if name in rest]
    if signed and length == 2:
        tries.append(plain + signed)
    found = list(_of_tries(s, inner, tied, [*tries, *_with_places(inner, plain, rest, length)]))
    yield from found
    if not found and len(tries) > 1:
        near = s.nearest
        yield from held_near(_of_tries(near, StackedSearch(near, block), tied, tries[1:]))


def _of_tries(
    s: Search, inner: Search, tied: Axes, tries: Sequence[list[Generator]]
) -> Iterator[FoundBlock]:
    left = {name for name, _ in tied}
    for generators in tries if left else ():
        space = search(generators, inner)
        for chosen in space.basis:
            own = space.moves.generators(chosen)
            moved = {g.name for g in own} & left
            if moved and moved == {g.name for g in own} & {name for name, _ in tied}:
                shapes = inner.measured.density.shapes
                name, axis = next(place for place in tied if place[0] in moved)
                placed = _placed(inner, own, shapes[name][axis])
                if placed:
                    left -= moved
                    yield _with_signs(s, exchange(s, placed, shapes[name][axis]))
        if not left:
            break


def _axes(shapes: Shapes, length: int) -> Axes:
    return [(n, axis) for n, shape in shapes.items() for axis, k in enumerate(shape) if k == length]


def _with_places(
    inner: Search, plain: list[Generator], free: Shapes, length: int
) -> list[list[Generator]]:
    """Add swaps of two places of a longer simplex to the moves, for every pair of places."""
    found = []
    for size in range(length + 1, FEW_PLACES + 1):
        places = _axes(free, size)
        groups = [tuple(swaps([place], 0, 1)) for place in places]
        fits = replaceable(groups, 0, 1, inner)
        simplexes = [place for place, fit in zip(places, fits, strict=True) if not fit]
        if simplexes:
            found += [plain + swaps(simplexes, *pair) for pair in combinations(range(size), 2)]
    return found


def _placed(inner: Search, own: Sequence[Generator], length: int) -> list[Generator] | None:
    """Find the place of every component in longer simplexes; None if some component has none."""
    shapes = inner.measured.density.shapes
    longer = [g for g in own if isinstance(g.axis, int) and shapes[g.name][g.axis] > length]
    others = [g for g in own if g not in longer]
    if not longer:
        return list(own)
    places, axis = list(longer[0].parts), longer[0].axis
    assert isinstance(axis, int)
    for component in range(2, length):
        moved = on_parts(others, (0, component))
        left = [k for k in range(shapes[longer[0].name][axis]) if k not in places]
        firsts = places if component == 2 else places[:1]
        fits = (
            (first, place)
            for first in firsts
            for place in left
            if inner.trial([*moved, *on_parts(longer, (first, place))]).holds
        )
        first, place = next(fits, (None, None))
        if first is None or place is None:
            return None
        places = [first, *(k for k in places if k != first), place]
    return [*others, *on_parts(longer, tuple(places))]
