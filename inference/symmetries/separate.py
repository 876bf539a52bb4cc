"""Components that are separate parameters, or single positions, such as mu1 and mu2: searched on their stacked view.

Which members may be counterparts of one another `pairing` tells by what the log density answers, and else their names.
What moves along, the axis of a simplex, a complement, a sign or positions of a vector, is found as for arrays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

from onebasin.models.symmetry.block import Block
from onebasin.models.symmetry.counterparts import Counterparts, Member

from .describe import positions
from .moves import Generator, Shapes, on_parts, swaps
from .pairing import MOST, Tuples, candidates
from .result import FoundBlock
from .search import Axes, Search
from .spaces import search, trial
from .stacked import StackedSearch
from .stages import exchange, held_near
from .status import replaceable

_COUNTED = re.compile(r"\d+|(?<=_)[A-Za-z](?=_|$)")
"""The part in which names of one family differ: a number, or a letter between underscores; the last one counts."""
FEW_PLACES = 8
"""Places of a simplex up to which pairs of them are tried along with other components."""


def families(shapes: Shapes) -> Mapping[str, tuple[str, ...]]:
    """Gather the parameters of one shape whose names differ in what counts them, in the order of that."""
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
    """Yield what exchanges components of arrays with places of a simplex, whole parameters, and single positions."""
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
            # What is harmless among the positions of one axis has been said of the axis.
            yield from (b for b in _together(s, tuples) if b.status != "harmless")


def _flips(s: Search) -> list[Block[Any]]:
    """Whole variables found to change sign, which the components of an exchange may do."""
    blocks = [each.block for each in s.found if each.status == "live" and each.block is not None]
    return [b for b in blocks if not b.axes and set(b.variables) == set(b.flipped)]


def _with_signs(s: Search, found: FoundBlock) -> FoundBlock:
    """Join a live exchange with the changes of sign that its components have; no block says those of others."""
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
        said = "No block says this together with the changes of sign that are found, so that it is not used."
        return replace(found, block=None, status="incomplete", evidence=(*found.evidence, said))
    s.found[:] = [each for each in s.found if each.block not in flips]
    said = f"Each component may change the sign of {' and '.join(names)}."
    block = replace(block, flips=tuple(names))
    return replace(found, block=block, evidence=(*found.evidence, said))


def _free(s: Search) -> dict[str, tuple[int, ...]]:
    """The parameters that nothing moves of what was found."""
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
    """Search what exchanges counterparts, and with them axes, complements, signs, and places of a longer simplex."""
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
        space = search(generators, inner.measured, inner.probes)
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
    """Moves together with swaps of two places of simplexes, whose places do not change one by one."""
    found = []
    for size in range(length + 1, FEW_PLACES + 1):
        places = _axes(free, size)
        groups = [tuple(swaps([place], 0, 1)) for place in places]
        fits = replaceable(groups, 0, 1, inner.measured, inner.probes)
        simplexes = [place for place, fit in zip(places, fits, strict=True) if not fit]
        if simplexes:
            found += [plain + swaps(simplexes, *pair) for pair in combinations(range(size), 2)]
    return found


def _placed(inner: Search, own: Sequence[Generator], length: int) -> list[Generator] | None:
    """Find the place of every component in simplexes that are longer; None where there is none."""
    shapes = inner.measured.density.shapes
    longer = [g for g in own if g.axis is not None and shapes[g.name][g.axis] > length]
    others = [g for g in own if g not in longer]
    if not longer:
        return list(own)
    places = list(longer[0].parts)
    for component in range(2, length):
        moved = on_parts(others, (0, component))
        left = [k for k in range(shapes[longer[0].name][longer[0].axis or 0]) if k not in places]
        firsts = places if component == 2 else places[:1]
        fits = (
            (first, place)
            for first in firsts
            for place in left
            if trial(
                [*moved, *on_parts(longer, (first, place))], inner.measured, inner.probes
            ).holds
        )
        first, place = next(fits, (None, None))
        if first is None or place is None:
            return None
        places = [first, *(k for k in places if k != first), place]
    return [*others, *on_parts(longer, tuple(places))]
