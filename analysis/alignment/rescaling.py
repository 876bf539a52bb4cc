"""One representative of every orbit of positive scalings, before anything is matched.

A `Rescalable` block leaves a network's function alone when a unit's incoming weights (and bias) are
multiplied by a > 0 and its outgoing ones divided by it. Two gauges choose a:

- ``balanced``: |incoming| = |outgoing| for every unit, where the sum of squares is smallest on the orbit
  (of a normal prior with one scale, the most probable point);
- ``unit``: |incoming| = 1 (Pourzanjani, Jiang and Petzold 2017, section 3.2).

Neighbouring layers share a matrix, so deep networks are balanced layer by layer until nothing
changes. A unit with a norm of zero stays as it is. Scaling keeps the likelihood, not the prior.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from onebasin.models.symmetry.blocks import Rescalable, Symmetry, blocks_of
from onebasin.models.symmetry.elements import Scaled

from ..summaries.units import power_of_two

GAUGES = ("balanced", "unit", "keep")
_ROUNDS = 500
_TOLERANCE = 1e-14

Values = dict[str, np.ndarray]


def factors(values: Values, symmetry: Symmetry, gauge: str) -> list[Scaled]:
    """Find the factors that bring draws (draw, *event) into a gauge.

    Parameters
    ----------
    values : dict of str to array
        Draws.
    symmetry : Symmetry
        All blocks; those that rescale are looked at.
    gauge : {"balanced", "unit", "keep"}
        Which.

    Returns
    -------
    list of Scaled
        (draw, component), one for each `Rescalable` block.
    """
    blocks = blocks_of(symmetry, Rescalable)
    product = [np.ones(_norms(values, block.incoming).shape) for block in blocks]
    if gauge == "keep":
        return [Scaled(factor) for factor in product]
    for _ in range(_ROUNDS):
        largest = 0.0
        for place, block in enumerate(blocks):
            factor = _factor(values, block, gauge)
            values = block.act(values, factor)
            product[place] = product[place] * factor
            largest = max(largest, float(np.abs(np.log(factor)).max(initial=0.0)))
        if largest < _TOLERANCE:
            break
    return [Scaled(factor) for factor in product]


def rescale(values: Values, symmetry: Symmetry, scaled: list[Scaled]) -> Values:
    """Multiply draws by their factors."""
    for block, part in zip(blocks_of(symmetry, Rescalable), scaled, strict=True):
        values = block.act(values, part.factors)
    return values


def _factor(values: Values, block: Rescalable, gauge: str) -> np.ndarray:
    incoming = _norms(values, block.incoming)
    if gauge == "unit" or not block.outgoing:
        return np.where(incoming > 0, 1 / np.where(incoming > 0, incoming, 1), 1)
    outgoing = _norms(values, block.outgoing)
    alive = (incoming > 0) & (outgoing > 0)
    return np.sqrt(np.where(alive, outgoing, 1)) / np.sqrt(np.where(alive, incoming, 1))


def _norms(values: Values, axes: Mapping[str, int]) -> np.ndarray:
    """Euclidean norm of each component over all variables (draw, component)."""
    rows = []
    for name, axis in axes.items():
        front = np.moveaxis(values[name], axis + 1, 1).astype(np.float64)
        rows.append(front.reshape(*front.shape[:2], -1))
    # In a unit of their own, so that squares are doubles whatever the size of the weights.
    largest = [np.abs(row).max(initial=0.0) for row in rows]
    unit = float(power_of_two(np.asarray(max(largest, default=0.0))))
    return unit * np.sqrt(sum(np.square(row / unit).sum(axis=2) for row in rows))
