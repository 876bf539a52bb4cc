"""The element of a symmetry's group that brings one point closest to another.

A group of up to 1,000 elements is gone through. Of a larger one each block in turn is assigned by the cost of every
pair of components (Kuhn 1955), with the others as they are, until nothing changes: exact for blocks that share no
variable, as long as each variable has one axis of the components. Layers of a network share weights, and are started
from several elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from .block import Block, axes_of
from .blocks import Symmetry
from .elements import Element, Part, Permuted
from .group import Group
from .plain import plain_view

ENUMERATED = 1000
"""Elements that are all tried."""
SWEEPS = 20
"""Over blocks that share variables, at most."""
STARTS = 10
"""Random elements from which several blocks are assigned too: what comes first can lead astray."""

Values = Mapping[str, Any]


def closest(symmetry: Symmetry, values: Values, reference: Values, scale: Values) -> Element:
    """Find the element by which values (*event) come closest to a reference, differences divided by a positive scale.

    The blocks have finitely many elements. Of elements that bring them equally close it is the first in order, the
    identity before all; it has no leading axes.
    """
    group = Group(symmetry, {name: np.shape(value) for name, value in values.items()})
    moving = {name for block in symmetry for name in block.variables}

    def differences(element: Element) -> dict[str, Any]:
        moved = group.act(element, values)
        return {n: ((moved[n] - reference[n]) / scale[n]) ** 2 for n in moving}

    def cost(element: Element) -> float:
        return float(sum(part.sum() for part in differences(element).values()))

    if group.log_order <= math.log(ENUMERATED):
        return min(group.elements(), key=cost)
    rng = np.random.default_rng(0)
    more = STARTS if len(symmetry) > 1 else 0
    starts = [group.identity(), *(group.random(rng) for _ in range(more))]
    return min((_descended(group, start, differences, cost) for start in starts), key=cost)


def _descended(
    group: Group,
    best: Element,
    differences: Callable[[Element], dict[str, Any]],
    cost: Callable[[Element], float],
) -> Element:
    """Assign one block after the other, from an element, until nothing changes."""
    symmetry = group.symmetry
    for _ in range(SWEEPS):
        before = best
        for place, (block, size) in enumerate(zip(symmetry, group.sizes, strict=True)):
            tried = [
                (*best[:place], part, *best[place + 1 :])
                for part in _candidates(block, size, differences, best, place)
            ]
            best = min((best, *tried), key=cost)
        if best is before:
            break
    return best


def _candidates(
    block: Block[Any],
    size: int,
    differences: Callable[[Element], dict[str, Any]],
    best: Element,
    place: int,
) -> list[Part]:
    """Parts of a block among which the best one is: all of few, else the assignment of components."""
    if not isinstance(best[place], Permuted) or block.log_order(size) <= math.log(ENUMERATED):
        return list(block.elements(size))
    signs = (1.0, -1.0) if block.flipped else (None,)
    costs = np.empty((len(signs), size, size))
    components = np.arange(size)
    shapes = {n: np.shape(v) for n, v in differences(best).items()}
    view = plain_view((block,), shapes)
    for shift in range(size):
        order = np.roll(components, -shift)  # component i is component i + shift
        for number, sign in enumerate(signs):
            part = Permuted(order, None if sign is None else np.full(size, sign))
            parts = view.stack(differences((*best[:place], part, *best[place + 1 :])), 0)
            costs[number, components, order] = sum(
                np.moveaxis(parts[name], axes_of(axes)[0], 0).reshape(size, -1).sum(axis=1)
                for name, axes in view.blocks[0].axes.items()
            )
    order = linear_sum_assignment(costs.min(axis=0))[1]
    if not block.flipped:
        return [Permuted(order)]
    flipped = costs[:, components, order].argmin(axis=0) == 1
    return [Permuted(order, np.where(flipped, -1.0, 1.0))]
