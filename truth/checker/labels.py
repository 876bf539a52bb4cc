"""Is every draw the copy of itself that the canonical labelling asks for? By the group's action as the file states it.

Two ways: the cheapest assignment, where one permutation moves one axis of each variable (with signs or without), or
all elements one by one, where there are few. Blocks that share variables are not judged.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations, product
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

MOST = 4000
"""Elements of a block that are gone through one by one."""
Arrays = Mapping[str, np.ndarray]
Block = Mapping[str, Any]


def share_in_place(
    draws: Arrays, symmetry: Sequence[Block], labelling: Mapping[str, Any], tolerance: float
) -> float | None:
    """Share of draws (draw, *event) that no element brings closer to the centres; None where that is not judged."""
    centre = {n: np.asarray(v, float) for n, v in labelling["centre"].items()}
    scale = {n: np.asarray(v, float) for n, v in labelling["scale"].items()}
    moved = [set(variables(block)) for block in symmetry]
    if sum(map(len, moved)) != len(set().union(*moved)):
        return None
    kept: Any = True
    for block in symmetry:
        here = _present(draws, variables(block), centre, scale)
        best = _best(draws, block, centre, scale)
        if best is None:
            return None
        kept = kept & (here <= best + tolerance * (1 + np.abs(here)))
    return float(np.mean(kept))


def variables(block: Block) -> list[str]:
    """Return the variables that a block moves."""
    if block["kind"] == "exchangeable":
        return [*block["axes"], *block["complements"]]
    return [*_names(block), *block.get("complements", ())]


def _present(draws: Arrays, names: Sequence[str], centre: Arrays, scale: Arrays) -> np.ndarray:
    return np.sum(
        [
            (((draws[n] - centre[n]) / scale[n]) ** 2).reshape(len(draws[n]), -1).sum(axis=1)
            for n in names
        ],
        axis=0,
    )


def _best(draws: Arrays, block: Block, centre: Arrays, scale: Arrays) -> np.ndarray | None:
    if block["kind"] != "exchangeable":
        flipped = _names(block) if block["kind"] == "flip" else []
        rest = [n for n in variables(block) if n not in flipped]
        changed = {n: -draws[n] for n in flipped} | {n: 1 - draws[n] for n in rest}
        return np.minimum(
            _present(draws, variables(block), centre, scale),
            _present(changed, variables(block), centre, scale),
        )
    single = all(len(_axes(a)) == 1 for a in block["axes"].values()) and not block["complements"]
    if single:
        return _assigned(draws, block, centre, scale)
    size = _size(draws, block)
    signs = 2**size if _flipped(block) else 1
    if math.factorial(size) * signs > MOST:
        return None
    copies = (_present(copy, variables(block), centre, scale) for copy in _copies(draws, block))
    return np.min(np.stack(list(copies)), axis=0)


def _assigned(draws: Arrays, block: Block, centre: Arrays, scale: Arrays) -> np.ndarray:
    """Cost of the cheapest assignment of parts to places, of each draw."""
    flipped = _flipped(block)
    plus: Any = 0.0
    minus: Any = 0.0
    for name, axes in block["axes"].items():
        (axis,) = _axes(axes)
        x = _rows(np.moveaxis(draws[name], axis + 1, 1), 2)
        m, s = (_rows(np.moveaxis(v[name], axis, 0), 1) for v in (centre, scale))
        sign = -1.0 if name in flipped else 1.0
        plus = plus + (((x[:, :, None] - m) / s) ** 2).sum(axis=-1)
        minus = minus + (((sign * x[:, :, None] - m) / s) ** 2).sum(axis=-1)
    costs = np.minimum(plus, minus) if flipped else plus
    out = np.empty(len(costs))
    for row, cost in enumerate(costs):
        out[row] = cost[linear_sum_assignment(cost)].sum()
    return out


def _rows(array: np.ndarray, lead: int) -> np.ndarray:
    return array.reshape(*array.shape[:lead], -1)


def _copies(draws: Arrays, block: Block) -> Iterator[dict[str, np.ndarray]]:
    size, flipped = _size(draws, block), _flipped(block)
    choices = list(product([1.0, -1.0], repeat=size)) if flipped else [None]
    for order in permutations(range(size)):
        for signs in choices:
            copy = {}
            for name, axes in block["axes"].items():
                value = draws[name]
                for axis in _axes(axes):
                    value = np.take(value, order, axis=axis + 1)
                    if signs is not None and name in flipped:
                        shape = [1] * value.ndim
                        shape[axis + 1] = size
                        value = value * np.reshape(signs, shape)
                copy[name] = value
            for name in block["complements"]:
                copy[name] = 1 - draws[name] if order[0] == 1 else draws[name]
            yield copy


def _size(draws: Arrays, block: Block) -> int:
    name, axes = next(iter(block["axes"].items()))
    return int(draws[name].shape[_axes(axes)[0] + 1])


def _names(block: Block) -> list[str]:
    names = block["names"]
    return [names] if isinstance(names, str) else list(names)


def _axes(axes: Any) -> tuple[int, ...]:
    return tuple(axes) if isinstance(axes, list | tuple) else (int(axes),)


def _flipped(block: Block) -> list[str]:
    flips = block["flips"]
    return (list(block["axes"]) if flips else []) if isinstance(flips, bool) else list(flips)
