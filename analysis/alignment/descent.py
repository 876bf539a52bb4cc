"""Search for the elements that bring draws closest to a reference, block by block for many draws at once.

A block is solved in one of three ways:

- if each variable moves along one axis, the block is a linear assignment problem, solved exactly at any size;
- a permutation on two axes of one array, or a complement, is a quadratic problem. If the block has at most 5040
elements (7 components without flips), all elements are tried, which is exact;
- larger blocks are assigned axis by axis as long as this lowers the cost. With up to 64 components, the best exchange
of two places or change of one sign follows, as long as there is one that lowers the cost. This ends in a local optimum,
so such draws are matched from several starts.

Linear assignment: costs are (draw, place, component), and entry j of an assignment is the component at place j. A draw
keeps its assignment unless another assignment is better by more than rounding error, so equal costs never move it. If
the cheapest places of all components are different, they are the optimum. Other draws are solved by
`scipy.optimize.linear_sum_assignment` (Crouse 2016).

One sweep gives every block its best element in turn. A block then stays settled until a block that shares a variable
with it moves. A single block is solved exactly. With blocks that share variables, the search ends in a local optimum
(Ainsworth, Hayase and Srinivasa 2023, algorithm 1), so random starts may help.

A mean or a diagonal Gaussian is estimated from the aligned draws, alternating with the elements. This is k-means with
one cluster modulo the group, or Stephens's (2000) algorithm for a Gaussian. The mean is defined only up to a group
element. It is chosen such that the components of the first start keep their labels.

The first element of a draw does not depend on the numbering of its components. Blocks are solved one after the other,
each using only variables whose other axes are settled, or sorted entries if there are none. So the result is the same
for every labelling of the input.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, cast

import numpy as np
from jaxtyping import Bool, Float, Int

from onebasin.models.symmetry.blocks import Block, Exchangeable, Group, Symmetry, axes_of
from onebasin.models.symmetry.elements import Part, Permuted, Shapes, choose, differ, on_arrays

from .alignment import (
    AlignmentReference,
    AlignmentRule,
    Moments,
    about,
    cost_matrices,
    distance,
    targets,
)
from .draws import Arrays, Parts, Workers, bare, copy, move, put, stack, take
from .features import Features

MOST_ELEMENTS = 5040
COSTS_AT_ONCE = 2**22
"""Number of costs of elements to compute at a time."""
_CACHE = 2**20
"""Bytes of cost matrices to compute at a time, so that they stay in the cache of a core."""
Values = Mapping[str, np.ndarray]


def solve(values: Values, block: Block, part: Part, reference: AlignmentReference) -> Part:
    """Return the best part of an element of an `Exchangeable` or `Complement` block for draws (draw, *event).

    The draws are already moved by all other blocks. `part` is the current part.
    """
    shapes = {name: values[name].shape[1:] for name in block.variables}
    way = method(block, shapes)
    if way == "assignment":
        return _assign(values, block, cast(Permuted, part), reference)
    if way == "exchange":
        return _exchange(values, block, cast(Permuted, part), reference)
    return _enumerate(values, block, reference)


def method(block: Block, shapes: Shapes) -> str:
    """Choose how a block is solved: ``assignment``, ``enumeration`` or ``exchange``."""
    if block.axes and not block.complemented:
        if all(len(axes_of(places)) == 1 for places in block.axes.values()):
            return "assignment"
        if Group((block,), shapes).log_order > math.log(MOST_ELEMENTS + 0.5):
            return "exchange"
    return "enumeration"


def _assign(
    values: Values, block: Block, part: Permuted, reference: AlignmentReference
) -> Permuted:
    total, size = part.permutation.shape
    aim = targets(values, block, reference)
    step = max(1, _CACHE // (8 * size**2))
    assigned = []
    for first in range(0, total, step):
        rows = slice(first, first + step)
        draws = {name: values[name][rows] for name in block.axes}
        costs, signs = cost_matrices(draws, aim)
        best = assign(costs, part.permutation[rows])
        own = None if signs is None else np.take_along_axis(signs, best[:, :, None], axis=2)[..., 0]
        assigned.append(Permuted(best, own))
    return on_arrays(assigned[0], lambda *arrays: np.concatenate(arrays), *assigned[1:])


def _enumerate(values: Values, block: Block, reference: AlignmentReference) -> Part:
    """Try every element. Instead of moving a draw by g, move the reference by the inverse of g."""
    group = Group((block,), {name: values[name].shape[1:] for name in block.variables})
    elements = list(group.elements())
    best_cost = np.full(len(next(iter(values.values()))), np.inf)
    best = np.zeros(len(best_cost), np.intp)
    step = max(1, COSTS_AT_ONCE // max(len(best_cost), 1))
    for first in range(0, len(elements), step):
        inverses = [group.inverse(e)[0] for e in elements[first : first + step]]
        costs = _costs_of_all(values, group, stack(inverses), reference)
        lowest = costs.argmin(axis=1)
        cost = np.take_along_axis(costs, lowest[:, None], axis=1)[:, 0]
        better = cost < best_cost
        best[better], best_cost[better] = lowest[better] + first, cost[better]
    return take((stack([e[0] for e in elements]),), best)[0]


def _costs_of_all(
    values: Values, group: Group, inverses: Part, reference: AlignmentReference
) -> np.ndarray:
    (block,) = group.symmetry
    num = len(inverses[0])
    means = {n: np.repeat(reference.mean[n][None], num, axis=0) for n in block.variables}
    means = move(means, (block,), (inverses,), block.variables)
    plain = {n: np.asarray(reference.weight[n]) for n in block.variables}
    weights = {n: np.broadcast_to(w, (num, *reference.mean[n].shape)) for n, w in plain.items()}
    weights = move(weights, *bare((block,), (inverses,)), block.variables)
    total: np.ndarray | float = 0.0
    for name in block.variables:
        rows = values[name].reshape(len(values[name]), -1)
        mean, weight = means[name].reshape(num, -1), weights[name].reshape(num, -1)
        total = total - 2 * rows @ (weight * mean).T + (weight * mean**2).sum(axis=1)
        total = total + (rows * rows) @ weight.T
    return np.asarray(total)


def _exchange(
    values: Values, block: Block, part: Permuted, reference: AlignmentReference
) -> Permuted:
    """Assign axis by axis, then exchange two places or change a sign, as long as this lowers the cost."""
    names = block.variables

    def cost(of: Permuted) -> np.ndarray:
        return distance(move(values, (block,), (of,), names), reference, names)

    lowest, size, moving = cost(part), part.permutation.shape[1], True
    while moving:
        tried = _axis_by_axis(values, block, part, reference)
        then = cost(tried)
        better = then < lowest - 1e-12 * np.abs(lowest)
        part, lowest = choose(better, tried, part), np.where(better, then, lowest)
        moving = bool(better.any())
    if size > MOST_EXCHANGED:
        return part
    # A step is an order with signs: it exchanges two places or changes one sign.
    steps = list[tuple[np.ndarray, np.ndarray]]()
    for pair in combinations(range(size), 2):
        order = np.arange(size)
        order[list(pair)] = pair[::-1]
        steps.append((order, np.ones(size)))
    if part.signs is not None:
        steps += [(np.arange(size), flip) for flip in 1.0 - 2.0 * np.eye(size)]
    moving = True
    while moving:
        best, now = part, lowest
        for order, flip in steps:
            signs = None if part.signs is None else part.signs[:, order] * flip
            tried = Permuted(part.permutation[:, order], signs)
            then = cost(tried)
            better = then < now - 1e-12 * np.abs(now)
            now, best = np.where(better, then, now), choose(better, tried, best)
        moving = bool((now < lowest).any())
        part, lowest = best, now
    return part


def _axis_by_axis(
    values: Values, block: Block, part: Permuted, reference: AlignmentReference
) -> Permuted:
    """Assign components as if every axis moved on its own, with the other axes already moved by `part`."""
    seen, mean, weight, axes, flips = {}, {}, {}, {}, []
    for name, places in block.axes.items():
        for axis in axes_of(places):
            others = tuple(other for other in axes_of(places) if other != axis)
            key = f"{name}, axis {axis}"
            held = Exchangeable({name: others}, name in block.flipped) if others else None
            own = Permuted(part.permutation, part.signs if name in block.flipped else None)
            seen[key] = held.act({name: values[name]}, *own)[name] if held else values[name]
            mean[key], weight[key], axes[key] = reference.mean[name], reference.weight[name], axis
            flips += [key] * (name in block.flipped)
    alone = Exchangeable(axes, tuple(flips) or False)
    return _assign(seen, alone, part, AlignmentReference(mean, weight))


MOST_EXCHANGED = 64
"""Maximum number of components for which exchanges are tried."""


def assign(
    costs: Float[np.ndarray, "draw place component"], present: Int[np.ndarray, "draw place"]
) -> Int[np.ndarray, "draw place"]:
    """Solve one assignment problem per draw. Keep the current assignment unless another one is better."""
    cheapest = costs == costs.min(axis=1, keepdims=True)
    best = cheapest.argmax(axis=2)
    certain = (np.count_nonzero(cheapest, axis=2) == 1).all(axis=1)  # All places are different.
    for row in np.flatnonzero(~certain):
        from scipy.optimize import linear_sum_assignment  # Rarely needed.

        # Rows are places, because SciPy is faster if rows differ by constants than if columns do.
        best[row] = linear_sum_assignment(costs[row])[1]
    before, after = _taken(costs, present), _taken(costs, best)
    rounding = 8 * np.finfo(costs.dtype).eps * (np.abs(before) + np.abs(after)).sum(axis=1)
    better = after.sum(axis=1) < before.sum(axis=1) - rounding
    return np.where(better[:, None], best, present)


def _taken(costs: np.ndarray, assigned: np.ndarray) -> np.ndarray:
    return np.take_along_axis(costs, assigned[:, :, None], axis=2)[:, :, 0].astype(np.float64)


Flags = Bool[np.ndarray, "draw block"]


def improve(
    symmetry: Symmetry, values: Values, reference: AlignmentReference, parts: Parts, settled: Flags
) -> Parts:
    """Solve all unsettled blocks one after the other, for draws (draw, *event) as sampled.

    `settled` (draw, block) marks the solved blocks. It is updated in place.
    """
    parts = copy(parts)
    for place, block in enumerate(symmetry):
        rows = np.flatnonzero(~settled[:, place])
        if not len(rows):
            continue
        some, old = {n: values[n][rows] for n in block.variables}, take(parts, rows)
        new = solve_among(symmetry, place, block, some, old, reference)
        moved = np.zeros(len(settled), bool)
        moved[rows] = differ((old[place],), (new,))
        put((parts[place],), rows, (new,))
        settled[:, place] = True
        for other in neighbours(symmetry, place):
            settled[moved, other] = False
    return parts


def neighbours(symmetry: Symmetry, place: int) -> list[int]:
    """Return the numbers of the blocks that share a variable with a block."""
    own = set(symmetry[place].variables)
    return [p for p, block in enumerate(symmetry) if p != place and own & set(block.variables)]


def solve_among(
    symmetry: Symmetry,
    place: int,
    block: Block,
    values: Values,
    parts: Parts,
    reference: AlignmentReference,
) -> Part:
    """Solve one block, or its restriction to some variables, for draws as sampled. Keep the other blocks."""
    seen = dict(values) | move(values, symmetry, parts, block.variables, without=place)
    return solve(seen, block, parts[place], reference)


def first_parts(
    values: Values, symmetry: Symmetry, reference: AlignmentReference
) -> tuple[Parts, list[bool]]:
    """Match draws (draw, *event) with a reference, block by block. Also return which blocks are settled."""
    num = len(next(iter(values.values())))
    shapes = {name: array.shape[1:] for name, array in values.items()}
    parts = list(Group(symmetry, shapes).identity((num,)))
    waiting = list(range(len(symmetry)))
    settled = [False] * len(symmetry)
    while waiting:
        place = next((p for p in waiting if _settled(symmetry, p, waiting, shapes)), waiting[0])
        free = _settled(symmetry, place, waiting, shapes)
        block = symmetry[place].restricted(free)
        if block is not None:
            beside = list(parts)
            if block.axes and not block.flipped:
                beside[place] = Permuted(parts[place][0])
            solved = solve_among(symmetry, place, block, values, tuple(beside), reference)
        else:
            solved = _by_signature(values, symmetry[place], reference, parts[place])
        # If a block was solved without its flipped variables, keep its signs.
        arrays: Any = [b if a is None else a for a, b in zip(solved, parts[place], strict=True)]
        parts[place] = type(solved)(*arrays)
        settled[place] = len(free) == len(symmetry[place].variables)
        waiting.remove(place)
    return tuple(parts), settled


def _settled(
    symmetry: Symmetry, place: int, waiting: list[int], shapes: Mapping[str, tuple[int, ...]]
) -> list[str]:
    """Return variables of a block that give an easy problem and are not moved by a waiting block."""
    block = symmetry[place]
    others = {n for p in waiting if p != place for n in symmetry[p].variables}
    free = [name for name in block.variables if name not in others]
    if block.axes:
        if method(block, shapes) == "exchange":
            free = [n for n in free if n in block.axes and len(axes_of(block.axes[n])) == 1]
        if not any(name in block.axes for name in free):
            return []
    return free


def _by_signature(values: Values, block: Block, reference: AlignmentReference, part: Part) -> Part:
    """Match components by their sorted entries, which other blocks do not change."""
    if not block.axes:
        return part
    seen, means, weights = {}, {}, {}
    for name, places in block.axes.items():
        for axis in axes_of(places):
            key = f"{name}, axis {axis}"
            seen[key] = _signature(values[name], axis)
            means[key] = _signature(reference.mean[name][None], axis)[0]
            weights[key] = np.asarray(np.mean(reference.weight[name]))
    bare = Exchangeable(dict.fromkeys(seen, 0))
    return solve(seen, bare, Permuted(part[0]), AlignmentReference(means, weights))


def _signature(values: np.ndarray, axis: int) -> np.ndarray:
    front = np.moveaxis(values, axis + 1, 1)
    return np.sort(np.abs(front.reshape(*front.shape[:2], -1)), axis=-1)


@dataclass(frozen=True, eq=False)
class MatchingProblem:
    """Features, the alignment rule, and the workers that process draws.

    `report` is called with the number of draws processed.
    """

    features: Features
    workers: Workers
    rule: AlignmentRule
    report: Callable[[int], None]

    @property
    def symmetry(self) -> Symmetry:
        """The blocks of the features."""
        return self.features.symmetry

    @property
    def group(self) -> Group:
        """The group that acts on the features."""
        return Group(self.symmetry, self.features.shapes)

    def over[T](
        self, read: Callable[[slice], Arrays], function: Callable[[slice, Arrays], T]
    ) -> Iterator[T]:
        """Call a function with the rows and values of every piece of the draws."""
        return self.workers.through(read, self.features.reader.chunks, function)

    def move(self, values: Arrays, parts: Parts) -> Arrays:
        """Move draws of the features (draw, *event)."""
        return move(values, self.symmetry, parts, self.features.names)

    @property
    def exact(self) -> bool:
        """Check whether one sweep is enough to find the optimum for a fixed reference."""
        return not any(
            neighbours(self.symmetry, place) or method(block, self.features.shapes) == "exchange"
            for place, block in enumerate(self.symmetry)
        )


@dataclass(frozen=True, eq=False)
class Swept:
    """The result of a sweep: elements, costs, masks of moved draws and of settled blocks."""

    parts: Parts
    cost: Float[np.ndarray, " draw"]
    moved: Bool[np.ndarray, " draw"]
    settled: Bool[np.ndarray, "draw block"]


def sweep(
    problem: MatchingProblem,
    reference: AlignmentReference,
    before: Swept | None,
    *,
    same: bool = False,
    moments: Moments | None = None,
) -> Swept:
    """Match every draw with the reference once, starting from an earlier sweep (`before`) if given.

    `same` means that the earlier sweep had the same reference, so its settled blocks are kept. The aligned draws are
    added to `moments`.
    """
    features = problem.features
    total = features.reader.total
    parts = copy(before.parts) if before else problem.group.identity((total,))
    cost = before.cost.copy() if before else np.zeros(total)
    moved = np.zeros(total, bool)
    settled = np.zeros((total, len(parts)), bool)
    if before and same:
        settled[:] = before.settled
    active = ~settled.all(axis=1)
    for chunk in features.reader.chunks:
        values = features.read(chunk)
        rows = np.arange(chunk.start, chunk.stop)
        if not active[rows].all():
            values = {name: v[active[rows]] for name, v in values.items()}
            rows = rows[active[rows]]
        old = take(parts, rows) if before else None
        done = settled[rows]

        def piece(
            within: slice, values: Arrays = values, old: Parts | None = old, done: Flags = done
        ) -> tuple[Parts, np.ndarray, Moments | None]:
            here = {name: v[within] for name, v in values.items()}
            if old:
                new = improve(problem.symmetry, here, reference, take(old, within), done[within])
            else:
                new, done[within] = first_parts(here, problem.symmetry, reference)
            aligned = problem.move(here, new)
            own = Moments(moments.shift, moments.squares) if moments else None
            if own:
                own.add(aligned)
            return new, distance(aligned, reference, features.names), own

        first = 0
        for new, squared, own in problem.workers.over(len(rows), piece):
            at = rows[first : first + len(squared)]
            moved[at] = differ(take(parts, at), new) if before else True
            put(parts, at, new)
            cost[at] = reference.factor * squared + reference.offset
            if moments and own:
                moments.merge(own)
            first += len(squared)
        settled[rows] = done
        problem.report(chunk.stop - chunk.start)
    return Swept(parts, cost, moved, settled)


@dataclass(frozen=True, eq=False)
class Matched:
    """Draws matched with a reference: the last sweep, the mean cost of each sweep, and convergence."""

    swept: Swept
    reference: AlignmentReference
    trace: tuple[float, ...]
    converged: bool


def match(problem: MatchingProblem, reference: AlignmentReference, seed: int) -> Matched:
    """Match every draw with a fixed reference, from each of the rule's starts.

    One start is enough if blocks are solved exactly. Random starts do not depend on the chunks.
    """
    best = _descend(problem, reference, sweep(problem, reference, None))
    if problem.exact:
        return best
    first, total = best.swept.parts, len(best.swept.cost)
    rng = np.random.default_rng(seed)
    for _ in range(problem.rule.restarts - 1):
        away = problem.group.compose(first, problem.group.random(rng, (total,)))
        nothing = np.zeros_like(best.swept.settled)
        everywhere = Swept(away, np.full(total, np.inf), best.swept.moved, nothing)
        again = _descend(problem, reference, everywhere)
        # Keep the cheaper element for each draw.
        better = again.swept.cost < best.swept.cost * (1 - 1e-12)
        parts = copy(best.swept.parts)
        put(parts, better, take(again.swept.parts, better))
        cost = np.where(better, again.swept.cost, best.swept.cost)
        kept = replace(best.swept, parts=parts, cost=cost)
        trace = (*best.trace, float(cost.mean()))
        best = Matched(kept, reference, trace, best.converged and again.converged)
    return best


def _descend(problem: MatchingProblem, reference: AlignmentReference, swept: Swept) -> Matched:
    fresh = bool(np.isinf(swept.cost).any())
    trace = [] if fresh else [float(swept.cost.mean())]
    if problem.exact:
        return Matched(swept, reference, tuple(trace), True)
    for _ in range(problem.rule.max_sweeps - len(trace)):
        if swept.settled.all():
            break
        swept = sweep(problem, reference, swept, same=True)
        trace.append(float(swept.cost.mean()))
    return Matched(swept, reference, tuple(trace), bool(swept.settled.all()))


def iterate(
    problem: MatchingProblem, scales: Mapping[str, float], starts: tuple[int, ...]
) -> Matched:
    """Align draws with their own mean or diagonal Gaussian, starting from the draws `starts`."""
    seed = problem.rule.seed
    best, *others = (
        _run(problem, scales, start, seed + number) for number, start in enumerate(starts)
    )
    for run in others:
        # Replace the result only if the gain exceeds rounding error.
        if run.trace[-1] < best.trace[-1] - 1e-9 * abs(best.trace[-1]):
            best = run
    # Move everything by the same element, so that the first start keeps its labels.
    group, symmetry, reference = problem.group, problem.symmetry, best.reference
    back = group.inverse(take(best.swept.parts, slice(starts[0], starts[0] + 1)))
    total = len(best.swept.cost)
    every = tuple(on_arrays(p, lambda a: np.repeat(a, total, 0)) for p in back)
    mean = problem.move({n: m[None] for n, m in reference.mean.items()}, back)
    weight = {n: np.asarray(w)[None] for n, w in reference.weight.items() if np.ndim(w)}
    weight = move(weight, *bare(symmetry, back), weight) if weight else {}
    moved = replace(
        reference,
        mean={n: m[0, ...] for n, m in mean.items()},
        weight={**reference.weight, **{n: w[0, ...] for n, w in weight.items()}},
    )
    parts = group.compose(best.swept.parts, every)
    return replace(best, swept=replace(best.swept, parts=parts), reference=moved)


def _run(problem: MatchingProblem, scales: Mapping[str, float], start: int, seed: int) -> Matched:
    at = problem.features.read_one(start)
    squares = problem.rule.reference == "gaussian"
    reference, moments = about(at, scales), Moments(at, squares)
    if problem.exact:
        swept = sweep(problem, reference, None, moments=moments)
    else:
        swept = match(problem, reference, seed).swept

        def aligned(rows: slice, values: Arrays) -> Moments:
            own = Moments(at, squares)
            own.add(problem.move(values, take(swept.parts, rows)))
            return own

        for own in problem.over(problem.features.read, aligned):
            moments.merge(own)
    converged, trace = False, []
    reference = _estimate(problem, moments, scales)
    for _ in range(problem.rule.max_sweeps):
        moments = Moments(at, squares)
        swept = sweep(problem, reference, swept, moments=moments)
        trace.append(float(swept.cost.mean()))
        converged = not swept.moved.any()
        if converged:
            break
        reference = _estimate(problem, moments, scales)
    return Matched(swept, reference, tuple(trace), converged)


def _estimate(
    problem: MatchingProblem, moments: Moments, scales: Mapping[str, float]
) -> AlignmentReference:
    if problem.rule.reference == "mean":
        return about(moments.mean(), scales)
    return moments.gaussian(scales)
