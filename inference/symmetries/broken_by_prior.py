"""Symmetries that only a prior breaks, and by how many nats.

From the log density f the main effects of the moved variables v are taken off, each at an anchor a that every element
leaves alone: f(x) - sum over v of f(a with v = x_v). What is a symmetric function plus a function of each moved
variable alone, such as its prior, is symmetric then, whatever the priors are; so the exact search finds it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from .gf2 import echelon, reduce
from .groups import everything, grouped, moved
from .measuring import Measured, Probe, point_of
from .moves import Move, Moves, Point
from .pairs import centred
from .spaces import Space, search

FRACTION = 0.05
"""Largest change, of what the least of its variables changes alone, that counts as near."""


@dataclass
class Anchored:
    """A log density without the main effects of some variables; see the module.

    Attributes
    ----------
    measured : Measured
        The log density itself.
    anchor : mapping of str to array
        The moved variables where every element leaves them alone.
    """

    measured: Measured
    anchor: Point
    known: dict[tuple[str, bytes, bytes], float] = field(default_factory=dict)

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """See `SearchedDensity`."""
        return self.measured.density.shapes

    @property
    def dim(self) -> int:
        """See `SearchedDensity`."""
        return self.measured.density.dim

    def constrain(self, vectors: np.ndarray) -> dict[str, np.ndarray]:
        """See `SearchedDensity`."""
        return self.measured.density.constrain(vectors)

    def gradient(self, vector: np.ndarray) -> None:
        """None."""

    def log_density(self, values: Mapping[str, np.ndarray]) -> np.ndarray:
        """See `SearchedDensity`."""
        count = len(next(iter(values.values())))
        points = [point_of(values, row) for row in range(count)]
        stays = [name for name in self.shapes if name not in self.anchor]
        rests = [b"".join(point[name].tobytes() for name in stays) for point in points]
        wanted: dict[tuple[str, bytes, bytes], Point] = {}
        for point, rest in zip(points, rests, strict=True):
            for name in ("", *self.anchor):
                key = self._key(name, point, rest)
                if key not in self.known and key not in wanted:
                    own = {name: point[name]} if name else {}
                    wanted[key] = {**point, **self.anchor, **own}
        found = self.measured(list(wanted.values()))
        self.known.update(zip(wanted, found.tolist(), strict=True))
        base = self.measured(points)
        with np.errstate(invalid="ignore"):
            return np.array(
                [
                    value - self._main(point, rest)
                    for value, point, rest in zip(base, points, rests, strict=True)
                ]
            )

    def _main(self, point: Point, rest: bytes) -> float:
        middle = self.known[self._key("", point, rest)]
        return sum(self.known[self._key(n, point, rest)] - middle for n in self.anchor)

    def _key(self, name: str, point: Point, rest: bytes) -> tuple[str, bytes, bytes]:
        return (name, point[name].tobytes() if name else b"", rest)


@dataclass(frozen=True)
class Broken:
    """A near symmetry.

    Attributes
    ----------
    moves : Moves
        All at once.
    by : float
        Median change of the log density in nats, near the posterior.
    largest : float
        The largest.
    alone : float
        The median change when the least of its variables moves alone.
    """

    moves: Moves
    by: float
    largest: float
    alone: float


def near_symmetries(
    space: Space,
    middle: Point,
    measured: Measured,
    probes: Sequence[Probe],
    near: Callable[[], Sequence[Probe]],
) -> list[Broken]:
    """Symmetries of the anchored density, of two variables or more, that are none of the density itself.

    Parameters
    ----------
    space : Space
        The exact search with the same moves.
    middle : mapping of str to array
        Every moved variable where all elements leave it alone.
    measured : Measured
        The log density.
    probes : sequence of Probe
        Random points.
    near : callable
        Gives points near the posterior, which cost something.
    """
    moves = space.moves
    names = moves.names()
    if len(names) < 2 or len(space.basis) == len(moves.each):
        return []
    anchored = Measured(
        Anchored(measured, {name: middle[name] for name in names}),
        measured.evaluations,
        measured.seconds,
        measured.noise,
        started=measured.started,
    )
    within = [p for p in anchored.probes([probe.point for probe in probes]) if p.known]
    if len(within) < 2:
        return []
    generators = [g for move in moves.each for g in move.generators]
    found = search(generators, anchored, within)
    exact = echelon(space.basis) if found.moves == moves else []
    broken = []
    for chosen in found.basis:
        if len(found.moves.names(chosen)) < 2 or not reduce(chosen, exact):
            continue
        one = _broken(grouped(found.moves.generators(chosen)), measured, near())
        if one is not None:
            broken.append(one)
    return broken


def _broken(moves: Moves, measured: Measured, near: Sequence[Probe]) -> Broken | None:
    whole = _changes(moves, everything(moves), measured, near)
    alone = [_changes(moves, 1 << place, measured, near) for place in range(len(moves.each))]
    least = min(float(np.median(change)) for change in alone)
    by = float(np.median(whole))
    if not np.isfinite(by) or by >= FRACTION * least:
        return None
    finite = whole[np.isfinite(whole)]
    return Broken(moves, by, float(finite.max()), least)


def _changes(moves: Moves, chosen: int, measured: Measured, near: Sequence[Probe]) -> np.ndarray:
    found = measured([moves.act(chosen, probe.point) for probe in near])
    return np.abs(found - np.array([probe.value for probe in near]))


def breaks(
    moves: Moves, length: int, measured: Measured, near: Sequence[Probe], most: int = 8
) -> float:
    """The largest of the median changes when the first part changes places with each of some others."""
    generators = [g for move in moves.each for g in move.generators]
    others = range(1, min(length, most + 1))
    found = []
    for part in others:
        own = moved(generators, (0, part))
        found.append(float(np.median(_changes(own, everything(own), measured, near))))
    return max(found)


def middle_of(moves: Moves, point: Point, length: int) -> dict[str, np.ndarray]:
    """Every moved variable at the average over all orders of its parts; what moves as a whole at its own average."""
    out = dict(point)
    for move in moves.each:
        axes = tuple(g.axis for g in move.generators if g.axis is not None)
        if not axes:
            out = centred(Moves((move,)), out)
        elif len(axes) == 1:
            out[move.name] = _mean_along(out[move.name], axes[0])
        else:
            out[move.name] = _mean_of_square(out[move.name], move, length)
    return out


def _mean_along(value: np.ndarray, axis: int) -> np.ndarray:
    return np.broadcast_to(value.mean(axis=axis, keepdims=True), value.shape).copy()


def _mean_of_square(value: np.ndarray, move: Move, length: int) -> np.ndarray:
    """The average over one order along two axes at once, by cyclic shifts and swaps of neighbours."""
    axes = tuple(g.axis for g in move.generators if g.axis is not None)
    moved_ = np.moveaxis(value, axes, range(len(axes)))
    out = np.empty_like(moved_)
    on = np.zeros(moved_.shape[: len(axes)], dtype=bool)
    diagonal = np.arange(length)
    on[tuple(diagonal for _ in axes)] = True
    out[on] = moved_[on].mean(axis=0)
    out[~on] = moved_[~on].mean(axis=0)
    return np.moveaxis(out, range(len(axes)), axes)
