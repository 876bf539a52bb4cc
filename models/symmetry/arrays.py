"""Moving entries of arrays of draws (*lead, *event), with NumPy or JAX, each draw by its own part of an element."""

from __future__ import annotations

from typing import Any

import numpy as np

_LONG = 256
"""From so many entries a draw on, one `take` a draw is faster than one for all."""


def take(values: Any, permutation: np.ndarray, axis: int) -> Any:
    """Reorder an axis of the event by permutations (*lead, component)."""
    lead = permutation.ndim - 1
    if lead == 0:
        return values.take(permutation, axis=axis)
    if not isinstance(values, np.ndarray):
        order = _beside(permutation, values, axis)
        return module_of(values).take_along_axis(values, order, axis=lead + axis)
    rows = values.reshape(-1, *values.shape[lead:])
    return gather(rows, permutation.reshape(len(rows), -1), axis).reshape(values.shape)


def gather(values: np.ndarray, permutation: np.ndarray, axis: int) -> np.ndarray:
    """Reorder axis `axis` of each draw (draw, *event) by its own permutation (draw, component)."""
    if axis == 0:  # whole rows, of all draws at once
        starts = np.arange(len(permutation))[:, None] * permutation.shape[1]
        rows = values.reshape(permutation.size, -1)
        return np.take(rows, (permutation + starts).ravel(), axis=0).reshape(values.shape)
    if values[0].size < _LONG:
        return np.take_along_axis(values, _beside(permutation, values, axis), axis=axis + 1)
    out = np.empty_like(values)
    for row, order in enumerate(permutation):
        # mode="clip" writes into `out` directly; the indices are known to be good.
        np.take(values[row], order, axis=axis, out=out[row], mode="clip")
    return out


def scale(values: Any, factors: Any, axis: int) -> Any:
    """Multiply an axis of the event by factors (*lead, component)."""
    factors = module_of(values).asarray(factors, values.dtype)
    return values * _beside(factors, values, axis)


def rotate(values: Any, matrix: Any, axis: int) -> Any:
    """Replace the components along an axis of the event by sums of them, by matrices (*lead, component, component)."""
    module, lead = module_of(values), matrix.ndim - 2
    # Components last, as loadings have them: rows times the transposed matrix, without copies.
    last = module.moveaxis(values, lead + axis, -1)
    rows = last.reshape(*last.shape[:lead], -1, last.shape[-1])
    turned = module.matmul(rows, module.asarray(np.swapaxes(matrix, -1, -2), values.dtype))
    return module.moveaxis(turned.reshape(last.shape), -1, lead + axis)


def complement(values: Any, swapped: np.ndarray) -> Any:
    """Turn theta into 1 - theta in those draws where `swapped` (*lead) is true."""
    return module_of(values).where(_by_draw(swapped, values), 1 - values, values)


def negate(values: Any, swapped: np.ndarray) -> Any:
    """Change the sign of everything in those draws where `swapped` (*lead) is true."""
    return module_of(values).where(_by_draw(swapped, values), -values, values)


def along(values: np.ndarray, permutation: np.ndarray | None) -> np.ndarray:
    """Reorder components (*lead, component)."""
    return values if permutation is None else np.take_along_axis(values, permutation, axis=-1)


def module_of(values: Any) -> Any:
    """NumPy or `jax.numpy`, without loading JAX for arrays of NumPy's."""
    return values.__array_namespace__() if hasattr(values, "__array_namespace__") else np


def _by_draw(swapped: np.ndarray, values: Any) -> np.ndarray:
    return swapped.reshape((*swapped.shape, *[1] * (np.ndim(values) - swapped.ndim)))


def _beside(components: Any, values: Any, axis: int) -> Any:
    """Give components (*lead, component) the axes of values, theirs in the place of `axis`."""
    lead = components.ndim - 1
    shape = [*components.shape[:-1], *[1] * (values.ndim - lead)]
    shape[lead + axis] = components.shape[-1]
    return components.reshape(shape)
