"""Measure how close a network is to an equivalent one: the nearest permuted copy of its weights, with bounds.

Convention: w are all weights and biases of a network with one hidden layer of H units, u_i the D that belong to unit i
(incoming weights, bias, outgoing weights); g permutes units. Distances are Euclidean and, where nothing else is
said, relative to ||w||. For H = 1 there is no permuted copy.

The nearest copy is one transposition away. Let m be the least ||u_i - u_j|| over i != j. Then ||w - g w||^2 is the
sum over units that g moves of ||u_i - u_g(i)||^2, each term at least m^2, and a g that is not the identity
moves two units or more: at least 2 m^2, which the transposition of the closest pair attains. So

    min over g != e of ||w - g w|| = sqrt(2) min over i != j of ||u_i - u_j||.

Source of the bound: Gelberg et al. 2024, Theorem 3.1 and Appendix B, whose formulas our text has lost; they follow
from the proof. If all copies were at least 2 r apart, the H! balls of radius r around them would be disjoint, and
all lie in the ball of radius ||w|| + r around 0: H! r^d <= (||w|| + r)^d, where d counts what permutations move.
Hence

    min ||w - g w|| / ||w|| <= 2 / (H!^(1/d) - 1) <= 2 d / log H! = 2 D / (log H! / H) ~ 2 D / (log H - 1),

the second step by log(1 + x) <= x, the last by Stirling. Departures: only moved coordinates are counted, which is a
little sharper; d = H D for biases as well.

Two bounds that hold for every w say more. By the triangle inequality it is at most 2, and the volume argument's is
below that only from H = e 2^D or so, more units than any network has. And the least of the
H (H - 1) / 2 squared distances of units is at most their mean, whose sum is
H sum_i ||u_i||^2 - ||sum_i u_i||^2 <= H ||w||^2, so

    min ||w - g w|| / ||w|| <= 2 / sqrt(H - 1),

attained where all u_i are as far from one another, average to 0 and are all that w has (D >= H - 1); independent random
units of many weights come close.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from onebasin.models.symmetry.blocks import Exchangeable

Values = Mapping[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Nearest:
    """The closest pair of units of every network."""

    distance: Float[np.ndarray, " network"]  # To the nearest permuted copy, relative to ||w||.
    separation: Float[np.ndarray, " network"]
    """Half the distance between the two modes in standard deviations of q, for the pair for which it is least: of
    two Gaussian modes -a and a with equal covariance S it is ||S^(-1/2) a||. NaN where no spread is known."""
    close: Float[np.ndarray, " network"]
    """Share of units that have another one within the separation asked for; NaN likewise."""


def units_of(values: Values, block: Exchangeable) -> Float[np.ndarray, "network part param"]:
    """Lay out what belongs to each part, from arrays (network, ...); the block moves one axis of each variable."""
    rows = []
    for name, axis in block.axes.items():
        assert isinstance(axis, int), "of one hidden layer"
        value = np.moveaxis(np.asarray(values[name], dtype=np.float64), axis + 1, 1)
        rows.append(value.reshape(*value.shape[:2], -1))
    return np.concatenate(rows, axis=-1)


def nearest(
    values: Values, block: Exchangeable, *, sd: Values | None = None, within: float = 0.0
) -> Nearest:
    """Find the closest pair of units of networks, from their weights and biases (network, ...), network by network.

    `sd` are standard deviations of a Gaussian q around each, of the same shapes. Units count as close up to a
    separation of `within`; below 2.41, one Gaussian between the two modes has no optimum but midway. There are
    two units or more.
    """
    units = units_of(values, block)
    squares = [
        np.square(np.asarray(v, dtype=np.float64)).reshape(len(v), -1).sum(axis=1)
        for v in values.values()
    ]
    norm = np.sqrt(sum(squares))
    out = np.stack(
        [np.linalg.norm(units - units[:, [i]], axis=2) for i in range(units.shape[1])], 1
    )
    diagonal = np.arange(units.shape[1])
    out[:, diagonal, diagonal] = np.inf
    distance = math.sqrt(2) * out.min(axis=(1, 2)) / norm
    if sd is None:
        unknown = np.full(len(units), np.nan)
        return Nearest(distance, unknown, unknown)
    # Half distances to the transpositions, in units of the two parts' mean variance.
    apart = np.full((len(units), units.shape[1], units.shape[1]), np.inf)
    for half, own, spread in zip(apart, units, units_of(sd, block), strict=True):
        for i in range(len(own) - 1):
            variance = (spread[i] ** 2 + spread[i + 1 :] ** 2) / 2
            scaled = np.square(own[i + 1 :] - own[i]) / variance
            half[i, i + 1 :] = np.sqrt(scaled.sum(axis=1) / 2)
        half[:] = np.minimum(half, half.T)
    close = (apart.min(axis=2) <= within).mean(axis=1)
    return Nearest(distance, apart.min(axis=(1, 2)), close)


def theorem_bound(num_parts: float, part_dim: int) -> float:
    """Theorem 3.1: 2 d / log H!."""
    return 2.0 * num_parts * part_dim / math.lgamma(num_parts + 1)


def mean_bound(num_parts: float) -> float:
    """The least distance is at most the root of the mean square: 2 / sqrt(H - 1)."""
    return 2.0 / math.sqrt(num_parts - 1)
