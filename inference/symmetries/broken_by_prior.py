"""Symmetries that only a prior breaks, and by how many nats.

From the log density f the main effects of the moved variables v are taken off, each at an anchor a that every element
leaves alone: f(x) - sum over v of f(a with v = x_v). What is a symmetric function plus a function of each moved
variable alone, such as its prior, is symmetric then, whatever the priors are; so the exact search finds it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from .groups import copies
from .measuring import BudgetedDensity, Compared, OutOfBudget, SearchedDensity, points_of
from .moves import Generators, Moves, Point, by_name, echelon, reduce
from .result import FoundBlock, exchangeable, listed, weighing, whole
from .search import Search
from .spaces import centred, search

FRACTION = 0.05
"""Largest change, of what the least of its variables changes alone, that counts as near."""


def without_main_effects(measured: BudgetedDensity, anchor: Point) -> SearchedDensity:
    """A log density without the main effects of the variables of an anchor; see the module."""
    whole = measured.density
    stays = [name for name in whole.shapes if name not in anchor]
    known: dict[tuple[str, bytes, bytes], float] = {}

    def key(name: str, point: Point, rest: bytes) -> tuple[str, bytes, bytes]:
        return name, point[name].tobytes() if name else b"", rest

    def main(point: Point, rest: bytes) -> float:
        middle = known[key("", point, rest)]
        return sum(known[key(name, point, rest)] - middle for name in anchor)

    def log_density(values: Mapping[str, np.ndarray]) -> np.ndarray:
        points = points_of(values)
        rests = [b"".join(point[name].tobytes() for name in stays) for point in points]
        wanted: dict[tuple[str, bytes, bytes], Point] = {}
        for point, rest in zip(points, rests, strict=True):
            for name in ("", *anchor):
                where = key(name, point, rest)
                if where not in known and where not in wanted:
                    wanted[where] = {**point, **anchor, **({name: point[name]} if name else {})}
            if measured.count + len(wanted) > measured.evaluations:
                raise OutOfBudget
        found = measured(list(wanted.values()))
        known.update(zip(wanted, found.tolist(), strict=True))
        base = measured(points)
        with np.errstate(invalid="ignore"):
            return base - np.array([main(*each) for each in zip(points, rests, strict=True)])

    return SearchedDensity(whole.shapes, whole.dim, whole.constrain, log_density, lambda _: None)


def nearly(s: Search, length: int) -> Iterator[FoundBlock]:
    """Yield the symmetries that all but a prior has, of parts of one length; of whole variables where it is 0."""
    space = s.spaces.get(length)
    if space is None or len(names := space.moves.names()) < 2:
        return
    if len(space.basis) == len(space.moves.each):
        return
    middle = _middle(space.moves, s.probes[0].point, length)
    anchor = {name: middle[name] for name in names}
    anchored = s.measured.of(without_main_effects(s.measured, anchor))
    within = [p for p in anchored.probes([probe.point for probe in s.probes]) if p.known]
    if len(within) < 2:
        return
    found = search([g for move in space.moves.each for g in move], Compared(anchored, within))
    exact = echelon(space.basis) if found.moves == space.moves else []
    known = [set(space.moves.names(chosen)) for chosen in space.basis]
    for chosen in found.basis:
        near = s.at(s.near)
        own = by_name(found.moves.generators(chosen))
        if len(own) < 2 or not reduce(chosen, exact):
            continue
        generators = tuple(g for each in own.values() for g in each)
        by = _change(generators, near)
        least = min(_change(each, near) for each in own.values())
        if not by < FRACTION * least or any(set(own) <= each for each in known):
            continue
        if length > 2:
            by = max(by, *(_change(each, near) for each in copies(generators, length)))
        if by < least:
            block = (exchangeable if length else whole)(generators, s.order)
            said = (f"{listed(generators)}: {weighing(by)}",)
            yield FoundBlock(block, listed(generators), max(1, length), "near", said, by)


def _change(generators: Generators, near: Compared) -> float:
    """The median change of the log density in nats, near the posterior."""
    return float(np.median(np.abs(near.moved(generators) - near.values)))


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
