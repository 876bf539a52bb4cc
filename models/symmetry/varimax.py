"""Varimax: the rotation that makes loadings simple, for many draws at once.

The criterion of loadings b (component, row) is ``sum_j [sum_i b_ji^4 - (sum_i b_ji^2)^2 / rows]``, without Kaiser's
normalisation of the rows. `varimax` turns every pair of components to its own optimum until no pair turns (Kaiser 1958,
Psychometrika 23), which never lowers the criterion. `refine` climbs from starts near an optimum by gradients with steps
of Barzilai and Borwein (1988, IMA Journal of Numerical Analysis 8), by matrix products alone: many components take a
tenth of the time. Convention: a rotation (component, component) multiplies loadings (component, row) from the
left.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from jaxtyping import Float

Loadings = Float[np.ndarray, "draw component row"]
Rotations = Float[np.ndarray, "draw component component"]

SWEEPS, TURNED = 100, 1e-9
"""Sweeps over all pairs at most, and the angle in radians below which a pair rests."""
STEPS, STEP = 300, 1e-6
"""Steps of `refine` at most, and the size in radians below which a draw rests."""
LARGE = 0.7
"""Angle in radians by which a draw turns at most in a step."""
FLAT = 0.02
"""Curvature, relative to the largest, that a pair of components is given at least."""
_ROUNDS = 24
_CACHE = 2**21
"""Bytes of loadings that are climbed with at a time, which a core keeps at hand."""


def criterion(loadings: Loadings) -> Float[np.ndarray, " draw"]:
    """Return the varimax criterion of each draw: the larger, the simpler."""
    squares = np.square(loadings)
    sums = squares.sum(axis=2)
    return np.square(squares).sum(axis=(1, 2)) - np.square(sums).sum(axis=1) / loadings.shape[2]


def varimax(loadings: Loadings) -> Rotations:
    """Rotate each draw to an optimum of the criterion, pair by pair of components."""
    draws, size, rows = loadings.shape
    # The rotation grows to the right of the loadings, so that each pair is turned once.
    both = np.concatenate([loadings, np.broadcast_to(np.eye(size), (draws, size, size))], axis=2)
    for _ in range(SWEEPS):
        largest = 0.0
        for pair in combinations(range(size), 2):
            first, second = (both[:, at].copy() for at in pair)
            angle = _angle(first[:, :rows], second[:, :rows])
            largest = max(largest, float(np.abs(angle).max(initial=0.0)))
            cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]
            both[:, pair[0]], both[:, pair[1]] = (
                cos * first + sin * second,
                cos * second - sin * first,
            )
        if largest < TURNED:
            break
    return both[:, :, rows:]


def _angle(
    first: Float[np.ndarray, "draw row"], second: Float[np.ndarray, "draw row"]
) -> Float[np.ndarray, " draw"]:
    """The angle by which the plane of two components is turned to the optimum."""
    u, v = first**2 - second**2, 2 * first * second
    a, b = u.sum(axis=1), v.sum(axis=1)
    rows = first.shape[1]
    sine = 2 * ((u * v).sum(axis=1) - a * b / rows)
    cosine = (u**2 - v**2).sum(axis=1) - (a**2 - b**2) / rows
    return np.asarray(np.arctan2(sine, cosine) / 4)


def refine(
    loadings: Loadings, start: Rotations, like: Float[np.ndarray, "component row"]
) -> Rotations:
    """Climb from starts that bring each draw near loadings at an optimum, to the optimum of each draw.

    Parameters
    ----------
    loadings : array (draw, component, row)
        As they came.
    start : array (draw, component, component)
        Rotations to begin with.
    like : array (component, row)
        What the starts bring draws near; its curvature scales the steps.
    """
    inverse, step = _inverse_curvature(like), max(1, _CACHE // (8 * like.size))
    pieces = [slice(first, first + step) for first in range(0, len(loadings), step)]
    return np.concatenate([start[:0], *(_climb(loadings[p], start[p], inverse) for p in pieces)])


def _climb(
    loadings: Loadings, start: Rotations, inverse: Float[np.ndarray, "component component"]
) -> Rotations:
    turns, climbing = start.copy(), np.arange(len(loadings))
    here = start @ loadings
    slope, length = _slope(here), np.ones((len(here), 1, 1))
    for _ in range(STEPS):
        towards = slope * inverse
        turned, shrunk = _exponential(length * towards)
        here, turns[climbing] = turned @ here, turned @ turns[climbing]
        before, slope = slope, _slope(here)
        change = -(towards * (slope - before)).sum(axis=(1, 2), keepdims=True)
        size = shrunk * length * (towards * before).sum(axis=(1, 2), keepdims=True)
        length = np.where(change > 0, np.clip(size / np.where(change > 0, change, 1), 0.2, 10.0), 1)
        moving = np.abs(slope * inverse).max(axis=(1, 2), initial=0.0) > STEP
        climbing = climbing[moving]
        if not len(climbing):
            break
        if not moving.all():
            here, slope, length = here[moving], slope[moving], length[moving]
    turns = nearest_rotation(turns)
    lost = criterion(turns @ loadings) < criterion(start @ loadings) * (1 - 1e-12)
    lost[climbing] = True
    if lost.any():
        turns[lost] = varimax(start[lost] @ loadings[lost]) @ start[lost]
    return turns


def _slope(loadings: Loadings) -> Rotations:
    """A quarter of the criterion's gradient: the skew matrix whose exponential climbs."""
    squares = np.square(loadings)
    squares -= squares.mean(axis=2, keepdims=True)
    squares *= loadings
    product = squares @ np.swapaxes(loadings, 1, 2)
    return np.asarray(product - np.swapaxes(product, 1, 2))


def _inverse_curvature(
    loadings: Float[np.ndarray, "component row"],
) -> Float[np.ndarray, "component component"]:
    """One over the curvature of every plane of two components at an optimum; 0 for a component with itself."""
    squares = loadings**2
    fourth, second = squares @ squares.T, squares.sum(axis=1)
    own, rows = np.diag(fourth), loadings.shape[1]
    curvature = own[:, None] + own - 6 * fourth
    curvature -= ((second[:, None] - second) ** 2 - 4 * (loadings @ loadings.T) ** 2) / rows
    apart = ~np.eye(len(own), dtype=bool)
    least = FLAT * curvature.max(initial=0.0, where=apart)
    if least <= 0:
        return apart / np.maximum(fourth.max(initial=0.0), np.finfo(float).tiny)
    return np.asarray(apart / np.maximum(curvature, least))


def _exponential(skew: Rotations) -> tuple[Rotations, Float[np.ndarray, "draw 1 1"]]:
    """Rotations by angles that are shrunk where they are large, and by how much.

    What the series leaves is removed by one step towards the nearest rotation.
    """
    square = skew @ skew
    bound = np.sqrt(np.abs(square).sum(axis=2, keepdims=True).max(axis=1, keepdims=True))
    shrunk = LARGE / np.maximum(bound, LARGE)
    skew, square = shrunk * skew, shrunk**2 * square
    eye = np.eye(skew.shape[1])
    turned = eye + skew + square / 2 + (square @ skew) / 6
    return turned @ (1.5 * eye - 0.5 * (np.swapaxes(turned, 1, 2) @ turned)), shrunk


def nearest_rotation(matrices: Float[np.ndarray, "draw component component"]) -> Rotations:
    """Return the orthogonal matrix nearest to each, reflections allowed, by Newton and Schulz's iteration.

    Matrices that are singular, or nearly so, are decomposed instead.
    """
    bound = np.sqrt(
        np.abs(matrices).sum(axis=1).max(axis=1) * np.abs(matrices).sum(axis=2).max(axis=1)
    )
    eye = np.eye(matrices.shape[1])
    turns = matrices / np.where(bound > 0, bound, 1)[:, None, None]
    for _ in range(_ROUNDS):
        product = np.swapaxes(turns, 1, 2) @ turns
        turns = turns @ (1.5 * eye - 0.5 * product)
        if np.abs(product - eye).max(initial=0.0) < 1e-7:  # its square is left
            break
    far = np.abs(np.swapaxes(turns, 1, 2) @ turns - eye).max(axis=(1, 2)) > 1e-12
    if far.any():
        left, _, right = np.linalg.svd(matrices[far])
        turns[far] = left @ right
    return np.asarray(turns)
