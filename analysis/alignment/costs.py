"""What a reference is, and what it costs to put part i of a draw in place of its part j.

The cost of a draw x against a reference (m, w) is the weighted squared distance

    sum over entries e of w[e] (x[e] - m[e])^2,

with w = 1 / scale^2 (Ainsworth, Hayase and Srinivasa 2023, equation 1, all variables of a block at
once), or the inverse variances of a diagonal Gaussian: its negative log density is half of the
distance plus half the sum of log variances (Stephens 2000, section 4, the loss behind his algorithm
for a Gaussian). Either is additive over parts, so that one block is a linear assignment problem.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from models.symmetry import Exchangeable, axes_of


@dataclass(frozen=True, eq=False)
class Reference:
    """What draws are matched with.

    Attributes
    ----------
    mean : mapping of str to array (*event)
        Centres.
    weight : mapping of str to array
        One number for a whole variable, or (*event).
    offset : float
        Added to the cost of a draw; what a density has beside the distance.
    factor : float
        Multiplies the distance: 1, or 1/2 in a negative log density.
    """

    mean: Mapping[str, np.ndarray]
    weight: Mapping[str, np.ndarray]
    offset: float = 0.0
    factor: float = field(default=1.0)


def distance(
    values: Mapping[str, np.ndarray], reference: Reference, names: tuple[str, ...]
) -> Float[np.ndarray, " draw"]:
    """Weighted squared distance of draws (draw, *event) to the reference."""
    total = 0.0
    for name in names:
        gap = values[name] - reference.mean[name].astype(values[name].dtype)
        rows = gap.reshape(len(gap), -1)
        weight = np.asarray(reference.weight[name])
        if weight.ndim:
            square = (rows * rows) @ weight.ravel().astype(rows.dtype)
        else:
            square = np.einsum("ij,ij->i", rows, rows) * float(weight)
        total = total + square.astype(np.float64)
    return np.asarray(total)


def cost_matrices(
    values: Mapping[str, np.ndarray], block: Exchangeable, reference: Reference
) -> tuple[Float[np.ndarray, "draw part part"], Float[np.ndarray, "draw part part"] | None]:
    """Costs of part i (row) at place j (column), less what does not depend on the assignment.

    Parameters
    ----------
    values : mapping of str to array (draw, *event)
        Draws, every variable with one axis in the block.
    block : Exchangeable
        The block.
    reference : Reference
        What is matched.

    Returns
    -------
    costs, signs
        With flips each pair of parts takes the better sign, which is in `signs`; it is None without.
    """
    fixed: np.ndarray | None = None
    signed: np.ndarray | None = None
    constant: np.ndarray | float = 0.0
    for name, places in block.axes.items():
        (axis,) = axes_of(places)
        mean, weight = reference.mean[name], np.asarray(reference.weight[name])
        # The same for every assignment, but with it a part's cheapest place is the nearest one.
        constant = constant + _columns((weight * mean**2)[None], axis)[0].sum(axis=1)
        linear = _products(values[name], -2 * weight * mean, axis)
        if name in block.flipped:
            signed = _add(signed, linear)
        else:
            fixed = _add(fixed, linear)
        if weight.ndim:  # else the sum of w x^2 is the same for every place
            fixed = _add(fixed, _products(values[name] ** 2, weight, axis))
    signs = None if signed is None else np.where(signed <= 0, 1.0, -1.0)
    costs = fixed if signed is None else _add(fixed, -np.abs(signed))
    return _add(costs, np.asarray(constant)), signs


def _products(values: np.ndarray, reference: np.ndarray, axis: int) -> np.ndarray:
    """Inner products of each part of each draw with each part of the reference."""
    target = _columns(reference.astype(values.dtype)[None], axis)[0].T
    return np.matmul(_columns(values, axis), target)


def _columns(values: np.ndarray, axis: int) -> np.ndarray:
    """(draw, part, rest), without a copy where the event has two axes at most."""
    front = np.moveaxis(values, axis + 1, 1)
    return front if front.ndim == 3 else front.reshape(*front.shape[:2], -1)


def _add(total: np.ndarray | None, term: np.ndarray) -> np.ndarray:
    """Add in place, to an array that is this module's own."""
    if total is None:
        return term
    total += term.astype(total.dtype, copy=False)
    return total
