"""Separate parameters, or positions of a vector, that may be the same quantity of several components.

Their exchanges are not searched, only named. With all coordinates of the unconstrained space at zero, parameters with
one support are equal, simplexes even and signed parameters zero; every exchange leaves this point unchanged. So if an
exchange maps one parameter onto another, moving either of them from there changes the log density by the same amount.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from onebasin.models.symmetry.exchangeable import Member

from .groups import interact
from .measuring import Generator, Point, points_of
from .result import FoundBlock, positions
from .search import Search

LEVELS = (0.0, 0.8, -0.8)
"""Coordinates of the point that exchanges leave unchanged, and of the points to which one parameter is moved."""
LONGEST = 32  # Maximum length of a vector whose positions are compared.


def unsearched(s: Search) -> Iterator[FoundBlock]:
    """List parameters that may be exchanged as not searched, with the words to declare them; yield nothing."""
    statuses = ("live", "harmless", "undecided")
    blocks = [f.block for f in s.found if f.block and f.status in statuses]
    taken = {name for block in blocks if block.axes for name in block.variables}
    shapes = {n: shape for n, shape in s.measured.density.shapes.items() if n not in taken}
    groups = _alike(s, list(shapes))
    taken |= {name for block in blocks for name in block.variables}
    taken |= {Member.read(text).name for group in groups for text in group}
    free = {n: shape for n, shape in shapes.items() if n not in taken and len(shape) < 2}
    members = [name for name, shape in free.items() if not shape]
    for name, (length,) in ((name, shape) for name, shape in free.items() if shape):
        if length <= LONGEST:
            members += positions(Generator(name, "swap", 0), range(length), 1)
    groups += _alike(s, members)
    if len(groups) == 1 and len({Member.read(text).name for text in groups[0]}) == 1:
        # Pairs of positions along one axis have been searched, but not together with a probability.
        groups = groups if {g.name for g in s.shares} & set(shapes) else []
    by_size: dict[int, list[str]] = {}
    for group in groups:
        by_size.setdefault(len(group), []).append("~".join(group))
    for words in by_size.values():
        s.open.append(
            f"exchanges of separate parameters (if these are the same quantities of several components, declare "
            f"`{','.join(words)}` with everything that moves along)"
        )
    yield from ()


def _alike(s: Search, names: Sequence[str]) -> list[tuple[str, ...]]:
    """Group parameters and positions that change the log density alike and depend on one another."""
    if len(names) < 2:
        return []
    members = [Member.read(name) for name in names]
    dim = s.measured.density.dim
    base, *levels = points_of(s.measured.density.constrain(np.outer(LEVELS, np.ones(dim))))
    (probe,) = s.measured.probes([base])
    values = [np.stack([m.of(point, 0) for point in (base, *levels)]) for m in members]
    points = [_moved(base, level, (member,)) for member in members for level in levels]
    changes = s.measured(points).reshape(-1, len(levels))
    # Positions of a simplex may keep their values.
    moves = [not np.array_equal(value[0], value[1]) for value in values]
    known = np.isfinite(changes).all(axis=1) & np.array(moves)
    slack = 4.0 * probe.slack(np.abs(changes[known]).max(initial=0.0))
    left = np.flatnonzero(known).tolist()
    groups: list[tuple[str, ...]] = []
    while left:
        first, *left = left
        group = {first: names[first]}
        share = ((values[first] > 0) & (values[first] < 1)).all()
        # A probability may also take the place of the complement of another one.
        for sign in ("", "1-")[: 1 + share]:
            change = changes[first, ::-1] if sign else changes[first]
            near = (np.abs(changes - change) <= slack).all(axis=1)
            for k in (k for k in left if near[k] and k not in group):
                same = values[k].shape == values[first].shape
                same = same and np.allclose(values[k], values[first])
                if same and _compete(s, members[first], members[k]):
                    group[k] = sign + names[k]
        left = [k for k in left if k not in group]
        groups += [tuple(group.values())] if len(group) > 1 else []
    return groups


def _moved(point: Point, donor: Point, members: tuple[Member, ...]) -> dict[str, np.ndarray]:
    """Replace members of a point by a donor's."""
    out = dict(point)
    for member in members:
        member.put(out, member.of(donor, 0), 0)
    return out


def _compete(s: Search, one: Member, other: Member) -> bool:
    """Check whether two members depend on one another given all other parameters; if not, there is one mode."""
    points = [
        _moved(probe.point, s.probes[at - 1].point, members)
        for at, probe in enumerate(s.probes)
        for members in ((one,), (other,), (one, other))
    ]
    return interact(points, s) != "harmless"
