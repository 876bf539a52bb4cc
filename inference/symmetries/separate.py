"""Components that are separate parameters, or single positions, such as mu1 and mu2: searched on their stacked view.

Which members may be counterparts of one another `pairing` tells by what the log density answers, and else their names.
What moves along, the axis of a simplex, a complement, a sign or positions of a vector, is found as for arrays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import combinations

from onebasin.models.symmetry.counterparts import Counterparts

from .describe import positions
from .moves import Generator, Shapes, swaps
from .pairing import MOST, Tuples, candidates
from .result import FoundBlock
from .search import Search
from .spaces import search
from .stacked import StackedSearch
from .stages import exchange

_COUNTED = re.compile(r"\d+|(?<=_)[A-Za-z](?=_|$)")
"""What names of one family differ in: a number, or a letter between underscores; the last one counts."""
FEW_PLACES = 8
"""Places of an axis up to which pairs of them are tried along with counterparts."""


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
    """Yield what exchanges whole parameters, then scalars and single positions of vectors."""
    whole = _free(s)
    found = [tuples for each in candidates(s.measured, list(whole)) for tuples in each]
    paired = {name for own in found for name in own}
    found += [own for own in families(whole).values() if not paired & set(own)]
    yield from _of_tuples(s, found)
    rest = _free(s)
    members = [name for name, shape in rest.items() if not shape]
    for name, shape in rest.items():
        if len(shape) == 1 and 1 < shape[0] <= MOST:
            members += positions(Generator(name, "swap", 0), range(shape[0]), 1)
    if len(members) > sum(not shape for shape in rest.values()):
        positions_too = [own for each in candidates(s.measured, members) for own in each]
        # What is harmless among the positions of one axis has been said of the axis.
        yield from (b for b in _of_tuples(s, positions_too) if b.status != "harmless")


def _free(s: Search) -> dict[str, tuple[int, ...]]:
    """The parameters that nothing moves of what was found."""
    taken = {
        name
        for found in s.found
        if found.block is not None and found.status in ("live", "harmless", "undecided")
        for name in found.block.variables
    }
    shapes = s.measured.density.shapes
    return {name: tuple(shape) for name, shape in shapes.items() if name not in taken}


def _of_tuples(s: Search, tuples: Tuples | list[tuple[str, ...]]) -> Iterator[FoundBlock]:
    for length in dict.fromkeys(map(len, tuples)):
        own = tuple(each for each in tuples if len(each) == length)
        yield from _together(s, Counterparts(own), length)


def _together(s: Search, block: Counterparts, length: int) -> Iterator[FoundBlock]:
    """Search what exchanges counterparts, alone, with signs, or with positions of a vector of another length."""
    inner = StackedSearch(s, block)
    left = set(block.members)
    for generators in _tries(inner, _free(s), length):
        space = search(generators, inner.measured, inner.probes)
        for chosen in space.basis:
            own = space.moves.generators(chosen)
            moved = {g.name for g in own} & set(block.members)
            if moved and moved <= left:
                left -= moved
                yield exchange(s, own, length)
        if not left:
            break


def _tries(inner: StackedSearch, free: Shapes, length: int) -> Iterator[list[Generator]]:
    """Sets of moves to search: the first has arrays of the same length and complements, the next ones more."""
    tied = [(name, 0) for name in inner.block.members]
    arrays = {n: s for n, s in free.items() if n not in inner.block.variables}
    along = [(n, axis) for n, s in arrays.items() for axis, each in enumerate(s) if each == length]
    plain = swaps([*tied, *along], 0, 1) + (inner.shares if length == 2 else [])
    yield plain
    if length > 2:
        return
    signed = [Generator(name, "negate") for name in inner.signed if name in arrays]
    if signed:
        yield plain + signed
    others = [
        (n, a) for n, s in arrays.items() for a, each in enumerate(s) if 2 < each <= FEW_PLACES
    ]
    for size in dict.fromkeys(arrays[name][axis] for name, axis in others):
        axes = [(name, axis) for name, axis in others if arrays[name][axis] == size]
        for first, second in combinations(range(size), 2):
            yield plain + swaps(axes, first, second)
