"""The state of a search, and an algorithm that finds all symmetries among sums of some moves.

Symmetries among sums of moves form a vector space over GF(2), which linear algebra finds. Pairs of variables come
first. The moves of a variable leave its average over these moves unchanged. If all variables except two are at such
points, a symmetry acts only on these two, so it lies in the small space of their moves that keep the density. The space
that is left after all pairs contains every symmetry; its elements are then compared at probes.

Probes are random points inside the support, and points near the posterior.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize

from onebasin.base.errors import InferenceError
from onebasin.models.symmetry.elements import (
    bits,
    echelon,
    kept_by,
    least_basis,
    orthogonal,
    reduce,
    span,
)

from .measuring import (
    BudgetedDensity,
    Compared,
    Generator,
    Generators,
    Moves,
    OutOfBudget,
    Point,
    Probe,
    act,
    by_name,
    lengths,
    points_of,
)
from .result import FoundBlock

if TYPE_CHECKING:
    from onebasin.models.reading.read import ReadClass, ReadSymmetry


MOST_HALVED = 24  # Maximum dimension in which sums of failing sets are searched in halves.
FEW = 2  # Points at which supports are tested.
MOST_MOVES = 8  # Maximum number of moves of a pair for an evaluation of all their sums.
MANY = 8  # Number of variables from which interactions are tested first.
TOGETHER = 32  # Maximum number of pairs evaluated at a time.
SAME = 1e-12  # Relative difference up to which two values are equal.


@dataclass(frozen=True)
class Space:
    """The result of a search among sums of moves."""

    moves: Moves  # Meaning of the bits of the vectors.
    basis: tuple[int, ...] = ()  # Basis of the symmetries, of least weight.
    doubtful: tuple[int, ...] = ()  # Sets whose change is above rounding, but too small to decide.
    complete: bool = True  # Whether all sums were searched.


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
    """Find symmetries among sums of sets that are not symmetries: A + B is one if f(A x) = f(B x)."""
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
        level = values[0][place]
        low, high = np.searchsorted(ordered, [level - slack, level + slack], side="left")
        for at in order[low:high]:
            chosen = left[place] ^ right[at]
            new = chosen and reduce(chosen, echelon(found))
            if new and compared.trial(moves.generators(chosen)).holds:
                found.append(chosen)
    return found


def own_moves(generators: Generators, compared: Compared) -> Moves:
    """Return the sums of each variable's own generators that move it and stay inside its support.

    A sum that never leads to a finite density is outside the support. An ordered vector has no such sum, and a
    covariance matrix only swaps along both axes at once.
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
    kept: dict[str, list[int]] = {}  # Sums that leave each variable unchanged, or are moves.
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
    """Check whether two values are equal to rounding."""
    return bool(np.abs(a - b).max(initial=0.0) <= SAME * (1.0 + np.abs(b).max(initial=0.0)))


def centred(moves: Iterable[tuple[Generator, ...]], point: Point) -> dict[str, np.ndarray]:
    """Average every variable over its own moves; every convex support contains the average."""
    out = dict(point)
    for move in moves:
        name = move[0].name
        out[name] = np.asarray((out[name] + act(move, out)[name]) / 2.0)
    return out


def candidates(moves: Moves, compared: Compared) -> list[int]:
    """Return a basis of a space that contains every symmetry among sums of the moves.

    With many variables, several pairs are evaluated at a time, until an earlier pair makes one of them superfluous.
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
    """Return, for each pair of variables at one point, vectors with which any symmetry has an even overlap."""
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
    """Return these vectors from the values of all sums at one point, beginning with the value of the point itself."""
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
    """Pairs of variables with a nonzero mixed second difference; no other pair has a joint symmetry."""

    def __init__(self, names: tuple[str, ...], compared: Compared) -> None:
        probe, other = compared.probes[0], compared.probes[-1 if len(compared.probes) < 2 else 1]
        self.measured, self.probe, self.other = compared.measured, probe, other.point
        single = self.measured([{**probe.point, name: self.other[name]} for name in names])
        self.alone = dict(zip(names, single, strict=True))
        finite = single[np.isfinite(single)]
        self.slack = 4.0 * probe.slack(np.abs(finite).max(initial=abs(probe.value)))

    def of(self, first: str, seconds: Sequence[str]) -> list[str]:
        """Return the second variables that interact, or may interact, with the first one."""
        known = [n for n in seconds if np.isfinite([self.alone[first], self.alone[n]]).all()]
        both = self.measured(
            [{**self.probe.point, first: self.other[first], n: self.other[n]} for n in known]
        )
        apart = {
            name
            for name, value in zip(known, both, strict=True)
            if abs(value - self.alone[first] - self.alone[name] + self.probe.value) <= self.slack
        }
        return [name for name in seconds if name not in apart]


Axes = list[tuple[str, int]]

SCALES = (1.0, 0.5, 2.0, 1.0, 4.0, 8.0)
"""Standard deviations of random points in the unconstrained space."""
NEAREST = 3  # Number of random points with the highest density.
TRIES = 14  # attempts to draw a point with a finite log density, each a little nearer to the origin
NEARER = 0.75
STARTS, ITERATIONS = 2, 150  # Number of ascents to optima, and their iterations.
MORE_STARTS, WIDE = 6, 2.0  # Number and reach of ascents that show that there is one mode.
WALKERS, STEPS = 6, 60  # Number and length of the random walks from an optimum.
SHARE = 0.12  # Maximum share of a search's seconds for each ascent, and for the walks.
FAR_ENOUGH = 3.0  # Coordinates of points at which a parameter of the real line has both signs.
VERIFIED_AT = 2  # Number of points at which blocks from the program are compared.
SEARCHED = 5_000  # Number of parameters above which only the program is read.
FAR = 12.0  # An ascent beyond these coordinates has not found a maximum.


@dataclass
class Search(Compared):
    """The shared state of the stages of a search; `probes` are random points."""

    given: list[Probe]  # Draws of the posterior; by default rough ones are made if they are needed.
    seed: int
    found: list[FoundBlock] = field(default_factory=list)
    open: list[str] = field(default_factory=list)  # What was not searched.
    spaces: dict[int, Space] = field(default_factory=dict)  # Exact searches by number of parts.
    program: ReadSymmetry | None = None  # The symmetry read from the program, if there is one.

    @property
    def order(self) -> tuple[str, ...]:
        """The variables in the order of declaration."""
        return tuple(self.measured.density.shapes)

    @property
    def large(self) -> bool:
        """Check whether the target has too many parameters to be searched."""
        return self.program is not None and self.measured.density.dim > SEARCHED

    @cached_property
    def read(self) -> frozenset[tuple[str, int]]:
        """Axes that move, wholly or in part, according to the program."""
        return self._places_of(self.program.classes if self.program else ())

    @cached_property
    def signs_read(self) -> frozenset[tuple[str, int]]:
        """Axes along which components may change their signs according to the program."""
        classes = self.program.classes if self.program else ()
        return self._places_of([each for each in classes if each.signs])

    @staticmethod
    def _places_of(classes: Sequence[ReadClass]) -> frozenset[tuple[str, int]]:
        places = (own for each in classes for own in each.places.items())
        return frozenset((name, part.axis) for name, parts in places for part in parts)

    @cached_property
    def lengths(self) -> dict[int, Axes]:
        """Axes by length."""
        return lengths(self.measured.density.shapes)

    @cached_property
    def ends(self) -> list[AscentEnd]:
        """Ends of ascents to optima."""
        return optima(self.measured, self.seed)

    @cached_property
    def more_ends(self) -> list[AscentEnd]:
        """Ends of converged ascents from farther away."""
        found = optima(self.measured, self.seed + 101, starts=MORE_STARTS, reach=WIDE)
        return [end for end in found if end.converged]

    @cached_property
    def near(self) -> list[Probe]:
        """Probes near the posterior: given draws, or rough ones."""
        return self.given or near_posterior(self.measured, self.seed, self.ends)

    @property
    def nearest(self) -> Search:
        """The same search at only the few random points of the highest density."""
        near = copy(self)
        near.probes = sorted(self.probes, key=lambda probe: -probe.value)[:NEAREST]
        return near

    @cached_property
    def shares(self) -> list[Generator]:
        """Complements of variables that lie in (0, 1) at every probe."""
        values = {name: [p.point[name] for p in self.probes] for name in self.order}
        return [
            Generator(name, "complement")
            for name, each in values.items()
            if all(v.size and (v > 0).all() and (v < 1).all() for v in each)
        ]

    @cached_property
    def signed(self) -> tuple[str, ...]:
        """Variables with values of both signs at some points; only these can change sign."""
        density = self.measured.density
        # A scalar may have one sign at all random points, so far points on either side are tested too.
        far = density.constrain(np.outer((-FAR_ENOUGH, FAR_ENOUGH), np.ones(density.dim)))
        points = [*(p.point for p in self.probes), *points_of(far)]
        return tuple(
            name
            for name in self.order
            if any((point[name] < 0).any() for point in points)
            and any((point[name] > 0).any() for point in points)
        )

    def stage(self, what: str, run: Callable[[], Iterator[FoundBlock]]) -> None:
        """Run a part of the search; if the budget ends in it, list it as not searched."""
        try:
            for block in run():
                self.found.append(block)
        except OutOfBudget:
            self.open.append(what)


def random_probes(measured: BudgetedDensity, seed: int, most: int | None = None) -> list[Probe]:
    """Draw random points with a finite log density, at most `most` of them."""
    rng = np.random.default_rng(seed)
    density = measured.density
    found: dict[int, dict[str, np.ndarray]] = {}
    for attempt in range(TRIES):
        left = [place for place in range(len(SCALES[:most])) if place not in found]
        if not left:
            break
        spread = np.array([SCALES[place] * NEARER**attempt for place in left])
        values = density.constrain(spread[:, None] * rng.normal(size=(len(left), density.dim)))
        points = points_of(values)
        known = np.isfinite(measured(points))
        tried = zip(left, points, known, strict=True)
        found |= {place: point for place, point, good in tried if good}
    if not found:
        raise InferenceError(
            "No point with a finite log density was found. Check the data and the prior."
        )
    points = [found[place] for place in sorted(found)]
    probes = measured.probes(points)
    again = measured([points[0]])[0]
    if again != probes[0].value:
        raise InferenceError(
            "The log density at one point differs between two evaluations, so symmetries cannot be checked. Remove "
            "random numbers from the model."
        )
    return [probe for probe in probes if probe.known]


@dataclass(frozen=True)
class AscentEnd:
    """The end of an ascent, with its vector in the unconstrained space; `converged` if the gradient vanishes."""

    probe: Probe
    vector: Float[np.ndarray, " dim"]
    converged: bool


def optima(
    measured: BudgetedDensity, seed: int, *, starts: int = STARTS, reach: float = 1.0
) -> list[AscentEnd]:
    """Ascend from random points within `reach`; return no end if the density has no gradient."""
    density = measured.density
    rng = np.random.default_rng(seed + 1)
    until = math.inf

    def loss(vector: np.ndarray) -> tuple[float, np.ndarray]:
        slope = density.gradient(vector)
        if slope is None or not np.isfinite(slope[0]) or not np.isfinite(slope[1]).all():
            return 1e300, np.zeros_like(vector)
        return -slope[0], -slope[1]

    def stop(_: np.ndarray) -> None:
        if measured.spent > until:
            raise StopIteration

    found = []
    for _ in range(starts):
        start = rng.uniform(-reach, reach, size=density.dim)
        if density.gradient(start) is None:
            return []
        until = measured.spent + SHARE * measured.seconds
        end = minimize(
            loss,
            start,
            jac=True,
            method="L-BFGS-B",
            callback=stop,
            options={"maxiter": ITERATIONS, "gtol": 1e-6, "ftol": 1e-14},
        )
        (probe,) = measured.probes(points_of(density.constrain(np.asarray(end.x)[None])))
        if probe.known:
            steep = float(np.abs(end.jac).max(initial=0.0))
            done = steep < 1e-3 * (1.0 + 1e-3 * abs(float(end.fun))) and np.abs(end.x).max() < FAR
            found.append(AscentEnd(probe, end.x, bool(done)))
    return found


def near_posterior(measured: BudgetedDensity, seed: int, ends: list[AscentEnd]) -> list[Probe]:
    """Return optima and rough draws: ends of short random walks from an optimum, or from the best random points.

    The walks omit the Jacobian of the unconstrained space, which does not matter for rough draws.
    """
    density = measured.density
    rng = np.random.default_rng(seed + 2)
    if ends:
        starts = np.array([ends[at % len(ends)].vector for at in range(WALKERS)])
    else:
        tried = rng.normal(size=(16, density.dim))
        starts = tried[np.argsort(-_levels(measured, tried))[:WALKERS]]
    # Random-walk Metropolis; the step of each chain is tuned to accept a quarter.
    place = starts.copy()
    height = _levels(measured, place)
    step = np.full(len(place), 1.0 / np.sqrt(max(1, place.shape[1])))
    until = measured.spent + SHARE * measured.seconds
    for _ in range(STEPS):
        if measured.spent > until:
            break
        there = place + step[:, None] * rng.normal(size=place.shape)
        new = _levels(measured, there)
        with np.errstate(invalid="ignore"):
            taken = np.log(rng.uniform(size=len(place))) < new - height
        place[taken], height[taken] = there[taken], new[taken]
        step *= np.where(taken, 1.3, 0.92)
    probes = measured.probes(points_of(density.constrain(place)))
    return [p for p in (*(end.probe for end in ends), *probes) if p.known]


def _levels(measured: BudgetedDensity, vectors: np.ndarray) -> np.ndarray:
    return measured(points_of(measured.density.constrain(vectors)))
