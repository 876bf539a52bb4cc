"""All symmetries among the sums of some moves: a space over GF(2), found by linear algebra and compared at points.

Two variables at a time come first. A variable's average over its own moves is a point that they leave alone. With all
variables but two there, a symmetry acts on these two alone, so that it lies in the small space of those of their moves
that change nothing. What passes all pairs is a space that holds every symmetry.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from .gf2 import all_sums, bits, echelon, kept_by, least_basis, orthogonal, reduce
from .measuring import DOUBTFUL, BudgetedDensity, Probe
from .moves import Generator, Moves, Point, act, by_name

MOST_HALVED = 24
"""Dimensions up to which sums of what fails are searched in halves."""
ROUGH, NEARBY = 12, 2.0**-30
"""Points near one at which a change is doubtful, and their relative distance."""
FEW = 2
"""Points at which supports are looked at."""
MOST_MOVES = 8
"""Moves of a pair up to which all their sums are evaluated."""
MANY = 8
"""Variables from which on it is first asked which of them interact at all."""
SAME = 1e-12
"""Relative difference up to which two values are the same point."""


@dataclass(frozen=True)
class Space:
    """The findings of a search.

    Attributes
    ----------
    moves : Moves
        What the bits of the vectors are.
    basis : tuple of int
        Of the symmetries, the lightest.
    doubtful : tuple of int
        Sets whose change is above rounding and so small that it decides nothing.
    complete : bool
        Whether no other symmetry is among the sums.
    """

    moves: Moves
    basis: tuple[int, ...] = ()
    doubtful: tuple[int, ...] = ()
    complete: bool = True


@dataclass(frozen=True)
class LargestChange:
    """The effect of a set on the log density: its change at the point where it is largest, and that of rounding there.

    Attributes
    ----------
    change : float
        In nats; infinite outside the support.
    slack : float
        The change in nats that rounding may make at that point.
    """

    change: float
    slack: float

    @property
    def ratio(self) -> float:
        """The change in tolerances."""
        return self.change / self.slack

    @property
    def holds(self) -> bool:
        """Tell whether no change is above rounding."""
        return self.ratio <= 1.0

    @property
    def doubtful(self) -> bool:
        """Tell whether a change is above rounding and too small to decide."""
        return 1.0 < self.ratio <= DOUBTFUL


def trial(
    generators: Sequence[Generator], measured: BudgetedDensity, probes: Sequence[Probe]
) -> LargestChange:
    """Move points by generators and compare, the first point alone first: mostly it decides."""
    found: list[LargestChange] = []
    for some in (probes[:1], probes[1:]):
        values = measured([act(generators, probe.point) for probe in some])
        for value, probe in zip(values, some, strict=True):
            change = change_at(float(value), probe)
            rough = change.doubtful and _is_rough(generators, measured, probe)
            found.append(LargestChange(change.change, change.change) if rough else change)
        if worst(found).ratio > DOUBTFUL:
            break
    return worst(found)


def _is_rough(generators: Sequence[Generator], measured: BudgetedDensity, probe: Probe) -> bool:
    """Tell whether a change is one of rounding: it differs from one point to the next, where a real one hardly does."""
    rng = np.random.default_rng(0)
    near = [
        {n: np.asarray(v * (1.0 + NEARBY * rng.normal())) for n, v in probe.point.items()}
        for _ in range(ROUGH)
    ]
    here, there = measured(near), measured([act(generators, point) for point in near])
    if not np.isfinite([here, there]).all():
        return False
    return bool((there - here).std() > abs((there - here).mean()))


def worst(trials: Sequence[LargestChange]) -> LargestChange:
    """The one that speaks most against a symmetry."""
    return max(trials, key=lambda each: each.ratio)


def change_at(value: float, probe: Probe) -> LargestChange:
    """Compare the log density of a moved point with that of the point."""
    if not np.isfinite(value):
        return LargestChange(np.inf, probe.tolerance)
    larger = max(1.0, abs(value) / (1.0 + abs(probe.value)))
    return LargestChange(abs(value - probe.value), probe.tolerance * larger)


def search(
    generators: Sequence[Generator], measured: BudgetedDensity, probes: Sequence[Probe]
) -> Space:
    """Find all sums of commuting generators that leave the log density unchanged."""
    moves = own_moves(generators, measured, probes[:FEW])
    if not moves.each:
        return Space(moves)
    within = candidates(moves, measured, probes)
    passing: list[int] = []
    failing: list[int] = []
    doubtful: list[int] = []
    for chosen in least_basis(within, moves.weight):
        found = trial(moves.generators(chosen), measured, probes)
        (passing if found.holds else failing).append(chosen)
        if found.doubtful:
            doubtful.append(chosen)
    if len(failing) > MOST_HALVED:
        return Space(moves, tuple(passing), tuple(doubtful), complete=False)
    more = _in_halves(moves, failing, measured, probes) if len(failing) > 1 else []
    basis = least_basis([*passing, *more], moves.weight)
    return Space(moves, tuple(basis), tuple(doubtful))


def _in_halves(
    moves: Moves, failing: list[int], measured: BudgetedDensity, probes: Sequence[Probe]
) -> list[int]:
    """The symmetries among sums of sets that are none: A + B is one at x where f(A x) = f(B x)."""
    half = len(failing) // 2
    left, right = all_sums(failing[:half]), all_sums(failing[half:])
    probe = probes[0]
    values = [
        measured([moves.act(int(each), probe.point) for each in side]) for side in (left, right)
    ]
    order = np.argsort(values[1], kind="stable")
    ordered = values[1][order]
    size = 1.0 + np.abs(np.concatenate(values)[np.isfinite(np.concatenate(values))]).max(initial=0)
    slack = 2.0 * probe.tolerance * size / (1.0 + abs(probe.value))
    found: list[int] = []
    for place in np.flatnonzero(np.isfinite(values[0])):
        low, high = np.searchsorted(
            ordered, [values[0][place] - slack, values[0][place] + slack], side="left"
        )
        for at in order[low:high]:
            chosen = int(left[place]) ^ int(right[at])
            new = chosen and reduce(chosen, echelon(found))
            if new and trial(moves.generators(chosen), measured, probes).holds:
                found.append(chosen)
    return found


def own_moves(
    generators: Sequence[Generator], measured: BudgetedDensity, probes: Sequence[Probe]
) -> Moves:
    """The sums of each variable's own generators that stay inside its support and do move it.

    Support is what the density shows: a sum that never comes to a finite density is outside. An ordered vector has none
    left, a covariance matrix both axes at once, a simplex and its swap no second one by complements.
    """
    tried: list[tuple[int, tuple[Generator, ...]]] = []
    points: list[Point] = []
    for own in by_name(generators).values():
        for chosen in range(1, 2 ** len(own)):
            move = tuple(own[place] for place in bits(chosen))
            tried.append((chosen, move))
            points += [act(move, probe.point) for probe in probes]
    inside = np.isfinite(measured(points)).reshape(len(tried), -1).any(axis=1)
    point = probes[0].point
    still: dict[str, list[int]] = {}
    for chosen, move in tried:
        name = move[0].name
        if same(act(move, point)[name], point[name]):
            still.setdefault(name, []).append(chosen)
    kept = {name: echelon(vectors) for name, vectors in still.items()}
    moves: dict[str, list[tuple[Generator, ...]]] = {move[0].name: [] for _, move in tried}
    for at in sorted(range(len(tried)), key=lambda at: (len(tried[at][1]), at)):
        chosen, move = tried[at]
        name = move[0].name
        rows = kept.get(name, [])
        if inside[at] and len(more := echelon((*rows, chosen))) > len(rows):
            kept[name] = more
            moves[name].append(move)
    return Moves(tuple(move for own in moves.values() for move in own))


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """Tell whether two values are equal to rounding."""
    return bool(np.abs(a - b).max(initial=0.0) <= SAME * (1.0 + np.abs(b).max(initial=0.0)))


def centred(moves: Iterable[tuple[Generator, ...]], point: Point) -> dict[str, np.ndarray]:
    """The average of every variable over its own moves; every convex support holds it."""
    out = dict(point)
    for move in moves:
        name = move[0].name
        out[name] = np.asarray((out[name] + act(move, out)[name]) / 2.0)
    return out


def candidates(moves: Moves, measured: BudgetedDensity, probes: Sequence[Probe]) -> list[int]:
    """A basis of a space that holds every symmetry among sums of the moves."""
    probe, other = probes[0], probes[-1 if len(probes) < 2 else 1].point
    names = moves.names()
    space = [1 << place for place in range(len(moves.each))]
    middle = centred(moves.each, probe.point)
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


def _checks(moves: Moves, both: int, point: Point, measured: BudgetedDensity) -> list[int]:
    """Vectors with which any symmetry has an even overlap, from all sums of the moves of two variables at one point."""
    places = bits(both)
    chosen = [_placed(code, places) for code in range(2 ** len(places))]
    base = measured.probe(point)
    values = np.concatenate(
        ([base.value], measured([moves.act(each, point) for each in chosen[1:]]))
    )
    finite = np.isfinite(values)
    if not finite.any():
        return []
    size = 1.0 + float(np.abs(values[finite]).max())
    slack = 2.0 * base.tolerance * size / (1.0 + abs(base.value) if base.known else 1.0)
    at = np.arange(len(values))
    filled = np.where(finite, values, 0.0)
    unchanged = [
        shift
        for shift in range(1, len(values))
        if (finite == finite[at ^ shift]).all()
        and np.abs(filled - filled[at ^ shift]).max() <= slack
    ]
    return [_placed(check, places) for check in orthogonal(unchanged, len(places))]


def _placed(code: int, places: list[int]) -> int:
    return sum(1 << places[bit] for bit in bits(code))


def _without_interaction(
    names: tuple[str, ...], measured: BudgetedDensity, probe: Probe, other: Point
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
