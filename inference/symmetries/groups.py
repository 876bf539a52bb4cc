"""Parts that change places: which of them do, and whether they make modes that compete.

Once a set of swaps of the first two parts is a symmetry, it is tried on all others.

Parts that are independent given all else cannot compete: replacing one, the other, and both leaves a mixed second
difference of zero. Exchangeable effects without data of their own are such. Where parts do depend on one another the
density may still have one mode, which every element leaves in its place, such as a ridge: ascents to optima tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from .measuring import BudgetedDensity, Probes
from .moves import Generator, Generators, Point, act, by_name, on_parts
from .result import Status
from .search import AscentEnd
from .spaces import LargestChange, search, trial, worst

MANY_PARTS = 8
"""Parts up to which every pair is searched and every part is compared with every point."""
PAIRS_OF_ONE = 40
"""Parts up to which all pairs along a single axis are tried."""
AT_FEW = 2
"""Points for each of many parts."""


class Reach(NamedTuple):
    """The extent of a set of generators on the first part, or the first two: all parts may do the same."""

    everywhere: bool
    orbit: tuple[int, ...]  # the parts that do
    held: tuple[LargestChange, ...]  # the trials on the way that held


def reach(
    generators: Generators,
    length: int,
    measured: BudgetedDensity,
    probes: Probes,
    *,
    most: int | None = None,
) -> Reach:
    """Try a set of the first part or parts on all others; `most` of them at most, of which the last.

    Swaps of the first part with every other generate every order, which one random order for each point confirms.
    """
    single = len(next(g.parts for g in generators if g.axis is not None)) == 1
    begins = 1 if single else 2
    others = [length - 1, *range(begins, length - 1)] if length > begins else []
    if most is not None:
        others = others[:most]
    used = list(probes) if length <= MANY_PARTS else [probes[0], probes[-1]][:AT_FEW]
    orbit = list(range(begins))
    held: list[LargestChange] = []
    for part in others:
        found = trial(on_parts(generators, (part,) if single else (0, part)), measured, used)
        if found.holds:
            orbit.append(part)
            held.append(found)
        elif length > PAIRS_OF_ONE:
            break
    everywhere = len(orbit) == length
    if everywhere and not single and length > 2:
        # A random order at each point, of which each swap may round differently.
        rng = np.random.default_rng(0)
        points = []
        for probe in probes:
            point = dict(probe.point)
            for part in rng.permutation(np.arange(1, length))[:MANY_PARTS]:
                point = act(on_parts(generators, (0, int(part))), point)
            points.append(point)
        changes = np.abs(measured(points) - np.array([probe.value for probe in probes]))
        slacks = [MANY_PARTS * probe.tolerance for probe in probes]
        found = worst([LargestChange(float(c), s) for c, s in zip(changes, slacks, strict=True)])
        everywhere = found.holds
        held += [found] * everywhere
    return Reach(everywhere, tuple(sorted(orbit)), tuple(held))


Orbits = tuple[tuple[Generator, ...], tuple[tuple[int, ...], ...]]
"""Generators, and the orbits of parts that change places among themselves, but not with the others."""


def elsewhere(
    generators: list[Generator], length: int, measured: BudgetedDensity, probes: Probes
) -> list[Orbits]:
    """Search pairs of parts beyond the first two: what a reference part, or unlike groups of parts, hide."""
    names = {(g.name, g.axis) for g in generators}
    if length <= MANY_PARTS:
        spaces = [
            (pair, search(on_parts(generators, pair), measured, probes))
            for pair in combinations(range(length), 2)
        ]
        by_axes: dict[tuple[tuple[str, int | None], ...], list[tuple[int, int]]] = {}
        shown: dict[tuple[tuple[str, int | None], ...], tuple[Generator, ...]] = {}
        for pair, space in spaces:
            for chosen in space.basis:
                own = space.moves.generators(chosen)
                key = tuple((g.name, g.axis) for g in own)
                by_axes.setdefault(key, []).append(pair)
                shown[key] = own
        return [(shown[key], _components(pairs)) for key, pairs in by_axes.items()]
    if length <= PAIRS_OF_ONE and len(names) == 1:
        pairs = list(combinations(range(length), 2))
        probe = probes[0]
        points = [act(on_parts(generators, pair), probe.point) for pair in pairs]
        near = np.abs(measured(points) - probe.value) <= 2.0 * probe.tolerance
        held = [
            pair
            for pair, good in zip(pairs, near, strict=True)
            if good and trial(on_parts(generators, pair), measured, probes).holds
        ]
        return [(tuple(generators), _components(held))] if held else []
    return []


def _components(pairs: Sequence[tuple[int, int]]) -> tuple[tuple[int, ...], ...]:
    """Parts that pairs connect."""
    groups: list[set[int]] = []
    for pair in pairs:
        touching = [group for group in groups if group & set(pair)]
        groups = [group for group in groups if group not in touching]
        groups.append(set(pair).union(*touching))
    return tuple(tuple(sorted(group)) for group in sorted(groups, key=min))


COUPLED = 100.0
"""Tolerances from which on a mixed second difference is none of rounding."""
APART = 1e-3
"""Nats by which an optimum has to lie above the middle between it and its copy, to be one of two."""


def parts_compete(generators: Generators, measured: BudgetedDensity, probes: Probes) -> Status:
    """Tell whether the two parts that a set of swaps exchanges depend on one another given all else."""
    apart = [g for g in generators if g.kind == "swap"]
    if not apart:
        return "undecided"
    first, second = apart[0].parts
    groups = list(by_name(apart).values())
    fits = replaceable(groups, first, second, measured, probes)
    members = [group for group, fit in zip(groups, fits, strict=True) if fit]
    if not members:
        return "undecided"
    points: list[Point] = []
    for at, probe in enumerate(probes):
        donor = probes[at - 1].point
        for places in ((first,), (second,), (first, second)):
            points.append(_replaced(probe.point, donor, members, places))
    return _judged(measured(points), probes)


def variables_compete(generators: Generators, measured: BudgetedDensity, probes: Probes) -> Status:
    """Tell whether variables that change sign together depend on one another; of one, whether a mode is away from 0."""
    names = list(by_name(generators))
    points: list[Point] = []
    if (
        len(names) == 1
    ):  # does the density fall from the middle between a point and its copy outwards?
        steps = (0.0, 0.25, 0.5, 0.75)
        for probe in probes:
            there = act(generators, probe.point)
            middle = {n: np.asarray((probe.point[n] + there[n]) / 2.0) for n in by_name(generators)}
            for step in steps:
                inner = {
                    n: np.asarray(value + step * (probe.point[n] - value))
                    for n, value in middle.items()
                }
                points.append({**probe.point, **inner})
        values = measured(points).reshape(len(probes), len(steps))
        told = False
        for row, probe in zip(values, probes, strict=True):
            if not np.isfinite(row).all():
                continue
            told = True
            if (np.diff([*row, probe.value]) > COUPLED * probe.tolerance).any():
                return "live"
        return "harmless" if told else "undecided"
    first, rest = names[0], names[1:]
    for at, probe in enumerate(probes):
        donor = probes[at - 1].point
        one = {**probe.point, first: donor[first]}
        two = {**probe.point, **{name: donor[name] for name in rest}}
        points += [one, two, {**two, first: donor[first]}]
    return _judged(measured(points), probes)


def one_mode(
    elements: Sequence[Generators], measured: BudgetedDensity, ends: Sequence[AscentEnd]
) -> bool:
    """Tell whether every ascent ended at a point that all sets leave in its place, or on a ridge between copies."""
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
    """Swaps of the first part with some others."""
    return [on_parts(generators, (0, part)) for part in range(1, min(length, most + 1))]


def _judged(values: np.ndarray, probes: Probes) -> Status:
    """Mixed second differences of three values a point and that of the point itself."""
    told = False
    for row, probe in zip(values.reshape(len(probes), 3), probes, strict=True):
        if not np.isfinite(row).all():
            continue
        told = True
        mixed = abs(row[2] - row[0] - row[1] + probe.value)
        size = 1.0 + max(float(abs(row).max()), abs(float(probe.value)))
        if mixed > COUPLED * probe.tolerance * size / (1.0 + abs(probe.value)):
            return "live"
    return "harmless" if told else "undecided"


def replaceable(
    groups: Sequence[tuple[Generator, ...]],
    first: int,
    second: int,
    measured: BudgetedDensity,
    probes: Probes,
) -> list[bool]:
    """Tell of which variables a part can be another point's and lie inside the support; a simplex's cannot."""
    points = [
        _replaced(probes[at].point, probes[at - 1].point, [group], (part,))
        for group in groups
        for at in range(len(probes))
        for part in (first, second)
    ]
    inside = np.isfinite(measured(points)).reshape(len(groups), len(probes), 2)
    return inside.all(axis=2).any(axis=1).tolist()


def _replaced(
    point: Point, donor: Point, members: Sequence[tuple[Generator, ...]], parts: tuple[int, ...]
) -> Point:
    """Take parts of some variables from another point: of a variable that moves along two axes their crossing alone."""
    out = dict(point)
    for group in members:
        name = group[0].name
        value = np.array(out[name])
        for part in parts:
            where: list[slice | int] = [slice(None)] * value.ndim
            for generator in group:
                assert generator.axis is not None
                where[generator.axis] = part
            value[tuple(where)] = donor[name][tuple(where)]
        out[name] = value
    return out
