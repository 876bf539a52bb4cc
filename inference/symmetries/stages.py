"""Stages of a search: exchangeable parts, signs of parts, signs and complements of whole variables, and rotations.

The last stage finds components that are nearly exchangeable, such as those of a mixture with stick-breaking weights.
The likelihood is invariant to labels, but the prior of the weights prefers an order. Exchanging the two heaviest
components changes the log density by far less than moving only one of their parameters.

Exchanges of separate parameters, or of positions of a vector, are not searched, only named. With all coordinates of
the unconstrained space at zero, parameters with one support are equal, simplexes even and signed parameters zero; every
exchange leaves this point unchanged. So if an exchange maps one parameter onto another, moving either of them from
there changes the log density by the same amount.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from onebasin.base.errors import ArgumentError
from onebasin.models.symmetry.blocks import Rotation, variables_of
from onebasin.models.symmetry.elements import echelon, least_basis, reduce
from onebasin.models.symmetry.exchangeable import Counterparts, Member

from .groups import copies, elsewhere, interact, one_mode, parts_compete, reach, variables_compete
from .measuring import (
    Compared,
    Generator,
    Generators,
    Moves,
    Place,
    Point,
    act,
    by_name,
    on_parts,
    points_of,
    signs_of_part,
    swaps,
    worst,
)
from .result import (
    OF_STATUS,
    ONE_MODE,
    FoundBlock,
    Source,
    Status,
    alone,
    bounding,
    exchangeable,
    listed,
    of_parts,
    positions,
    unchanged,
    whole,
)
from .search import Axes, Search, Space, random_probes, search

FEW_PARTS = 2  # Number of parts beyond the first two on which a harmless set is tried.


def interchangeable(s: Search, length: int, axes: Axes) -> Iterator[FoundBlock]:
    """Yield blocks of exchangeable parts along axes of one length."""
    if not axes:
        return
    shares = s.shares if length == 2 else []
    space = search(swaps(axes, 0, 1) + shares, s)
    s.spaces[length] = space
    if not space.complete:
        s.open.append(f"sums of the {len(axes)} axes of length {length}")
    taken: set[tuple[str, Place | None]] = set()
    for chosen in space.basis:
        own = space.moves.generators(chosen)
        axes_moved = {(g.name, g.axis) for g in own if g.kind == "swap"}
        if axes_moved:
            yield _swapped(s, own, length, free=not axes_moved & taken)
            taken |= axes_moved
    for chosen in space.doubtful:
        own = space.moves.generators(chosen)
        found, what = s.trial(own), listed(own)
        said = (
            f"{what}: the log density changes by up to {found.change:.2g} nats, {found.ratio:.1g} times as much as "
            "rounding. This is too large for rounding error and too small to be a real difference."
        )
        yield FoundBlock(exchangeable(own, s.order), what, length, "undecided", (said,))


def _swapped(s: Search, own: tuple[Generator, ...], length: int, *, free: bool) -> FoundBlock:
    """Make the block of swaps that are a symmetry of the first two parts; try them on other parts and probes."""
    status, why = judged(s, parts_compete(own, s), copies(own, length))
    live = status == "live"
    near = s.near if live else []
    compared = s.at([*s.probes, *near])
    first = compared.trial(own)
    extent = reach(own, length, compared, most=None if live else FEW_PARTS)
    tried = worst([first, *extent.held])
    if live and first.holds and not extent.everywhere and len(extent.orbit) > 1:
        return some_of(s, own, extent.orbit)
    if not first.holds:
        status = "undecided"
    elif live and not extent.everywhere:
        status = "incomplete"
    moving = listed(own)
    orders = f"every order of the {length} parts"
    which = orders if extent.everywhere else of_parts([extent.orbit])
    together = " move together" if len(by_name(own)) > 1 else ""
    said = [unchanged(f"{moving}{together}: {which}", tried, s.probes, near), alone(own, s)]
    block = exchangeable(own, s.order)
    if tried.holds and status != "incomplete":
        said.append(why)
    if status == "live" and (block is None or not free):
        status, block = "incomplete", None
        said.append("No block can express this together with the others, so it is not used.")
    return FoundBlock(block, moving, length, status, tuple(filter(None, said)))


def judged(s: Search, status: Status, elements: Sequence[Generators]) -> tuple[Status, str]:
    """Decide whether a symmetry is live, or harmless by the maximum of the density; return a sentence too."""
    # Ascents may end at the same saddle between two modes, so more of them start farther away.
    if (
        status == "live"
        and not s.large
        and one_mode(elements, s.measured, s.ends)
        and one_mode(elements, s.measured, s.more_ends)
    ):
        return "harmless", ONE_MODE
    return status, OF_STATUS[status]


def signs(s: Search, length: int, axes: Axes) -> Iterator[FoundBlock]:
    """Add signs of parts to the block that permutes them, or yield them separately."""
    signed = [(name, axis) for name, axis in axes if name in s.signed]
    if not signed:
        return
    space = search(signs_of_part(signed, 0), s)
    for chosen in space.basis:
        own = space.moves.generators(chosen)
        status = variables_compete(own, s)
        extent = reach(own, length, s)
        tried = worst([s.trial(own), *extent.held])
        if status != "live":
            continue
        moved = {(g.name, g.axis) for g in own}
        # The live block that permutes the same parts.
        permuting = (
            at
            for at, found in enumerate(s.found)
            if found.status == "live" and found.block is not None and moved <= found.block.moved
        )
        at = next(permuting, None) if extent.everywhere else None
        block: Any = None if at is None else s.found[at].block
        if at is None or block.flipped:
            moving = listed(own)
            parts = "each part" if extent.everywhere else of_parts([extent.orbit])
            places = [g.name for g in own]
            why = "`--exchangeable` cannot express signs of components that are not exchanged"
            if block is not None:
                why = "A declaration can have only one set of signs, and this is a second one"
                places = [name for name in places if name not in block.flipped] or places
            said = (
                unchanged(f"Signs of {parts} along {moving}: changing them", tried, s.probes, []),
                bounding(why, [f"each such part of {places[0]}"]),
            )
            yield FoundBlock(None, f"signs of parts of {moving}", length, "incomplete", said)
            continue
        names = space.moves.names(chosen)
        signed_names = " and ".join(names)
        what = f"Each part may change the sign of {signed_names}: that"
        flips = True if set(names) == set(block.axes) else tuple(n for n in s.order if n in names)
        s.found[at] = replace(
            s.found[at],
            block=replace(block, flips=flips),
            moves=f"{s.found[at].moves}, with signs of {signed_names}",
            evidence=(*s.found[at].evidence, unchanged(what, tried, s.probes, [])),
        )


def partly(s: Search, length: int, axes: Axes) -> Iterator[FoundBlock]:
    """Yield sets of parts that can be exchanged only among themselves."""
    blocks = [found.block for found in s.found if found.block is not None]
    known = {name for block in blocks for name in block.axes if "~" in name}
    some = {n for block in blocks if known & set(block.axes) for n in block.variables}
    covered = {
        (g.name, g.axis)
        for c in s.spaces[length].basis
        for g in s.spaces[length].moves.generators(c)
        if g.name not in some
    }
    free = [place for place in axes if place not in covered and place not in s.read]
    shapes = s.measured.density.shapes
    for generators, orbits in elsewhere(swaps(free, 0, 1), length, s) if free else ():
        pair = orbits[0][0], orbits[0][1]
        if parts_compete(on_parts(generators, pair), s) == "harmless":
            moving = listed(generators)
            said = (
                f"{moving}: {of_parts(orbits)} can be exchanged among themselves without changing the log density, "
                f"but the other ones of the {length} components cannot."
            )
            evidence = (said, OF_STATUS["harmless"])
            yield FoundBlock(None, moving, length, "harmless", evidence)
            continue
        for orbit in orbits:
            names = ["~".join(positions(g, orbit, len(shapes[g.name]))) for g in generators]
            if not known & set(names):
                yield some_of(s, generators, orbit)


def by_group(s: Search) -> Iterator[FoundBlock]:
    """Report blocks whose parts can be exchanged separately at each place of another axis."""
    shapes = s.measured.density.shapes
    for found in list(s.found):
        block = found.block
        if found.status != "live" or block is None or not block.axes or block.complemented:
            continue
        if block.stacked is not block or not all(isinstance(k, int) for k in block.axes.values()):
            continue
        # Lengths of another axis that every variable has.
        sizes = {
            name: {size: at for at, size in enumerate(shapes[name]) if at != axis and size > 1}
            for name, axis in block.axes.items()
        }
        for size in set.intersection(*(set(each) for each in sizes.values())):
            own = [
                Generator(name, "swap", axis, (0, 1), (sizes[name][size], 0))
                for name, axis in block.axes.items()
                if isinstance(axis, int)
            ]
            if s.trial(own).holds:
                moving = listed(own)
                said = (
                    f"At each of the {size} places along another axis the parts of {moving} can be exchanged "
                    "separately. No block can express this, so alignment only undoes the common order."
                )
                yield FoundBlock(None, f"{moving} within each place", size, "incomplete", (said,))


def whole_variables(s: Search) -> Iterator[FoundBlock]:
    """Yield blocks of whole variables, except those that signs of parts generate."""
    generators = [Generator(name, "negate") for name in s.signed] + s.shares
    if not generators:
        return
    flips = s.program.flips if s.program else ()
    if s.large:
        moves = Moves(tuple((g,) for g in generators))
        basis = least_basis([sum(map(moves.of, own)) for own in flips], moves.weight)
        space = Space(moves, tuple(basis))
    else:
        space = search(generators, s)
    shown = echelon(sum(map(space.moves.of, own)) for own in flips)
    s.spaces[0] = space
    if not space.complete:
        s.open.append(f"sums of {len(generators)} signs and complements of whole variables")
    found = []
    for block in (each.block for each in s.found):
        if block is not None and block.axes and block.flipped:
            bits = [space.moves.of(name) for name in block.turned(s.measured.density.shapes)]
            if all(bits):
                found.append(sum(bits))
    known = echelon(found)
    for chosen in space.basis:
        if reduce(chosen, known):
            known = echelon((*known, chosen))
            own = space.moves.generators(chosen)
            status, why = judged(s, variables_compete(own, s), [own])
            near = s.near if status == "live" else []
            held = s.at([*s.probes, *near]).trial(own)
            moving = listed(own)
            together = " together" if len(own) > 1 else ""
            proved = bool(shown) and not reduce(chosen, shown)
            said = [unchanged(f"Changing {moving}{together}", held, s.probes, near), alone(own, s)]
            if proved:
                said[0] = (
                    f"Read from the program: changing {moving}{together} leaves the log density unchanged."
                )
            if held.holds:
                said.append(why)
            else:
                status = "undecided"
            evidence = tuple(filter(None, said))
            source: Source = "read" if proved else "found"
            yield FoundBlock(whole(own, s.order), moving, 1, status, evidence, source)


def mixed(s: Search) -> Iterator[FoundBlock]:
    """Yield swaps of two parts that are a symmetry only together with changes of sign."""
    axes = s.lengths.get(2, [])
    if not axes or not s.signed:
        return
    found = list(_mixed(s, axes))
    yield from found
    if not found:
        # Far from the posterior a logistic function rounds to one, so that its complement is lost.
        said = "It does not hold at random points far from the posterior, where a logistic function may round to one."
        live = (block for block in _mixed(s.nearest, axes) if block.status == "live")
        yield from (replace(block, evidence=(*block.evidence, said)) for block in live)


def _mixed(s: Search, axes: Axes) -> Iterator[FoundBlock]:
    generators = swaps(axes, 0, 1) + [Generator(n, "negate") for n in s.signed] + s.shares
    space = search(generators, s)
    for chosen in space.basis:
        own = space.moves.generators(chosen)
        swapped = [g for g in own if g.kind == "swap"]
        if not swapped or not any(g.kind == "negate" for g in own):
            continue
        if not s.trial(swapped).holds:  # Otherwise both have been found separately.
            yield _swapped(s, own, 2, free=True)


def some_of(s: Search, own: Generators, orbit: Sequence[int]) -> FoundBlock:
    """Make the block that exchanges only some of the parts along axes."""
    shapes = s.measured.density.shapes
    elements = [on_parts(own, (orbit[0], part)) for part in orbit[1:]]
    status, why = judged(s, parts_compete(elements[0], s), elements)
    near = s.near if status == "live" else []
    tried = worst([s.at([*s.probes, *near]).trial(each) for each in elements])
    said = [unchanged(f"{listed(own)}: {of_parts([orbit])}", tried, s.probes, near)]
    if tried.holds:
        said.append(why)
    else:
        status = "undecided"
    block = Counterparts(tuple(positions(g, orbit, len(shapes[g.name])) for g in own))
    try:
        block.check(shapes)
    except ArgumentError:  # The same entries move twice, such as along both axes of a matrix.
        said = [f"{listed(own)}: no block can express this, so it is not used."]
        return FoundBlock(None, listed(own), len(orbit), "incomplete", tuple(said))
    return FoundBlock(block, listed(own), len(orbit), status, tuple(said))


def rotating(s: Search) -> Iterator[FoundBlock]:
    """Replace blocks of components with signs by rotations, if random orthogonal matrices keep the log density."""
    rng = np.random.default_rng(s.seed)
    for at, found in enumerate(s.found):
        rotation = Rotation.of(found.block, s.measured.density.shapes) if found.block else None
        if found.status != "live" or rotation is None:
            continue
        probes = [*s.probes, *s.near]
        parts = rotation.random(rng, (len(probes),), found.parts)
        points = [
            {**probe.point, **rotation.act(probe.point, matrix)}
            for probe, matrix in zip(probes, parts.matrix, strict=True)
        ]
        values = s.measured(points)
        tried = worst([p.change(float(value)) for value, p in zip(values, probes, strict=True)])
        if tried.holds:
            what = f"Rotating {' and '.join(rotation.variables)} by random orthogonal matrices"
            said = unchanged(what, tried, s.probes, s.near)
            moves = f"{found.moves}, with rotations"
            evidence = (*found.evidence, said)
            s.found[at] = replace(found, block=rotation, moves=moves, evidence=evidence)
    yield from ()


NEARLY = 0.2  # Maximum change by an exchange, relative to a move of only one variable.
APART, POINTS, SETS = 5.0, 5, 6
"""Minimum change in nats if only one variable moves, minimum number of points with such a change, and number of sets of
random points."""
TINY = 1e-300


def nearly(s: Search) -> Iterator[FoundBlock]:
    """Yield axes whose components can nearly be exchanged with the weights of a stick."""
    taken = {name for found in s.found if found.block is not None for name in found.block.variables}
    for name in (g.name for g in s.shares if g.name not in taken):
        shape = s.measured.density.shapes[name]
        # The first axis of each variable with as many components.
        first = {n: (n, axis) for n, axis in reversed(s.lengths.get(sum(shape) + 1, []))}
        axes = [first[n] for n in s.order if n in first and n not in taken]
        if len(shape) != 1 or not axes:
            continue
        more = (random_probes(s.measured, s.seed + place) for place in range(1, SETS))
        at = s.at([*s.probes, *chain.from_iterable(more)])
        kept = _changes(at, name, axes)
        for axis in list(axes):
            others = [each for each in axes if each != axis]
            if others and np.median(without := _changes(at, name, others)) <= np.median(kept):
                axes, kept = others, without
        alone = np.max([_changes(at, name, [axis], alone=True) for axis in axes], axis=0)
        told = np.isfinite(alone) & (alone > APART)
        if told.sum() < POINTS or np.median(kept[told] / alone[told]) > NEARLY:
            continue
        moves = f"{', '.join(f'{variable}:{axis}' for variable, axis in axes)} and {name}"
        said = (
            f"Exchanging the two heaviest components of {moves}, with stick-breaking weights, changes the log density "
            f"by {np.median(kept):.2g} nats (median of {len(kept)} random points); moving only one variable changes "
            f"it by up to {alone[told].max():.2g}. No declaration can move ordered pieces of a stick."
        )
        yield FoundBlock(None, moves, shape[0] + 1, "near", (said,))


def _changes(at: Compared, name: str, axes: Axes, *, alone: bool = False) -> np.ndarray:
    """Return the changes of the log density by an exchange of the two heaviest components, in nats.

    The density is that of the weights, because exchanging weights does not preserve volume in the lengths of the stick.
    """
    points, volumes = [], np.zeros(len(at.probes))
    for row, probe in enumerate(at.probes):
        lengths = probe.point[name]
        weights = np.append(lengths, 1.0) * np.append(1.0, np.cumprod(1.0 - lengths))
        pair = tuple(int(k) for k in np.argsort(weights)[-2:])
        moved = act((g for axis in axes for g in swaps([axis], *pair)), probe.point)
        if not alone:
            before = np.append(1.0, 1.0 - np.cumsum(weights)[:-2])
            weights[[*pair]] = weights[[*pair[::-1]]]
            left = np.maximum(np.append(1.0, 1.0 - np.cumsum(weights)[:-2]), TINY)
            moved[name] = np.clip(weights[:-1] / left, TINY, 1.0 - 1e-12)
            volumes[row] = np.log(np.maximum(before, TINY) / left).sum()
        points.append(moved)
    with np.errstate(invalid="ignore"):
        return np.abs(at.measured(points) - at.values + volumes)


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
    taken |= {*variables_of(blocks)}
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


def _compete(s: Search, one: Member, other: Member) -> bool:
    """Check whether two members depend on one another given all other parameters; if not, there is one mode."""
    points = [
        _moved(probe.point, s.probes[at - 1].point, members)
        for at, probe in enumerate(s.probes)
        for members in ((one,), (other,), (one, other))
    ]
    return interact(points, s) != "harmless"


def _moved(point: Point, donor: Point, members: tuple[Member, ...]) -> dict[str, np.ndarray]:
    """Replace members of a point by a donor's."""
    out = dict(point)
    for member in members:
        member.put(out, member.of(donor, 0), 0)
    return out
