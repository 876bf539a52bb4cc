"""Components that rotate into one another: factors, principal components, dimensions of a latent space.

Varimax is the rotation that makes loadings simple. The criterion of loadings b (component, row) is
``sum_j [sum_i b_ji^4 - (sum_i b_ji^2)^2 / rows]``, without Kaiser's normalisation of the rows. `varimax` turns every
pair of components to its own optimum until no pair turns (Kaiser 1958, Psychometrika 23), which never lowers the
criterion. `refine` is faster from starts near an optimum. Convention: a rotation (component, component)
multiplies loadings (component, row) from the left.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from jaxtyping import Float

from onebasin.base.errors import ArgumentError

from .block import Axes, AxisPart, Block, Values, axes_of, check_axes
from .elements import Rotated, Shapes, rotate
from .exchangeable import Exchangeable

Loadings = Float[np.ndarray, "draw component row"]
Rotations = Float[np.ndarray, "draw component component"]

SWEEPS, TURNED = 100, 1e-9
"""Maximum number of sweeps over all pairs, and the angle in radians below which a pair has converged."""
STEPS, STEP = 300, 1e-6
"""Maximum number of steps of `refine`, and the step in radians below which a draw has converged."""
FRESH = 3
"""Number of steps between updates of the curvature. It is odd, because some draws cycle in two steps."""
LARGE = 0.7  # Largest angle of a step, in radians.
FLAT = 0.02
"""Minimum curvature of a plane of two components, relative to two simple components of the same size."""
_CACHE = 2**19  # Bytes of loadings that are processed at a time, which fit in a core's cache.


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
            # The angle by which the plane of the two components is turned to the optimum.
            one, other = first[:, :rows], second[:, :rows]
            u, v = one**2 - other**2, 2 * one * other
            a, b = u.sum(axis=1), v.sum(axis=1)
            sine = 2 * ((u * v).sum(axis=1) - a * b / rows)
            cosine = (u**2 - v**2).sum(axis=1) - (a**2 - b**2) / rows
            angle = np.arctan2(sine, cosine) / 4
            largest = max(largest, float(np.abs(angle).max(initial=0.0)))
            cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]
            both[:, pair[0]], both[:, pair[1]] = (
                cos * first + sin * second,
                cos * second - sin * first,
            )
        if largest < TURNED:
            break
    return both[:, :, rows:]


def refine(loadings: Loadings, start: Rotations) -> Rotations:
    """Climb from rotations `start` near an optimum to the optimum of each draw.

    Each step divides the gradient by the curvature in every plane of two components. Its length follows Barzilai and
    Borwein (1988, IMA Journal of Numerical Analysis 8). With eight factors this takes a ninth of the time of the usual
    iteration, which moves to the rotation nearest to the gradient, and a twentieth of that of `varimax`.
    """
    step = max(1, _CACHE // max(loadings[:1].nbytes, 1))
    pieces = [slice(first, first + step) for first in range(0, len(loadings), step)]
    found = [_climb(loadings[piece].astype(np.float64), start[piece]) for piece in pieces]
    return np.concatenate([np.empty((0, *start.shape[1:])), *found])


def _climb(loadings: Loadings, start: Rotations) -> Rotations:
    begun = start.astype(np.float64)
    turns, here = begun.copy(), begun @ loadings
    inverse, (slope, first) = _inverse_curvature(here), _slope(here)
    towards, length = slope * inverse, np.ones((len(here), 1, 1))
    last, climbing = first.copy(), np.arange(len(here))
    for step in range(1, STEPS + 1):
        turned, shrunk = _exponential(length * towards)
        here = turned @ here
        turns[climbing] = turned @ turns[climbing]
        before, (slope, last[climbing]) = slope, _slope(here)
        change = -(towards * (slope - before)).sum(axis=(1, 2), keepdims=True)
        gain = shrunk * length * (towards * before).sum(axis=(1, 2), keepdims=True)
        length = np.where(change > 0, np.clip(gain / np.where(change > 0, change, 1), 0.2, 10.0), 1)
        if not step % FRESH:
            inverse, length = _inverse_curvature(here), np.ones_like(length)
        towards = slope * inverse
        moving = np.abs(towards).max(axis=(1, 2), initial=0.0) > STEP
        climbing = climbing[moving]
        if not len(climbing):
            break
        here, slope, towards = here[moving], slope[moving], towards[moving]
        length, inverse = length[moving], inverse[moving]
    turns = nearest_rotation(turns)  # Rounding errors would change the log density.
    # Draws that did not converge, or whose criterion fell, are turned pair by pair instead.
    lost = last < first * (1 - 1e-12)
    lost[climbing] = True
    if lost.any():
        turns[lost] = varimax(begun[lost] @ loadings[lost]) @ begun[lost]
    return turns


def _slope(loadings: Loadings) -> tuple[Rotations, Float[np.ndarray, " draw"]]:
    """Return a quarter of the criterion's gradient, a skew matrix, and the criterion."""
    squares = np.square(loadings)
    centred = squares - squares.mean(axis=2, keepdims=True)
    fourth = (loadings * centred) @ np.swapaxes(loadings, 1, 2)
    return fourth - np.swapaxes(fourth, 1, 2), np.trace(fourth, axis1=1, axis2=2)


def _inverse_curvature(loadings: Loadings) -> Rotations:
    """Return the inverse curvature in the plane of every two components; 0 on the diagonal and for two zeros."""
    squares, products = np.square(loadings), loadings @ np.swapaxes(loadings, 1, 2)
    fourth, second = squares @ np.swapaxes(squares, 1, 2), squares.sum(axis=2)
    own = np.diagonal(fourth, axis1=1, axis2=2)
    simple = own[:, :, None] + own[:, None]
    gap = np.square(second[:, :, None] - second[:, None]) - 4 * np.square(products)
    curvature = np.abs(simple - 6 * fourth - gap / loadings.shape[2])
    curvature = np.maximum(curvature, FLAT * simple)
    apart = ~np.eye(loadings.shape[1], dtype=bool) & (simple > 0)
    return np.asarray(apart / np.where(apart, curvature, 1))


def _exponential(skew: Rotations) -> tuple[Rotations, Float[np.ndarray, "draw 1 1"]]:
    """Return rotations by skew matrices, which are shrunk if their angles are large, and the factors of shrinking."""
    square = skew @ skew
    bound = np.sqrt(np.abs(square).sum(axis=2, keepdims=True).max(axis=1, keepdims=True))
    shrunk = LARGE / np.maximum(bound, LARGE)
    skew, square = shrunk * skew, shrunk**2 * square
    eye = np.eye(skew.shape[1])
    turned = eye + skew + square / 2 + (square @ skew) / 6
    # One step towards the nearest rotation removes the error of the truncated series.
    return turned @ (1.5 * eye - 0.5 * (np.swapaxes(turned, 1, 2) @ turned)), shrunk


def nearest_rotation(matrices: Float[np.ndarray, "draw component component"]) -> Rotations:
    """Return the orthogonal matrix nearest to each, reflections allowed."""
    left, _, right = np.linalg.svd(matrices)
    return np.asarray(left @ right)


@dataclass(frozen=True)
class Rotation(Block[Rotated]):
    """Components that rotate into one another: one orthogonal matrix acts on the named axes of every variable.

    Rotations here include reflections. Alignment makes the first variable's entries simple by varimax, so name the
    loadings first; scores and other variables rotate along.

    Parameters
    ----------
    axes : mapping of str to int or tuple of int
        Variable name to axis, or to several axes if the matrix acts on each of them, such as both axes of a covariance
        matrix of factors. The first variable has one axis.

    Raises
    ------
    TypeError
        If `axes` maps no names to axes.
    ValueError
        If `axes` is empty, or its first variable has several axes.

    Examples
    --------
    >>> block = ob.Rotation({"load": 1, "scores": 1})
    >>> quarter = np.array([[0.0, 1.0], [-1.0, 0.0]])
    >>> block.act({"load": np.array([[1.0, 2.0], [3.0, 4.0]])}, quarter)["load"].tolist()
    [[2.0, -1.0], [4.0, -3.0]]
    """

    kind = "rotation"
    turn = 0

    axes: Mapping[str, Axes]

    def __post_init__(self) -> None:
        """Check the names and the first variable."""
        check_axes("axes", self.axes, several=True)
        if not self.axes:
            raise ArgumentError(
                "`axes` is empty. Map each variable to the axis of its components, and begin with the loadings, as "
                "in {'load': 1, 'scores': 1}."
            )
        if len(axes_of(self.axes[self.loadings])) > 1:
            raise ArgumentError(
                "The first variable of `axes` must be the loadings, with only one axis of components; "
                f"{self.loadings} has several. Correct the order or the axes."
            )

    @classmethod
    def of(cls, block: Block[Any], shapes: Shapes) -> Rotation | None:
        """Return the rotations of a block with all signs; None if it lacks signs or has too few entries.

        The variable with the fewest entries comes first: usually the loadings.
        """
        if not isinstance(block, Exchangeable) or set(block.flipped) != set(block.variables):
            return None
        if any(isinstance(place, AxisPart) for _, place in block.moved):
            return None
        names = sorted(
            block.axes, key=lambda name: (len(axes_of(block.axes[name])), math.prod(shapes[name]))
        )
        try:
            rotation = cls({name: block.axes[name] for name in names})
            rotation.check(shapes)
        except ArgumentError:
            return None
        return rotation if rotation.size(shapes) > 1 else None

    @property
    def loadings(self) -> str:
        """The variable that alignment makes simple."""
        return next(iter(self.axes))

    @property
    def discrete(self) -> Exchangeable:
        """Orders of the components with signs."""
        return Exchangeable(self.axes, flips=True)

    def act(self, values: Values, matrix: Any) -> dict[str, Any]:
        """Rotate draws (*lead, *event): component i becomes the sum over j of ``matrix[i, j]`` times component j.

        `matrix` (*lead, component, component) is orthogonal. Variables of the block that are present are rotated, with
        NumPy or JAX; all values are returned.
        """
        out = dict(values)
        for name in (name for name in self.axes if name in out):
            for axis in axes_of(self.axes[name]):
                out[name] = rotate(out[name], matrix, axis)
        return out

    def describe(self) -> str:
        """Describe the moved variables in plain words."""
        return f"rotations of {', '.join(self.variables)}"

    def restricted(self, names: Iterable[str]) -> Rotation | None:
        """Return the block restricted to some variables; None if no variable with one axis is left."""
        there = set(names)
        kept = {name: places for name, places in self.axes.items() if name in there}
        first = sorted(kept, key=lambda name: len(axes_of(kept[name])))
        if not first or len(axes_of(kept[first[0]])) > 1:
            return None
        return Rotation({name: kept[name] for name in dict.fromkeys((first[0], *kept))})

    def identity(self, lead: tuple[int, ...], size: int) -> Rotated:
        """Return the identity."""
        return Rotated(np.broadcast_to(np.eye(size), (*lead, size, size)).copy())

    def random(self, rng: np.random.Generator, lead: tuple[int, ...], size: int) -> Rotated:
        """Draw orthogonal matrices uniformly, including reflections (Mezzadri 2007, Notices of the AMS 54(5))."""
        q, r = np.linalg.qr(rng.standard_normal((*lead, size, size)))
        return Rotated(q * np.sign(np.diagonal(r, axis1=-2, axis2=-1))[..., None, :])

    def log_order(self, size: int) -> float:
        """Return infinity, or log 2 for a single component, which has two signs."""
        return math.inf if size > 1 else math.log(2)

    def compose(self, first: Rotated, then: Rotated, beside: object) -> Rotated:
        """Return the element that acts like `first` followed by `then`."""
        return Rotated(then.matrix @ first.matrix)

    def inverse(self, part: Rotated, beside: object) -> Rotated:
        """Return the inverse of an element."""
        return Rotated(np.swapaxes(part.matrix, -1, -2))

    def of_variances(self, part: Rotated) -> None:
        """Raise an error, because the variances after a rotation depend on covariances too."""
        raise ArgumentError(
            "`Rotation` cannot rotate variances without their covariances. Rotate the draws instead."
        )

    def check(self, shapes: Shapes) -> None:
        """Reject shapes that it cannot move, and loadings with fewer rows than components."""
        super().check(shapes)
        size, entries = self.size(shapes), math.prod(shapes[self.loadings])
        if entries < size * size:
            raise ArgumentError(
                f"`symmetry` rotates {size} components of {self.loadings}, but each component has too few entries "
                f"({entries // size}). Begin `axes` with loadings that have at least {size} rows."
            )
