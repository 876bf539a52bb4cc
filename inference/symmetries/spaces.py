"""All symmetries among the sums of some moves: a space over GF(2), found by linear algebra and compared at points.

Two variables at a time come first. A variable's average over its own moves is a point that they leave alone. With all
variables but two there, a symmetry acts on these two alone, so that it lies in the small space of those of their moves
that change nothing. What passes all pairs is a space that holds every symmetry.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from onebasin.models.symmetry.gf2 import (
    bits,
    echelon,
    kept_by,
    least_basis,
    orthogonal,
    reduce,
    span,
)

from .measuring import Compared, Probe
from .moves import Generator, Generators, Moves, Point, act, by_name

MOST_HALVED = 24  # Dimensions up to which sums of what fails are searched in halves.
FEW = 2  # Points at which supports are looked at.
MOST_MOVES = 8  # Moves of a pair up to which all their sums are evaluated.
MANY = 8  # Variables from which on it is first asked which of them interact at all.
TOGETHER = 32  # Pairs of many variables that are evaluated at a time at most.
SAME = 1e-12  # Relative difference up to which two values are the same point.


@dataclass(frozen=True)
class Space:
    """The findings of a search; `doubtful` are sets whose change is above rounding and too small to decide anything."""

    moves: Moves  # what the bits of the vectors are
    basis: tuple[int, ...] = ()  # of the symmetries, the lightest
    doubtful: tuple[int, ...] = ()
    complete: bool = True  # no other symmetry is among the sums


def search(generators: Generators, compared: Compared) -> Space:
    """Find all sums of commuting generators that leave the log density unchanged."""
    moves = own_moves(generators, compared.at(compared.probes[:FEW]))
    if not moves.each:
        return Space(moves)
    within = candidates(moves, compared)
    passing: list[int] = []
    failing: list[int] = []
    doubtful: list[int] = []
    for chosen in least_basis(within, moves.weight):
        found = compared.trial(moves.generators(chosen))
        (passing if found.holds else failing).append(chosen)
        if found.doubtful:
            doubtful.append(chosen)
    if len(failing) > MOST_HALVED:
        return Space(moves, tuple(passing), tuple(doubtful), complete=False)
    more = _in_halves(moves, failing, compared) if len(failing) > 1 else []
    basis = least_basis([*passing, *more], moves.weight)
    return Space(moves, tuple(basis), tuple(doubtful))


def _in_halves(moves: Moves, failing: list[int], compared: Compared) -> list[int]:
    """The symmetries among sums of sets that are none: A + B is one at x where f(A x) = f(B x)."""
    half = len(failing) // 2
    left, right = span(failing[:half]), span(failing[half:])
    probe = compared.probes[0]
    values = [
        compared.measured([moves.act(each, probe.point) for each in side]) for side in (left, right)
    ]
    order = np.argsort(values[1], kind="stable")
    ordered = values[1][order]
    every = np.concatenate(values)
    slack = 2.0 * probe.slack(np.abs(every[np.isfinite(every)]).max(initial=0))
    found: list[int] = []
    for place in np.flatnonzero(np.isfinite(values[0])):
        low, high = np.searchsorted(
            ordered, [values[0][place] - slack, values[0][place] + slack], side="left"
        )
        for at in order[low:high]:
            chosen = left[place] ^ right[at]
            new = chosen and reduce(chosen, echelon(found))
            if new and compared.trial(moves.generators(chosen)).holds:
                found.append(chosen)
    return found


def own_moves(generators: Generators, compared: Compared) -> Moves:
    """The sums of each variable's own generators that stay inside its support and do move it.

    Support is what the density shows: a sum that never comes to a finite density is outside. An ordered vector has none
    left, a covariance matrix both axes at once, a simplex and its swap no second one by complements.
    """
    probes = compared.probes
    tried = [
        (chosen, tuple(own[place] for place in bits(chosen)))
        for own in by_name(generators).values()
        for chosen in range(1, 2 ** len(own))
    ]
    points = [act(move, probe.point) for _, move in tried for probe in probes]
    inside = np.isfinite(compared.measured(points)).reshape(len(tried), -1).any(axis=1)
    point = probes[0].point
    kept: dict[str, list[int]] = {}  # of each variable, the sums that leave it or are moves
    for chosen, move in tried:
        name = move[0].name
        if same(act(move, point)[name], point[name]):
            kept[name] = echelon((*kept.get(name, ()), chosen))
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


def candidates(moves: Moves, compared: Compared) -> list[int]:
    """A basis of a space that holds every symmetry among sums of the moves.

    Of many variables several pairs are evaluated at a time, as long as none of them turns out to be needless.
    """
    probe = compared.probes[0]
    names = moves.names()
    own = {name: moves.of(name) for name in names}
    space = [1 << place for place in range(len(moves.each))]
    middle = centred(moves.each, probe.point)
    together = TOGETHER if len(names) >= MANY else 1
    interacting = _Interactions(names, compared) if len(names) >= MANY else None

    def is_open(first: str, second: str) -> bool:
        both = own[first] | own[second]
        if both.bit_count() > MOST_MOVES:
            return False
        parts = (vector & both for vector in space if vector & both)
        one = next(parts, 0)
        return any(part != one for part in parts)

    for at, first in enumerate(names):
        rest, width = names[at + 1 :], 1
        while rest:
            some = [name for name in rest[:width] if is_open(first, name)]
            rest = rest[width:]
            if interacting is not None:
                some = interacting.of(first, some)
            each = [
                (own[first] | own[name], middle | {n: probe.point[n] for n in (first, name)})
                for name in some
            ]
            width = min(2 * width, together)
            for name, checks in zip(some, _checks(moves, each, compared), strict=True):
                if is_open(first, name):
                    for check in checks:
                        space = kept_by(space, check)
                else:
                    width = 1
    return space


def _checks(
    moves: Moves, pairs: Sequence[tuple[int, Point]], compared: Compared
) -> list[list[int]]:
    """Vectors with which any symmetry has an even overlap, from all sums of the moves of two variables at one point."""
    if not pairs:
        return []
    bases = compared.measured.probes([point for _, point in pairs], alike=True)
    places = [bits(both) for both, _ in pairs]
    moved = [
        moves.act(_placed(code, own), point)
        for own, (_, point) in zip(places, pairs, strict=True)
        for code in range(1, 2 ** len(own))
    ]
    ends = np.cumsum([2 ** len(own) - 1 for own in places])
    found = np.split(compared.measured(moved), ends[:-1])
    return [
        _kept_apart(base, np.concatenate([[base.value], values]), own)
        for base, values, own in zip(bases, found, places, strict=True)
    ]


def _kept_apart(base: Probe, values: np.ndarray, places: list[int]) -> list[int]:
    """The same for the values of all sums at one point, the point itself first."""
    finite = np.isfinite(values)
    if not finite.any():
        return []
    slack = 2.0 * base.slack(float(np.abs(values[finite]).max()))
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


class _Interactions:
    """Pairs of variables whose mixed second difference is not zero: of others, no sums are one symmetry together."""

    def __init__(self, names: tuple[str, ...], compared: Compared) -> None:
        probe, other = compared.probes[0], compared.probes[-1 if len(compared.probes) < 2 else 1]
        self.measured, self.probe, self.other = compared.measured, probe, other.point
        single = self.measured([{**probe.point, name: self.other[name]} for name in names])
        self.alone = dict(zip(names, single, strict=True))
        self.slack = 4.0 * probe.slack(
            np.abs(single[np.isfinite(single)]).max(initial=abs(probe.value))
        )

    def of(self, first: str, seconds: Sequence[str]) -> list[str]:
        """The second variables that the first one interacts with, or of which it is not known."""
        known = [
            name for name in seconds if np.isfinite([self.alone[first], self.alone[name]]).all()
        ]
        both = self.measured(
            [{**self.probe.point, first: self.other[first], n: self.other[n]} for n in known]
        )
        apart = {
            name
            for name, value in zip(known, both, strict=True)
            if abs(value - self.alone[first] - self.alone[name] + self.probe.value) <= self.slack
        }
        return [name for name in seconds if name not in apart]
