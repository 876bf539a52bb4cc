"""Random elements of a group that do move something: with two parts, every second element is the identity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from onebasin.models.symmetry.elements import Element, Part
from onebasin.models.symmetry.group import Group

TRIES = 20


def moving_parts(group: Group, rng: np.random.Generator, count: int) -> Element:
    """Random elements, one a point, without those that move nothing."""
    tries = [group.random(rng, (count,)) for _ in range(TRIES)]
    still = group.identity((count,))
    return tuple(
        _first_that_moves([element[place] for element in tries], still[place])
        for place in range(len(group.symmetry))
    )


def _first_that_moves(tries: list[Part], still: Part) -> Part:
    """Point by point, the first of several parts of elements that is not the identity."""
    chosen = tries[0]
    for part in tries[1:]:
        moves = _moves(chosen, still)
        if moves.all():
            break
        chosen = each_array(lambda a, b, m=moves: np.where(_along(m, a), a, b), chosen, part)
    return chosen


def _moves(part: Part, still: Part) -> np.ndarray:
    """Point by point, whether a part is not the identity."""
    unlike = [
        (a != b).reshape(len(a), -1).any(axis=1)
        for a, b in zip(part, still, strict=True)
        if a is not None and b is not None
    ]
    return np.any(unlike, axis=0)


def _along(points: np.ndarray, array: np.ndarray) -> np.ndarray:
    return points.reshape(-1, *[1] * (array.ndim - 1))


def each_array(change: Callable[..., np.ndarray], *parts: Any) -> Any:
    """Make a part from the arrays of others; signs that are None stay so."""
    arrays = zip(*parts, strict=True)
    return type(parts[0])(*(None if of[0] is None else change(*of) for of in arrays))
