"""Candidates for a symmetry, and the log density of a target, evaluated under a budget and compared with rounding.

A candidate is a set of involutions that each act on one variable. The generators of one search commute: all swap the
same two parts, change signs, or take complements. So sets are vectors over GF(2), stored as integers with one bit per
entry, and the sum ``a ^ b`` acts like both sets one after the other.

All comparisons of the search use a `Probe`: a point, its log density, and the change that rounding may make. `Compared`
moves several probes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from onebasin.base.errors import ArgumentError, OnebasinError
from onebasin.base.precision import precision
from onebasin.models.symmetry.block import AxisPart
from onebasin.models.symmetry.elements import bits
from onebasin.models.target import Target
from onebasin.stan.program import definition

from ..contracts.method import bound, defined_by

Point = Mapping[str, np.ndarray]
Place = int | AxisPart  # An axis of components, or a part of an axis.


@dataclass(frozen=True)
class Generator:
    """An involution on one variable: two parts change places, signs change, or theta becomes 1 - theta."""

    name: str
    kind: Literal["swap", "negate", "complement"]
    axis: Place | None = None  # Axis of the parts; None if the whole variable moves.
    parts: tuple[int, ...] = ()  # The two that are swapped, or the one that changes sign.
    inside: tuple[int, int] | None = None  # Another axis and the only index on it with a swap.

    def act(self, value: np.ndarray) -> np.ndarray:
        """Move one value."""
        if self.kind == "complement":
            return np.asarray(1.0 - value)
        if self.axis is None:
            return np.asarray(-value)
        moved = np.array(value)
        where: list[Any] = [slice(None)] * value.ndim
        if self.inside is not None:
            where[self.inside[0]] = self.inside[1]
        axis, *parts = axis_at(self.axis, self.parts)
        if self.kind == "negate":
            where[axis] = parts[0]
            moved[tuple(where)] *= -1.0
            return moved
        there = list(where)
        where[axis], there[axis] = parts
        moved[tuple(where)], moved[tuple(there)] = value[tuple(there)], value[tuple(where)]
        return moved


def axis_at(place: Place, parts: Iterable[int]) -> list[Any]:
    """Return an axis and the index of each part along it; for a part of an axis, its positions."""
    if isinstance(place, int):
        return [place, *parts]
    return [place.axis, *(place.positions[:, part].ravel() for part in parts)]


Generators = Sequence[Generator]


def act(generators: Iterable[Generator], point: Point) -> dict[str, np.ndarray]:
    """Move a point by all of some generators."""
    moved = dict(point)
    for generator in generators:
        moved[generator.name] = generator.act(moved[generator.name])
    return moved


def by_name(generators: Iterable[Generator]) -> dict[str, tuple[Generator, ...]]:
    """Group generators by their variable."""
    found: dict[str, tuple[Generator, ...]] = {}
    for generator in generators:
        found[generator.name] = (*found.get(generator.name, ()), generator)
    return found


def on_parts(generators: Iterable[Generator], parts: tuple[int, ...]) -> tuple[Generator, ...]:
    """Return the same generators on other parts; those of whole variables are unchanged."""
    return tuple(g if g.axis is None else replace(g, parts=parts) for g in generators)


@dataclass(frozen=True)
class Moves:
    """The moves of one search; a set of moves is an integer with one bit per move.

    A move consists of the generators of one variable, usually one, that stay inside its support only together.
    """

    each: tuple[tuple[Generator, ...], ...]

    def names(self, chosen: int | None = None) -> tuple[str, ...]:
        """Return the variables that a set of moves, or all of them, touch."""
        places = range(len(self.each)) if chosen is None else bits(chosen)
        return tuple(dict.fromkeys(self.each[place][0].name for place in places))

    def of(self, name: str) -> int:
        """Return the set of all moves of one variable."""
        return sum(1 << place for place, move in enumerate(self.each) if move[0].name == name)

    def generators(self, chosen: int) -> tuple[Generator, ...]:
        """Return the generators of a set."""
        return tuple(g for place in bits(chosen) for g in self.each[place])

    def act(self, chosen: int, point: Point) -> dict[str, np.ndarray]:
        """Move a point by a set."""
        return act(self.generators(chosen), point)

    def weight(self, chosen: int) -> int:
        """Count the generators of a set."""
        return len(self.generators(chosen))


Shapes = Mapping[str, tuple[int, ...]]


def lengths(shapes: Shapes) -> dict[int, list[tuple[str, int]]]:
    """Group axes by length: lengths of several axes first, then short ones."""
    found: dict[int, list[tuple[str, int]]] = {}
    for name, shape in shapes.items():
        for axis, length in enumerate(shape):
            if length > 1:
                found.setdefault(length, []).append((name, axis))
    return dict(sorted(found.items(), key=lambda item: (len(item[1]) == 1, item[0])))


def swaps(axes: Sequence[tuple[str, int]], first: int, second: int) -> list[Generator]:
    """Return the swaps of two parts along each axis."""
    return [Generator(name, "swap", axis, (first, second)) for name, axis in axes]


def signs_of_part(axes: Sequence[tuple[str, int]], part: int) -> list[Generator]:
    """Return the changes of sign of one part along each axis."""
    return [Generator(name, "negate", axis, (part,)) for name, axis in axes]


NUDGES = 3  # Changes of a point in its last digits.
STEP = 2.0**-50  # Relative size of these changes.
EITHER = np.array([-1.0, 1.0])
INNER, OUTER = 30.0, 200.0
"""Tolerance of a change: multiples of the effect of a nudge, and of the last digit of the log density."""
CHUNK, CHUNK_NUMBERS = 256, 2**21  # Maximum numbers of points, and of their entries, at once.
DOUBTFUL = 1e4  # Changes between the tolerance and this multiple of it are inconclusive.
ROUGH, NEARBY = 12, 2.0**-30
"""Number and relative distance of points around one with a doubtful change."""


@dataclass
class SearchedDensity:
    """The functions of a target that the search uses.

    `shapes` are in the order of declaration. `constrain` maps points (point, dim) of the unconstrained space to values
    (point, ...). `log_density` is that of values, without the Jacobian, and -inf outside the support or if it fails.
    `gradient` gives the log density at one unconstrained point, with the Jacobian, and its gradient, or None. `program`
    is a function of values that JAX can trace, or None: a symmetry leaves all its named results unchanged.
    """

    shapes: Mapping[str, tuple[int, ...]]
    dim: int
    constrain: Callable[[np.ndarray], dict[str, np.ndarray]]
    log_density: Callable[[Mapping[str, np.ndarray]], np.ndarray]
    gradient: Callable[[np.ndarray], tuple[float, np.ndarray] | None]
    program: Callable[[Mapping[str, Any]], Any] | None = None


class OutOfBudget(OnebasinError):
    """The limit on the evaluations or the seconds of a search is reached."""


@dataclass
class BudgetedDensity:
    """A log density with limits on its evaluations and on the seconds since it was made.

    `noise` is the relative error of the log density beyond rounding, such as a solver's.
    """

    density: SearchedDensity
    evaluations: int
    seconds: float
    noise: float = 0.0
    count: int = 0
    started: tuple[float, float] = field(
        default_factory=lambda: (time.perf_counter(), time.process_time())
    )

    @property
    def spent(self) -> float:
        """Seconds since the beginning, or processor seconds of this process if these are fewer."""
        wall, own = self.started
        return min(time.perf_counter() - wall, time.process_time() - own)

    def __call__(self, points: Sequence[Point]) -> Float[np.ndarray, " point"]:
        """Return the log densities at points, or -inf if they are not finite."""
        if not points:
            return np.empty(0)
        most = max(1, min(CHUNK, CHUNK_NUMBERS // max(1, self.density.dim)))
        pieces = [self._some(points[at : at + most]) for at in range(0, len(points), most)]
        return np.concatenate(pieces)

    def _some(self, points: Sequence[Point]) -> np.ndarray:
        if self.count + len(points) > self.evaluations or self.spent > self.seconds:
            raise OutOfBudget
        self.count += len(points)
        names = self.density.shapes
        stacked = {}
        for name in names:
            # Most points share an array, which is written to all rows at once.
            first = points[0][name]
            stacked[name] = np.empty((len(points), *first.shape))
            stacked[name][:] = first
            for row, point in enumerate(points):
                if point[name] is not first:
                    stacked[name][row] = point[name]
        found = np.asarray(self.density.log_density(stacked), dtype=np.float64)
        return np.where(np.isfinite(found), found, -np.inf)

    def probes(self, points: Sequence[Point], *, alike: bool = False) -> list[Probe]:
        """Return points with their log densities and tolerances; with `alike`, all points get the same nudges."""
        rng = np.random.default_rng(0)
        nudged = []
        for point in points:
            rng = np.random.default_rng(0) if alike else rng
            for _ in range(NUDGES):
                nudged.append(
                    {
                        name: np.asarray(v * (1.0 + STEP * EITHER[rng.integers(2, size=v.shape)]))
                        for name, v in point.items()
                    }
                )
        found = self([*points, *nudged])
        here, there = found[: len(points)], found[len(points) :].reshape(len(points), NUDGES)
        with np.errstate(invalid="ignore"):
            change = np.abs(there - here[:, None])
        change = np.where(np.isfinite(change), change, 0.0).max(axis=1)
        size = 1.0 + np.abs(np.where(np.isfinite(here), here, 0.0))
        eps = float(np.finfo(np.float64).eps)
        tolerance = INNER * change + (OUTER * eps + self.noise) * size
        return [
            Probe(point, float(value), float(slack))
            for point, value, slack in zip(points, here, tolerance, strict=True)
        ]


@dataclass(frozen=True)
class Probe:
    """A point, its log density, and the change in nats that rounding may make."""

    point: Point
    value: float
    tolerance: float

    @property
    def known(self) -> bool:
        """Check whether the log density at the point is finite."""
        return bool(np.isfinite(self.value))

    def change(self, value: float) -> LargestChange:
        """Compare the log density of the moved point with that of the point."""
        if not np.isfinite(value):
            return LargestChange(np.inf, self.tolerance)
        larger = max(1.0, abs(value) / (1.0 + abs(self.value)))
        return LargestChange(abs(value - self.value), self.tolerance * larger)

    def slack(self, size: float) -> float:
        """Return the tolerance for log densities up to this size."""
        return self.tolerance * (1.0 + size) / (1.0 + abs(self.value) if self.known else 1.0)


Probes = Sequence[Probe]


@dataclass(frozen=True)
class LargestChange:
    """The largest change of the log density by a move, and its tolerance, in nats; infinite outside the support."""

    change: float
    slack: float

    @property
    def ratio(self) -> float:
        """The change in tolerances."""
        return self.change / self.slack

    @property
    def holds(self) -> bool:
        """Check whether no change is above rounding."""
        return self.ratio <= 1.0

    @property
    def doubtful(self) -> bool:
        """Check whether a change is above rounding and too small to decide."""
        return 1.0 < self.ratio <= DOUBTFUL


def worst(trials: Sequence[LargestChange]) -> LargestChange:
    """Return the change with the largest ratio to its tolerance."""
    return max(trials, key=lambda each: each.ratio)


@dataclass
class Compared:
    """A log density with probes at which it is compared."""

    measured: BudgetedDensity
    probes: Probes

    @property
    def values(self) -> Float[np.ndarray, " point"]:
        """Log densities of the probes."""
        return np.array([probe.value for probe in self.probes])

    def at(self, probes: Probes) -> Compared:
        """Return the same log density with other probes."""
        return Compared(self.measured, probes)

    def moved(self, generators: Generators) -> Float[np.ndarray, " point"]:
        """Return the log densities of the probes after a move."""
        return self.measured([act(generators, probe.point) for probe in self.probes])

    def trial(self, generators: Generators) -> LargestChange:
        """Move the probes and compare; the first probe is tried alone, because it usually decides."""
        found: list[LargestChange] = []
        for some in (self.probes[:1], self.probes[1:]):
            for value, probe in zip(self.at(some).moved(generators), some, strict=True):
                change = probe.change(float(value))
                rough = change.doubtful and self._is_rough(generators, probe)
                found.append(LargestChange(change.change, change.change) if rough else change)
            if worst(found).ratio > DOUBTFUL:
                break
        return worst(found)

    def _is_rough(self, generators: Generators, probe: Probe) -> bool:
        """Check whether a change is rounding error, which differs between nearby points, unlike a real change."""
        rng = np.random.default_rng(0)
        near = [
            {n: np.asarray(v * (1.0 + NEARBY * rng.normal())) for n, v in probe.point.items()}
            for _ in range(ROUGH)
        ]
        here = self.measured(near)
        there = self.measured([act(generators, point) for point in near])
        if not np.isfinite([here, there]).all():
            return False
        return bool((there - here).std() > abs((there - here).mean()))


def points_of(values: Mapping[str, np.ndarray]) -> list[dict[str, np.ndarray]]:
    """Split arrays (point, ...) into points."""
    return [
        {name: np.asarray(value[row], dtype=np.float64) for name, value in values.items()}
        for row in range(len(next(iter(values.values()))))
    ]


BATCH = 32  # points that JAX evaluates at once; smaller batches are padded so that JAX compiles only once
ROUND_TRIP = 1e-6
"""Relative change of a value that is unconstrained and constrained again, up to which it is inside its support."""
_SOLVERS = ("ode_", "integrate_ode", "dae(", "algebra_solver", "solve_newton", "solve_powell")
SOLVER_NOISE = 1e-7
"""Relative error of the log density of a program that solves equations numerically."""


def searched(
    target: Target, engine: str | None, progress: Callable[[str], None] | None
) -> tuple[SearchedDensity, float]:
    """Return a target's log density for the search, and its relative error beyond rounding."""
    engine = defined_by(target, engine)
    if engine == "numpyro":
        return numpyro_searched(target), 0.0
    program = definition(target).path.read_text(encoding="utf-8", errors="replace")
    noise = SOLVER_NOISE if any(word in program for word in _SOLVERS) else 0.0
    return stan_searched(bound(target, engine), progress), noise


def numpyro_searched(target: Target) -> SearchedDensity:
    """Return the log density of a NumPyro model for the search, in double precision."""
    import jax

    from ..density.network import in_blocks, in_double
    from ..density.numpyro import NumpyroValues

    with precision("float64"):
        values = NumpyroValues(target)
        density = values.density
        slope = jax.jit(jax.value_and_grad(density.log_density))

    def log_density(given: Mapping[str, np.ndarray]) -> np.ndarray:
        with precision("float64"):
            found: np.ndarray = in_blocks(values.log_density, given, size=batch)
        return found

    def gradient(vector: np.ndarray) -> tuple[float, np.ndarray]:
        with precision("float64"):
            value, by_vector = slope(np.asarray(vector, dtype=np.float64))
        return float(value), np.asarray(by_vector)

    shapes = {name: tuple(chart.event_shape) for name, chart in density.charts.items()}
    batch = max(1, min(BATCH, CHUNK_NUMBERS // max(1, 8 * density.size)))
    constrain = in_double(density.constrain, batch)
    return SearchedDensity(shapes, density.size, constrain, log_density, gradient, values.terms)


def stan_searched(target: Target, progress: Callable[[str], None] | None = None) -> SearchedDensity:
    """Return the log density of a Stan program for the search; raise ValueError for tuples and complex parameters."""
    from onebasin.stan.library import open_library

    library = open_library(definition(target), progress=progress)
    shapes, names = library.variables(), library.names()
    odd = next((name for name in names if name.endswith((".real", ".imag")) or ":" in name), "")
    if odd or sum(math.prod(shape) for shape in shapes.values()) != len(names):
        raise ArgumentError(
            f"The parameter {odd.split('.')[0].split(':')[0]} of `target` {target.name!r} is complex or a tuple, but "
            "the search for symmetries supports only real parameters. Declare the symmetry instead."
        )

    def constrain(vectors: np.ndarray) -> dict[str, np.ndarray]:
        return library.unpack(library.constrain(vectors))

    def log_density(values: Mapping[str, np.ndarray]) -> np.ndarray:
        # A value that does not survive unconstraining and constraining is outside the support.
        vectors = library.unconstrain(library.pack(values))
        inside = np.isfinite(vectors).all(axis=-1)
        found = np.full(len(vectors), -np.inf)
        if inside.any():
            vectors = vectors[inside]
            same = np.ones(len(vectors), dtype=bool)
            for name, value in constrain(vectors).items():
                axes, given = tuple(range(1, value.ndim)), np.asarray(values[name])[inside]
                slack = ROUND_TRIP * (1e-6 + np.abs(given).max(axis=axes, initial=0.0))
                same &= np.abs(value - given).max(axis=axes, initial=0.0) <= slack
            level = library.log_density(vectors, propto=False, jacobian=False)
            found[inside] = np.where(same, level, -np.inf)
        return found

    def gradient(vector: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = library.log_density_gradient(vector)
        return float(value), slope

    return SearchedDensity(shapes, library.dim, constrain, log_density, gradient)
