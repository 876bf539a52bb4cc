"""Symmetries that only a prior breaks, and by how many nats.

From the log density f the main effects of the moved variables v are taken off, each at an anchor a that every element
leaves alone: f(x) - sum over v of f(a with v = x_v). What is a symmetric function plus a function of each moved
variable alone, such as its prior, is symmetric then, whatever the priors are; so the exact search finds it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from .describe import exchangeable, listed, weighing, whole
from .gf2 import echelon, reduce
from .measuring import BudgetedDensity, Probe, point_of
from .moves import Generator, Moves, Point, act, by_name
from .result import FoundBlock
from .search import Search
from .spaces import centred, search
from .status import copies

FRACTION = 0.05
"""Largest change, of what the least of its variables changes alone, that counts as near."""


@dataclass
class Anchored:
    """A log density without the main effects of some variables; see the module.

    Attributes
    ----------
    measured : BudgetedDensity
        The log density itself.
    anchor : mapping of str to array
        The moved variables where every element leaves them alone.
    """

    measured: BudgetedDensity
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


def nearly(s: Search, length: int) -> Iterator[FoundBlock]:
    """Yield the symmetries that all but a prior has, of parts of one length; of whole variables where it is 0."""
    space = s.spaces.get(length)
    if space is None or len(names := space.moves.names()) < 2:
        return
    if len(space.basis) == len(space.moves.each):
        return
    middle = _middle(space.moves, s.probes[0].point, length)
    anchored = s.measured.of(Anchored(s.measured, {name: middle[name] for name in names}))
    within = [p for p in anchored.probes([probe.point for probe in s.probes]) if p.known]
    if len(within) < 2:
        return
    found = search([g for move in space.moves.each for g in move], anchored, within)
    exact = echelon(space.basis) if found.moves == space.moves else []
    known = [set(space.moves.names(chosen)) for chosen in space.basis]
    for chosen in found.basis:
        own = by_name(found.moves.generators(chosen))
        if len(own) < 2 or not reduce(chosen, exact):
            continue
        generators = tuple(g for each in own.values() for g in each)
        by = _change(generators, s.measured, s.near)
        least = min(_change(each, s.measured, s.near) for each in own.values())
        if not by < FRACTION * least or any(set(own) <= each for each in known):
            continue
        if length > 2:
            others = copies(generators, length)
            by = max(by, *(_change(each, s.measured, s.near) for each in others))
        if by < least:
            block = (exchangeable if length else whole)(generators, s.order)
            said = (f"{listed(generators)}: {weighing(by)}",)
            yield FoundBlock(block, listed(generators), max(1, length), "near", said, by)


def _change(
    generators: Sequence[Generator], measured: BudgetedDensity, near: Sequence[Probe]
) -> float:
    """The median change of the log density in nats, near the posterior."""
    found = measured([act(generators, probe.point) for probe in near])
    return float(np.median(np.abs(found - np.array([probe.value for probe in near]))))


def _middle(moves: Moves, point: Point, length: int) -> dict[str, np.ndarray]:
    """Every moved variable at the average over all orders of its parts; what moves as a whole at its own average."""
    out = dict(point)
    for move in moves.each:
        name = move[0].name
        axes = tuple(g.axis for g in move if g.axis is not None)
        if not axes:
            out = centred((move,), out)
        elif len(axes) == 1:
            mean = out[name].mean(axis=axes[0], keepdims=True)
            out[name] = np.broadcast_to(mean, out[name].shape).copy()
        else:  # one order along several axes at once keeps what is on the diagonal there
            moved = np.moveaxis(out[name], axes, range(len(axes)))
            mean = np.empty_like(moved)
            on = np.zeros(moved.shape[: len(axes)], dtype=bool)
            on[tuple(np.arange(length) for _ in axes)] = True
            mean[on] = moved[on].mean(axis=0)
            mean[~on] = moved[~on].mean(axis=0)
            out[name] = np.moveaxis(mean, range(len(axes)), axes)
    return out
