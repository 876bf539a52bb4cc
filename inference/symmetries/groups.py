"""Find the parts that can be exchanged, and decide whether exchanging them makes distinct modes.

Once a set of swaps of the first two parts is a symmetry, it is tried on all others.

Parts that are independent given all other parameters, such as effects without data, make no distinct modes: if one, the
other, or both are replaced, the mixed second difference is zero. If parts depend on one another, the density may still
have a single mode that every element leaves in place, such as a ridge. Ascents to optima decide that.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from .measuring import (
    BudgetedDensity,
    Compared,
    Generator,
    Generators,
    LargestChange,
    Place,
    Point,
    act,
    axis_at,
    by_name,
    on_parts,
    worst,
)
from .result import Status
from .search import AscentEnd, search

MANY_PARTS = 8
"""Maximum number of parts for a search of every pair and a comparison of every part at every point."""
PAIRS_OF_ONE = 40  # Maximum number of parts for a trial of all pairs along a single axis.
AT_FEW = 2  # Points for each of many parts.


class Reach(NamedTuple):
    """The parts on which a set of generators is a symmetry, including the first one or two."""

    everywhere: bool  # Whether these are all parts.
    orbit: tuple[int, ...]
    held: tuple[LargestChange, ...]  # Successful trials.


def reach(
    generators: Generators, length: int, compared: Compared, *, most: int | None = None
) -> Reach:
    """Try generators of the first part or parts on all others, or on `most` of them, including the last.

    Swaps of the first part with every other one generate every order; a random order for each point confirms it.
    """
    probes = compared.probes
    single = len(next(g.parts for g in generators if g.axis is not None)) == 1
    begins = 1 if single else 2
    others = [length - 1, *range(begins, length - 1)] if length > begins else []
    used = compared if length <= MANY_PARTS else compared.at([probes[0], probes[-1]][:AT_FEW])
    orbit = list(range(begins))
    held: list[LargestChange] = []
    for part in others[:most]:
        found = used.trial(on_parts(generators, (part,) if single else (0, part)))
        if found.holds:
            orbit.append(part)
            held.append(found)
        elif length > PAIRS_OF_ONE:
            break
    everywhere = len(orbit) == length
    if everywhere and not single and length > 2:
        # A random order at each point; rounding may differ in each of its swaps.
        rng = np.random.default_rng(0)
        points = []
        for probe in probes:
            point = dict(probe.point)
            for part in rng.permutation(np.arange(1, length))[:MANY_PARTS]:
                point = act(on_parts(generators, (0, int(part))), point)
            points.append(point)
        changes = np.abs(compared.measured(points) - compared.values)
        slacks = [MANY_PARTS * probe.tolerance for probe in probes]
        found = worst([LargestChange(float(c), s) for c, s in zip(changes, slacks, strict=True)])
        everywhere = found.holds
        held += [found] * everywhere
    return Reach(everywhere, tuple(sorted(orbit)), tuple(held))


Orbits = tuple[tuple[Generator, ...], tuple[tuple[int, ...], ...]]
"""Generators, and the orbits of parts that can be exchanged among themselves, but not with the others."""


def elsewhere(generators: list[Generator], length: int, compared: Compared) -> list[Orbits]:
    """Search all pairs of parts, since a reference part or different groups of parts may hide a symmetry."""
    pairs = list(combinations(range(length), 2))
    if length <= MANY_PARTS:
        by_axes: dict[tuple[tuple[str, Place | None], ...], list[tuple[int, int]]] = {}
        shown: dict[tuple[tuple[str, Place | None], ...], tuple[Generator, ...]] = {}
        for pair in pairs:
            space = search(on_parts(generators, pair), compared)
            for chosen in space.basis:
                own = space.moves.generators(chosen)
                key = tuple((g.name, g.axis) for g in own)
                by_axes.setdefault(key, []).append(pair)
                shown[key] = own
        return [(shown[key], _components(own)) for key, own in by_axes.items()]
    if length > PAIRS_OF_ONE or len({(g.name, g.axis) for g in generators}) > 1:
        return []
    probe = compared.probes[0]
    points = [act(on_parts(generators, pair), probe.point) for pair in pairs]
    near = np.abs(compared.measured(points) - probe.value) <= 2.0 * probe.tolerance
    held = [
        pair
        for pair, good in zip(pairs, near, strict=True)
        if good and compared.trial(on_parts(generators, pair)).holds
    ]
    return [(tuple(generators), _components(held))] if held else []


def _components(pairs: Sequence[tuple[int, int]]) -> tuple[tuple[int, ...], ...]:
    """Return the connected components of a graph with these pairs."""
    groups: list[set[int]] = []
    for pair in pairs:
        touching = [group for group in groups if group & set(pair)]
        groups = [group for group in groups if group not in touching]
        groups.append(set(pair).union(*touching))
    return tuple(tuple(sorted(group)) for group in sorted(groups, key=min))


COUPLED = 100.0  # Mixed second difference, in tolerances, that is more than rounding.
APART = 1e-3  # Minimum descent in nats from an optimum to the middle between two modes.
OUTWARDS = (0.0, 0.25, 0.5, 0.75)
"""Positions between the middle of a point and its copy (0) and the point (1)."""


def parts_compete(generators: Generators, compared: Compared) -> Status:
    """Check whether the two parts that swaps exchange depend on one another given all other parameters."""
    apart = [g for g in generators if g.kind == "swap"]
    if not apart:
        return "undecided"
    first, second = apart[0].parts
    groups = list(by_name(apart).values())
    fits = replaceable(groups, first, second, compared)
    members = [group for group, fit in zip(groups, fits, strict=True) if fit]
    if not members:
        return "undecided"
    points: list[Point] = []
    for at, probe in enumerate(compared.probes):
        donor = compared.probes[at - 1].point
        for places in ((first,), (second,), (first, second)):
            points.append(_replaced(probe.point, donor, members, places))
    return interact(points, compared)


def variables_compete(generators: Generators, compared: Compared) -> Status:
    """Check whether variables that change sign together are dependent, or the mode of a single one is not 0."""
    first, *rest = by_name(generators)
    points: list[Point] = []
    if not rest:
        # There are two modes if the density rises from the middle between a point and its copy.
        for probe in compared.probes:
            here, there = probe.point[first], act(generators, probe.point)[first]
            middle = (here + there) / 2.0
            moved = (np.asarray(middle + step * (here - middle)) for step in OUTWARDS)
            points += [{**probe.point, first: value} for value in moved]
        rows = compared.measured(points).reshape(-1, len(OUTWARDS))
        return _live_where(
            [
                np.diff([*row, probe.value]).max() > COUPLED * probe.tolerance
                if np.isfinite(row).all()
                else None
                for row, probe in zip(rows, compared.probes, strict=True)
            ]
        )
    for at, probe in enumerate(compared.probes):
        donor = compared.probes[at - 1].point
        one = {**probe.point, first: donor[first]}
        two = {**probe.point, **{name: donor[name] for name in rest}}
        points += [one, two, {**two, first: donor[first]}]
    return interact(points, compared)


def one_mode(
    elements: Sequence[Generators], measured: BudgetedDensity, ends: Sequence[AscentEnd]
) -> bool:
    """Check whether every ascent ended at a point that all elements leave in place, or on a ridge between copies."""
    if not ends or not all(end.converged for end in ends):
        return False
    for end in ends:
        here = end.probe.point
        middles = []
        for generators in elements:
            there = act(generators, here)
            middles.append({n: np.asarray((here[n] + there[n]) / 2.0) for n in here})
        above = end.probe.value - measured(middles)
        if not (above < APART).all():
            return False
    return True


def copies(generators: Generators, length: int, most: int = 8) -> list[tuple[Generator, ...]]:
    """Return the swaps of the first part with up to `most` others."""
    return [on_parts(generators, (0, part)) for part in range(1, min(length, most + 1))]


def interact(points: Sequence[Point], compared: Compared) -> Status:
    """Judge by the mixed second difference between each probe and its three points."""
    found: list[bool | None] = []
    for row, probe in zip(compared.measured(points).reshape(-1, 3), compared.probes, strict=True):
        with np.errstate(invalid="ignore"):  # Points outside the support give infinities.
            mixed = abs(row[2] - row[0] - row[1] + probe.value)
        size = max(float(abs(row).max()), abs(probe.value))
        found.append(mixed > COUPLED * probe.slack(size) if np.isfinite(row).all() else None)
    return _live_where(found)


def _live_where(found: Sequence[bool | None]) -> Status:
    """Combine the results of several points; None means that a point decides nothing."""
    told = [bool(one) for one in found if one is not None]
    return "undecided" if not told else "live" if any(told) else "harmless"


def replaceable(
    groups: Sequence[tuple[Generator, ...]], first: int, second: int, compared: Compared
) -> list[bool]:
    """Check for each variable whether a part can be replaced by another point's; parts of a simplex cannot."""
    probes = compared.probes
    points = [
        _replaced(probes[at].point, probes[at - 1].point, [group], (part,))
        for group in groups
        for at in range(len(probes))
        for part in (first, second)
    ]
    inside = np.isfinite(compared.measured(points)).reshape(len(groups), len(probes), 2)
    return inside.all(axis=2).any(axis=1).tolist()


def _replaced(
    point: Point, donor: Point, members: Sequence[tuple[Generator, ...]], parts: tuple[int, ...]
) -> Point:
    """Replace parts of some variables by a donor's; for a variable that moves along two axes, their intersection."""
    out = dict(point)
    for group in members:
        name = group[0].name
        value = np.asarray(out[name])
        for part in parts:
            along: dict[int, np.ndarray] = {}
            for generator in group:
                assert generator.axis is not None
                axis, where = axis_at(generator.axis, (part,))
                along.setdefault(axis, np.zeros(value.shape[axis], dtype=bool))[where] = True
            crossing = np.ones((), dtype=bool)
            for axis, marks in along.items():
                shape = [-1 if at == axis else 1 for at in range(value.ndim)]
                crossing = crossing & marks.reshape(shape)
            value = np.where(crossing, donor[name], value)
        out[name] = value
    return out
