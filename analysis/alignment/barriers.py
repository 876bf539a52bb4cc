"""Loss along the straight line between two networks, and the barrier on it.

At t between 0 and 1 the weights are (1 - t) first + t second (Xiao, Liu and Bamler 2023, Figure 2, whose text
writes lambda - 1 for 1 - lambda). The barrier is the largest excess of the loss over the straight line between
the losses of the ends (Frankle et al. 2020; Ainsworth, Hayase and Srinivasa 2023, definition 2.1, there
halfway between the ends' losses): 0 where the loss is convex along the line. Weights enter as they are: aligned
or not is the caller's choice, and comparing both is the purpose.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from onebasin.base.checks import check_count
from onebasin.base.errors import ArgumentError

Values = Mapping[str, np.ndarray]
Loss = Callable[[dict[str, np.ndarray]], Any]


@dataclass(frozen=True, eq=False)
class Barrier:
    """Losses between pairs of networks.

    Attributes
    ----------
    position : array (point,)
        From 0, the first network, to 1, the second.
    loss : array (pair, point)
        In the units of the loss that was given.
    """

    position: Float[np.ndarray, " point"]
    loss: Float[np.ndarray, "pair point"]

    @property
    def excess(self) -> Float[np.ndarray, "pair point"]:
        """Loss less the straight line between the losses of the ends."""
        line = np.outer(self.loss[:, 0], 1 - self.position)
        return self.loss - line - np.outer(self.loss[:, -1], self.position)

    @property
    def height(self) -> Float[np.ndarray, " pair"]:
        """Largest excess of each pair; NaN where a loss is."""
        return self.excess.max(axis=1)


def barrier(first: Values, second: Values, loss: Loss, *, num_points: int = 25) -> Barrier:
    """Measure the loss along the line between pairs of networks.

    Parameters
    ----------
    first, second : mapping of str to array (pair, *event)
        Weights at the two ends, under the same names and of the same shapes.
    loss : callable
        From weights (pair, *event) to losses (pair,); called once a point.
    num_points : int
        Points on the line, ends included.

    Returns
    -------
    Barrier
        Losses and heights.

    Raises
    ------
    ValueError
        If names or shapes differ, there are fewer than 2 points, or `loss` returns another shape.
    """
    check_count("num_points", num_points, least=2)
    pairs = _check(first, second)
    position = np.linspace(0.0, 1.0, num_points)
    losses = np.empty((pairs, num_points))
    for place, t in enumerate(position):
        here = np.asarray(loss({n: (1 - t) * first[n] + t * second[n] for n in first}))
        if here.shape != (pairs,):
            raise ArgumentError(
                f"`loss` returned an array of shape {here.shape} for {pairs} networks; return one "
                f"number for each, ({pairs},)."
            )
        losses[:, place] = here
    return Barrier(position, losses)


def _check(first: Values, second: Values) -> int:
    if set(first) != set(second) or not first:
        raise ArgumentError(
            f"`first` holds {', '.join(first) or 'nothing'} and `second` {', '.join(second) or 'nothing'}; "
            "give two networks of the same architecture."
        )
    for name in first:
        if first[name].shape != second[name].shape or not first[name].ndim:
            raise ArgumentError(
                f"`first` holds {name} of shape {first[name].shape}, and `second` of shape "
                f"{second[name].shape}; give (pair, ...), the same in both."
            )
    pairs = {name: len(array) for name, array in first.items()}
    if len(set(pairs.values())) > 1:
        raise ArgumentError(f"`first` holds different numbers of networks by variable: {pairs}.")
    return next(iter(pairs.values()))
