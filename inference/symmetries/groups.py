"""From two parts to all: which parts change places, once a set of swaps of the first two is a symmetry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from .measuring import Measured, Probe
from .moves import Generator, Move, Moves, moved_to
from .spaces import Space, Trial, search, trial, worst

MANY_PARTS = 8
"""Parts up to which every pair is searched and every part is held against every point."""
PAIRS_OF_ONE = 40
"""Parts up to which all pairs along a single axis are tried."""
AT_FEW = 2
"""Points for each of many parts."""


@dataclass(frozen=True)
class Reach:
    """How far a set of generators on the first part, or the first two, extends.

    Attributes
    ----------
    generators : tuple of Generator
        On the first part or parts.
    parts : int
        How many parts lie along the axis.
    everywhere : bool
        Whether all of them do the same.
    orbit : tuple of int
        The parts that do.
    held : tuple of Trial
        What was tried on the way, and held.
    """

    generators: tuple[Generator, ...]
    parts: int
    everywhere: bool
    orbit: tuple[int, ...]
    held: tuple[Trial, ...]


def grouped(generators: Sequence[Generator]) -> Moves:
    """Generators as one move for each of their variables."""
    names = dict.fromkeys(g.name for g in generators)
    return Moves(tuple(Move(tuple(g for g in generators if g.name == name)) for name in names))


def moved(generators: Sequence[Generator], parts: tuple[int, ...]) -> Moves:
    """The generators of a set on other parts; those that move whole variables as they are."""
    apart = [g for g in generators if g.axis is not None]
    whole = tuple(Move((g,)) for g in generators if g.axis is None)
    return Moves((*moved_to(apart, parts).each, *whole))


def everything(moves: Moves) -> int:
    """All moves at once."""
    return (1 << len(moves.each)) - 1


def reach(
    generators: Sequence[Generator],
    length: int,
    measured: Measured,
    probes: Sequence[Probe],
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
    held: list[Trial] = []
    for part in others:
        moves = moved(generators, (part,) if single else (0, part))
        found = trial(moves, everything(moves), measured, used)
        if found.holds:
            orbit.append(part)
            held.append(found)
        elif length > PAIRS_OF_ONE:
            break
    everywhere = len(orbit) == length
    if everywhere and not single and length > 2:
        found = _of_any_order(generators, length, measured, probes)
        everywhere = found.holds
        held += [found] * everywhere
    return Reach(tuple(generators), length, everywhere, tuple(sorted(orbit)), tuple(held))


def _of_any_order(
    generators: Sequence[Generator], length: int, measured: Measured, probes: Sequence[Probe]
) -> Trial:
    """A random order at each point, of which each swap may round anew."""
    rng = np.random.default_rng(0)
    points = []
    for probe in probes:
        point = dict(probe.point)
        for part in rng.permutation(np.arange(1, length))[:MANY_PARTS]:
            moves = moved(generators, (0, int(part)))
            point = moves.act(everything(moves), point)
        points.append(point)
    changes = np.abs(measured(points) - np.array([probe.value for probe in probes]))
    slacks = [MANY_PARTS * probe.tolerance for probe in probes]
    return worst([Trial(float(c), s) for c, s in zip(changes, slacks, strict=True)])


@dataclass(frozen=True)
class Orbits:
    """Parts that change places among themselves, but not with the others."""

    generators: tuple[Generator, ...]
    orbits: tuple[tuple[int, ...], ...]


def elsewhere(
    generators: list[Generator],
    length: int,
    measured: Measured,
    probes: Sequence[Probe],
) -> list[Orbits]:
    """Search pairs of parts beyond the first two: what a reference part, or unlike groups of parts, hide."""
    names = {(g.name, g.axis) for g in generators}
    if length <= MANY_PARTS:
        spaces = [
            (pair, search(_on(generators, pair), measured, probes))
            for pair in combinations(range(length), 2)
        ]
        return _orbits(spaces)
    if length <= PAIRS_OF_ONE and len(names) == 1:
        pairs = list(combinations(range(length), 2))
        probe = probes[0]
        points = [
            (moves := moved(generators, pair)).act(everything(moves), probe.point) for pair in pairs
        ]
        near = np.abs(measured(points) - probe.value) <= 2.0 * probe.tolerance
        held = [
            pair
            for pair, good in zip(pairs, near, strict=True)
            if good and _holds(generators, pair, measured, probes)
        ]
        return [Orbits(tuple(generators), _components(held))] if held else []
    return []


def _holds(
    generators: list[Generator],
    pair: tuple[int, int],
    measured: Measured,
    probes: Sequence[Probe],
) -> bool:
    moves = moved(generators, pair)
    found: Trial = trial(moves, everything(moves), measured, probes)
    return found.holds


def _on(generators: list[Generator], parts: tuple[int, int]) -> list[Generator]:
    return [Generator(g.name, g.kind, g.axis, parts, g.inside) for g in generators]


def _orbits(spaces: list[tuple[tuple[int, int], Space]]) -> list[Orbits]:
    """Pairs of parts that one set of axes swaps, put together."""
    by_axes: dict[tuple[tuple[str, int | None], ...], list[tuple[int, int]]] = {}
    shown: dict[tuple[tuple[str, int | None], ...], tuple[Generator, ...]] = {}
    for pair, space in spaces:
        for chosen in space.basis:
            own = space.moves.generators(chosen)
            key = tuple((g.name, g.axis) for g in own)
            by_axes.setdefault(key, []).append(pair)
            shown[key] = own
    return [Orbits(shown[key], _components(pairs)) for key, pairs in by_axes.items()]


def _components(pairs: Sequence[tuple[int, int]]) -> tuple[tuple[int, ...], ...]:
    """Parts that pairs connect."""
    groups: list[set[int]] = []
    for pair in pairs:
        touching = [group for group in groups if group & set(pair)]
        groups = [group for group in groups if group not in touching]
        groups.append(set(pair).union(*touching))
    return tuple(tuple(sorted(group)) for group in sorted(groups, key=min))
