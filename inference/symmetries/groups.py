"""From two parts to all: which parts change places, once a set of swaps of the first two is a symmetry."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from .measuring import BudgetedDensity, Probes
from .moves import Generator, Generators, act, on_parts
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
    generators: list[Generator],
    length: int,
    measured: BudgetedDensity,
    probes: Probes,
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
