"""The best element of one block for many draws, given what all other blocks do.

Three ways, by block:

- each variable moves along one axis: a linear assignment problem, exact at any size;
- a permutation on two axes of one array, or complements: a quadratic one. Every element is tried
  where the block has at most 5040 (7 components without flips), which is exact;
- above that, each axis is assigned with the others held, as long as that lowers the cost; then, up to 64 components,
  the best exchange of two places, or change of one sign, is made while there is one that does: a local optimum, which
  is why such draws are matched from several starts.

Linear assignment: costs are (draw, place, component), and an assignment's entry j is the component that takes place j.
A draw's assignment is kept unless another is better by more than rounding, so that equal costs never make it move.
Certificate: where the cheapest places of all components are different, they are the optimum. The rest goes to
`scipy.optimize.linear_sum_assignment` (Crouse 2016).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations
from typing import cast

import numpy as np
from jaxtyping import Float, Int

from onebasin.models.symmetry.blocks import Block, Exchangeable, axes_of
from onebasin.models.symmetry.elements import Part, Permuted, Shapes, choose, on_arrays
from onebasin.models.symmetry.group import Group

from .draws import bare, move, stack, take
from .reference import AlignmentReference, cost_matrices, distance, targets

MOST_ELEMENTS = 5040
ELEMENTS_AT_ONCE = 512
_CACHE = 2**20
"""Bytes of cost matrices at a time, which a core keeps at hand (half as slow again without, at 128 components)."""
Values = Mapping[str, np.ndarray]


def solve(values: Values, block: Block, part: Part, reference: AlignmentReference) -> Part:
    """Return the best part of an element of an `Exchangeable` or `Complement` block for draws (draw, *event).

    The block's variables are as all other blocks have moved them. `part` is where the draws are.
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
        if signs is None:
            assigned.append(Permuted(best))
        else:
            assigned.append(
                Permuted(best, np.take_along_axis(signs, best[:, :, None], axis=2)[:, :, 0])
            )
    return on_arrays(assigned[0], lambda *arrays: np.concatenate(arrays), *assigned[1:])


def _enumerate(values: Values, block: Block, reference: AlignmentReference) -> Part:
    """Try every element: moving a draw by g is moving the reference by the inverse of g."""
    group = Group((block,), {name: values[name].shape[1:] for name in block.variables})
    elements = list(group.elements())
    best_cost = np.full(len(next(iter(values.values()))), np.inf)
    best = np.zeros(len(best_cost), np.intp)
    for first in range(0, len(elements), ELEMENTS_AT_ONCE):
        inverses = [group.inverse(e)[0] for e in elements[first : first + ELEMENTS_AT_ONCE]]
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
    """Assign axis by axis, then exchange two places or change a sign, as long as that lowers the cost."""
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
    # Exchanges of two places, and changes of one sign: each an order and signs.
    steps = list[tuple[np.ndarray, np.ndarray]]()
    if size > MOST_EXCHANGED:
        return part
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
    """Assign components as if every axis of a variable were moved alone, the others as `part` moves them."""
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
"""Components up to which exchanges of two of them are tried."""


def assign(
    costs: Float[np.ndarray, "draw place component"], present: Int[np.ndarray, "draw place"]
) -> Int[np.ndarray, "draw place"]:
    """Solve one assignment problem a draw, of finite costs; it stays as it is unless another is better."""
    cheapest = costs == costs.min(axis=1, keepdims=True)
    best = cheapest.argmax(axis=2)
    certain = (np.count_nonzero(cheapest, axis=2) == 1).all(axis=1)  # all places are different
    for row in np.flatnonzero(~certain):
        from scipy.optimize import linear_sum_assignment  # here: most alignments need it nowhere

        # Rows are places: their constants, which costs hold, do not matter to SciPy, and those of columns
        # do (measured on independent draws of 512 units: 10 ms, and 24 with rows and columns exchanged).
        best[row] = linear_sum_assignment(costs[row])[1]
    before, after = _taken(costs, present), _taken(costs, best)
    rounding = 8 * np.finfo(costs.dtype).eps * (np.abs(before) + np.abs(after)).sum(axis=1)
    better = after.sum(axis=1) < before.sum(axis=1) - rounding
    return np.where(better[:, None], best, present)


def _taken(costs: np.ndarray, assigned: np.ndarray) -> np.ndarray:
    return np.take_along_axis(costs, assigned[:, :, None], axis=2)[:, :, 0].astype(np.float64)
