"""The best element of one block for many draws, given what all other blocks do.

Four ways, by block:

- components that are single numbers, at places of one weight: by order of size (`ordering`), exact at any size;
- each variable moves along one axis: a linear assignment problem, exact at any size;
- a permutation on two axes of one array, or complements: a quadratic one. Every element is tried
  where the block has at most 5040 (7 components without flips), which is exact;
- above that, the best exchange of two places, or change of one sign, is made while there is one that
  lowers the cost: a local optimum, which is why such draws are matched from several starts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations
from typing import cast

import numpy as np

from onebasin.models.symmetry.blocks import Block, axes_of
from onebasin.models.symmetry.elements import Part, Permuted, Shapes
from onebasin.models.symmetry.group import Group

from .assignment import assign
from .costs import Reference, Turn, cost_matrices, distance, targets
from .moving import bare, move
from .ordering import in_order, single_numbers
from .parts import choose, on_arrays, stack, take

MOST_ELEMENTS = 5040
ELEMENTS_AT_ONCE = 512
_CACHE = 2**20
"""Bytes of cost matrices at a time, which a core keeps at hand (half as slow again without, at 128 components)."""
Values = Mapping[str, np.ndarray]


def solve(
    values: Values,
    block: Block,
    part: Part,
    reference: Reference,
    turns: Mapping[str, Turn] | None = None,
) -> Part:
    """Return the best part of an element for draws (draw, *event).

    Parameters
    ----------
    values : mapping of str to array
        The block's variables, as all other blocks have moved them, save those in `turns`.
    block : Block
        `Exchangeable` or `Complement`.
    part : Part
        Where the draws are.
    reference : Reference
        What they are matched with.
    turns : mapping of str to Turn, optional
        How another block moves a variable that is given as it came; only for an assignment problem.
    """
    shapes = {name: values[name].shape[1:] for name in block.variables}
    way = method(block, shapes)
    plain = all(np.ndim(reference.weight[name]) == 0 for name in block.axes)
    if way == "assignment" and plain and single_numbers(block, shapes):
        return in_order(values, block, cast(Permuted, part), reference)
    if way == "assignment":
        return _assign(values, block, cast(Permuted, part), reference, turns)
    if way == "exchange":
        return _exchange(values, block, cast(Permuted, part), reference)
    return _enumerate(values, block, reference)


def method(block: Block, shapes: Shapes) -> str:
    """How a block is solved: ``assignment``, ``enumeration`` or ``exchange``."""
    if block.axes and not block.complemented:
        if all(len(axes_of(places)) == 1 for places in block.axes.values()):
            return "assignment"
        if Group((block,), shapes).log_order > math.log(MOST_ELEMENTS + 0.5):
            return "exchange"
    return "enumeration"


def _assign(
    values: Values,
    block: Block,
    part: Permuted,
    reference: Reference,
    turns: Mapping[str, Turn] | None,
) -> Permuted:
    total, size = part.permutation.shape
    aim = targets(values, block, reference, turns or ())
    step = max(1, _CACHE // (8 * size**2))
    assigned = []
    for first in range(0, total, step):
        rows = slice(first, first + step)
        draws = {name: values[name][rows] for name in block.axes}
        turned = {name: turn.of(rows) for name, turn in (turns or {}).items()}
        costs, signs = cost_matrices(draws, aim, turned)
        best = assign(costs, part.permutation[rows])
        if signs is None:
            assigned.append(Permuted(best))
        else:
            assigned.append(
                Permuted(best, np.take_along_axis(signs, best[:, :, None], axis=2)[:, :, 0])
            )
    return on_arrays(assigned[0], lambda *arrays: np.concatenate(arrays), *assigned[1:])


def _enumerate(values: Values, block: Block, reference: Reference) -> Part:
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


def _costs_of_all(values: Values, group: Group, inverses: Part, reference: Reference) -> np.ndarray:
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


def _exchange(values: Values, block: Block, part: Permuted, reference: Reference) -> Permuted:
    """Take the best exchange of places, or change of sign, as long as one lowers the cost."""
    names = block.variables

    def cost(of: Permuted) -> np.ndarray:
        return distance(move(values, (block,), (of,), names), reference, names)

    lowest = cost(part)
    moving = True
    while moving:
        best, now = part, lowest
        for order, flip in _steps(part):
            signs = None if part.signs is None else part.signs[:, order] * flip
            tried = Permuted(part.permutation[:, order], signs)
            then = cost(tried)
            better = then < now - 1e-12 * np.abs(now)
            now, best = np.where(better, then, now), choose(better, tried, best)
        moving = bool((now < lowest).any())
        part, lowest = best, now
    return part


def _steps(part: Permuted) -> list[tuple[np.ndarray, np.ndarray]]:
    """Exchanges of two places, and changes of one sign: each an order and signs."""
    size = part.permutation.shape[1]
    steps = []
    for i, j in combinations(range(size), 2):
        order = np.arange(size)
        order[[i, j]] = j, i
        steps.append((order, np.ones(size)))
    if part.signs is not None:
        flips = 1.0 - 2.0 * np.eye(size)
        steps += [(np.arange(size), flip) for flip in flips]
    return steps
