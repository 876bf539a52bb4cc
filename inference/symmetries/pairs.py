"""What the log density says of two variables at a time, all others at their own fixed points.

A variable's average over its own moves is a point that they leave alone. With all variables but two there, a symmetry
acts on these two alone, so that it lies in the small space of those of their moves that change nothing. What passes all
pairs is a space that holds every symmetry.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from .gf2 import bits, echelon, kept_by, orthogonal
from .measuring import Measured, Probe
from .moves import Generator, Move, Moves, Point

MOST_MOVES = 8
"""Moves of a pair up to which all their sums are evaluated."""
MANY = 8
"""Variables from which on it is first asked which of them interact at all."""
SAME = 1e-12
"""Relative difference up to which two values are the same point."""


def own_moves(generators: list[Generator], measured: Measured, probes: list[Probe]) -> Moves:
    """The sums of each variable's own generators that stay inside its support and do move it.

    Support is what the density shows: a sum that never comes to a finite density is outside. An ordered vector has none
    left, a covariance matrix both axes at once, a simplex and its swap no second one by complements.
    """
    by_name: dict[str, list[Generator]] = {}
    for generator in generators:
        by_name.setdefault(generator.name, []).append(generator)
    tried: list[tuple[str, int, Move]] = []
    points: list[Point] = []
    for name, own in by_name.items():
        for chosen in range(1, 2 ** len(own)):
            move = Move(tuple(own[place] for place in bits(chosen)))
            tried.append((name, chosen, move))
            points += [{**p.point, name: move.act(p.point[name])} for p in probes]
    inside = np.isfinite(measured(points)).reshape(len(tried), -1).any(axis=1)
    return Moves(tuple(_basis(tried, inside, probes[0].point)))


def _basis(tried: list[tuple[str, int, Move]], inside: np.ndarray, point: Point) -> list[Move]:
    still: dict[str, list[int]] = {}
    for name, chosen, move in tried:
        if same(move.act(point[name]), point[name]):
            still.setdefault(name, []).append(chosen)
    kept = {name: echelon(vectors) for name, vectors in still.items()}
    moves = []
    order = sorted(range(len(tried)), key=lambda at: (len(tried[at][2].generators), at))
    for at in order:
        name, chosen, move = tried[at]
        rows = kept.get(name, [])
        if inside[at] and len(more := echelon((*rows, chosen))) > len(rows):
            kept[name] = more
            moves.append((tried[at][0], move))
    names = list(dict.fromkeys(name for name, _, _ in tried))
    return [move for name in names for own, move in moves if own == name]


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two values are one but for rounding."""
    return bool(np.abs(a - b).max(initial=0.0) <= SAME * (1.0 + np.abs(b).max(initial=0.0)))


def centred(moves: Moves, point: Point) -> dict[str, np.ndarray]:
    """The average of every variable over its own moves; every convex support holds it."""
    out = dict(point)
    for move in moves.each:
        out[move.name] = np.asarray((out[move.name] + move.act(out[move.name])) / 2.0)
    return out


def candidates(moves: Moves, measured: Measured, probes: Sequence[Probe]) -> list[int]:
    """A basis of a space that holds every symmetry among sums of the moves."""
    probe, other = probes[0], probes[-1 if len(probes) < 2 else 1].point
    names = moves.names()
    space = [1 << place for place in range(len(moves.each))]
    middle = centred(moves, probe.point)
    apart = _without_interaction(names, measured, probe, other) if len(names) >= MANY else set()
    for first, second in combinations(names, 2):
        both = moves.of(first) | moves.of(second)
        restricted = echelon(vector & both for vector in space)
        if len(restricted) <= 1 or (first, second) in apart or both.bit_count() > MOST_MOVES:
            continue
        point = {**middle, first: probe.point[first], second: probe.point[second]}
        for check in _checks(moves, both, point, measured):
            space = kept_by(space, check)
    return space


def _checks(moves: Moves, both: int, point: Point, measured: Measured) -> list[int]:
    """What any symmetry has an even overlap with, from all sums of the moves of two variables at one point."""
    places = bits(both)
    chosen = [_placed(code, places) for code in range(2 ** len(places))]
    base = measured.probe(point)
    values = np.concatenate(
        ([base.value], measured([moves.act(each, point) for each in chosen[1:]]))
    )
    finite = np.isfinite(values)
    if not finite.any():
        return []
    slack = 2.0 * base.tolerance * _size(values) / (1.0 + abs(base.value) if base.known else 1.0)
    at = np.arange(len(values))
    filled = np.where(finite, values, 0.0)
    unchanged = [
        shift
        for shift in range(1, len(values))
        if (finite == finite[at ^ shift]).all()
        and np.abs(filled - filled[at ^ shift]).max() <= slack
    ]
    return [_placed(check, places) for check in orthogonal(unchanged, len(places))]


def _size(values: np.ndarray) -> float:
    return 1.0 + float(np.abs(values[np.isfinite(values)]).max(initial=0.0))


def _placed(code: int, places: list[int]) -> int:
    return sum(1 << places[bit] for bit in bits(code))


def _without_interaction(
    names: tuple[str, ...], measured: Measured, probe: Probe, other: Point
) -> set[tuple[str, str]]:
    """Pairs of variables whose mixed second difference is zero: none of their sums is one symmetry together."""
    single = measured([{**probe.point, name: other[name]} for name in names])
    alone = dict(zip(names, single, strict=True))
    pairs = [
        (first, second)
        for first, second in combinations(names, 2)
        if np.isfinite(alone[first]) and np.isfinite(alone[second])
    ]
    both = measured([{**probe.point, a: other[a], b: other[b]} for a, b in pairs])
    mixed = [
        value - alone[a] - alone[b] + probe.value for (a, b), value in zip(pairs, both, strict=True)
    ]
    size = 1.0 + np.abs(single[np.isfinite(single)]).max(initial=abs(probe.value))
    slack = 4.0 * probe.tolerance * size / (1.0 + abs(probe.value))
    return {pair for pair, change in zip(pairs, mixed, strict=True) if abs(change) <= slack}
