"""Components that rotate into one another: factors, principal components, dimensions of a latent space.

Varimax: the rotation that makes loadings simple, for many draws at once.

The criterion of loadings b (component, row) is ``sum_j [sum_i b_ji^4 - (sum_i b_ji^2)^2 / rows]``, without Kaiser's
normalisation of the rows. `varimax` turns every pair of components to its own optimum until no pair turns (Kaiser 1958,
Psychometrika 23), which never lowers the criterion. `refine` climbs from starts near an optimum by gradients over each
plane's curvature, with steps of Barzilai and Borwein (1988, IMA Journal of Numerical Analysis 8), by matrix products
alone: many components take a tenth of the time. Where draws lie near some loadings, the curvature there is that of all
draws, nearly: Newton's steps by it are a quarter as many. Convention: a rotation (component, component) multiplies
loadings (component, row) from the left.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
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
"""Sweeps over all pairs at most, and the angle in radians below which a pair rests."""
STEPS, STEP = 300, {"float32": 1e-5, "float64": 1e-6}
"""Steps of `refine` at most, and the size in radians below which a draw rests, by precision."""
FRESH = 3
"""Steps after which the curvature is found again. It is odd: some draws would go round in cycles of two steps."""
FEW, PLANES = 12, 2_016
"""Steps at most by the `Curvature` of other loadings, and planes (of 64 components) up to which it is found."""
LEVEL = 0.001
"""Curvature that is added to that of every plane, relative to the median one, where some planes are flat."""
LARGE = 0.7  # Angle in radians by which a draw turns at most in a step.
FLAT = 0.02
"""Curvature that a plane of two components is given at least, relative to that of two simple ones of their size."""
SURE = 1e-4  # Relative gain of the criterion that rounding cannot make.
_ROUNDS = 24
_CACHE = 2**19  # Bytes of loadings that are climbed with at a time, which a core keeps at hand.
_TOGETHER = 16
"""So many times as much goes together by one `Curvature`, whose inverse is larger than loadings."""


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


@dataclass(frozen=True, eq=False)
class Curvature:
    """The criterion's second derivatives at an optimum, inverted, for pairs of planes of two components."""

    inverse: Float[np.ndarray, "plane plane"]
    planes: tuple[np.ndarray, np.ndarray]  # The components of each plane.
    square: float  # Sum of squares of the loadings, to whose square derivatives are proportional.

    @classmethod
    def at(cls, loadings: Float[np.ndarray, "component row"]) -> Curvature | None:
        """Find it; None if there are too many planes, or loadings are at no optimum."""
        size, rows = loadings.shape
        first, second = planes = np.triu_indices(size, 1)
        if not 0 < len(first) <= PLANES:
            return None
        squares, products = np.square(loadings), loadings @ loadings.T
        own = np.diagonal(products)
        fourth = (squares * loadings) @ loadings.T - own[:, None] / rows * products
        # What the rows of `fourth` change by while a component turns to another one: [turning, other, :].
        change = 3 * (squares[:, None] * loadings) @ loadings.T
        change -= (
            2 * products[:, :, None] * products[:, None] + own[:, None, None] * products
        ) / rows
        each, turned = np.arange(len(first)), np.zeros((len(first), size, size))
        turned[each, first] += change[first, second]
        turned[each, second] -= change[second, first]
        turned[each, :, first] += fourth.T[second]
        turned[each, :, second] -= fourth.T[first]
        hessian = (turned - np.swapaxes(turned, 1, 2))[:, first, second]
        curvature = -(hessian + hessian.T) / 2
        curvature[each, each] += LEVEL * np.median(np.abs(curvature[each, each]))
        try:
            np.linalg.cholesky(curvature)
        except np.linalg.LinAlgError:
            return None
        return cls(np.linalg.inv(curvature), planes, float(np.trace(products)))

    @cached_property
    def single(self) -> Curvature:
        """The same in single precision."""
        return replace(self, inverse=self.inverse.astype(np.float32))

    def towards(self, slope: Rotations, square: Float[np.ndarray, " draw"]) -> Rotations:
        """Newton's steps, for draws with these sums of squares."""
        first, second = self.planes
        steps = slope[:, first, second] @ self.inverse
        steps *= np.square(self.square / square)[:, None]
        towards = np.zeros_like(slope)
        towards[:, first, second], towards[:, second, first] = steps, -steps
        return towards


def refine(loadings: Loadings, start: Rotations, near: Curvature | None = None) -> Rotations:
    """Climb from rotations `start` near an optimum to the optimum of each draw, in double precision.

    Loadings are (draw, component, row), rotations (draw, component, component). Loadings are climbed with in the
    precision in which they came: single precision takes half of the time, and finds angles to about 1e-5. The first
    steps are by a curvature `near` to theirs, if it is given.
    """
    step = max(1, _CACHE * (_TOGETHER if near else 1) // max(loadings[:1].nbytes, 1))
    pieces = [slice(first, first + step) for first in range(0, len(loadings), step)]
    if near and loadings.dtype == np.float32:
        near = near.single
    found = [_climb(loadings[piece], start[piece], near) for piece in pieces]
    return np.concatenate([np.empty((0, *start.shape[1:])), *found])


def _climb(loadings: Loadings, start: Rotations, near: Curvature | None) -> Rotations:
    least, turns = STEP[loadings.dtype.name], start.astype(loadings.dtype)
    here = turns @ loadings
    products, spare = here @ np.swapaxes(here, 1, 2), np.empty_like(here)
    inverse = None if near else _inverse_curvature(here, products)
    slope, first = _slope(here, products, spare)
    last, climbing = first.copy(), np.arange(len(here))
    length = np.ones((len(here), 1, 1), here.dtype)

    def step_of(slope: Rotations) -> Rotations:
        if inverse is not None:
            return slope * inverse
        assert near is not None
        return near.towards(slope, np.trace(products, axis1=1, axis2=2))

    towards = step_of(slope)
    size = np.abs(towards).max(axis=(1, 2), initial=0.0)
    for step in range(1, STEPS + 1):
        turned, shrunk = _exponential(length * towards)
        here, spare = np.matmul(turned, here, out=spare), here
        products = turned @ products @ np.swapaxes(turned, 1, 2)
        turns[climbing] = turned @ turns[climbing]
        before, (slope, last[climbing]) = slope, _slope(here, products, spare)
        change = -(towards * (slope - before)).sum(axis=(1, 2), keepdims=True)
        gain = shrunk * length * (towards * before).sum(axis=(1, 2), keepdims=True)
        length = np.where(change > 0, np.clip(gain / np.where(change > 0, change, 1), 0.2, 10.0), 1)
        if (inverse is not None and not step % FRESH) or step == FEW:
            inverse, length = _inverse_curvature(here, products), np.ones_like(length)
        towards, left = step_of(slope), size
        size = np.abs(towards).max(axis=(1, 2), initial=0.0)
        moving = size > least
        if inverse is None:
            # Sizes fall by about one factor: where the step after this one would be too small, this one is the last.
            moving = size**2 > least * np.minimum(left, 1)
            ended = climbing[~moving]
            turns[ended] = _exponential(towards[~moving])[0] @ turns[ended]
        climbing, size = climbing[moving], size[moving]
        if not len(climbing):
            break
        if not moving.all():
            here, slope, towards = here[moving], slope[moving], towards[moving]
            length, products, spare = length[moving], products[moving], spare[moving]
            inverse = None if inverse is None else inverse[moving]
    turns = nearest_rotation(turns.astype(np.float64))  # rounding would change the log density
    # Those that have gained nothing for sure, or do not rest: pair by pair where they are lower than they began.
    doubtful = np.union1d(np.flatnonzero(~(last > first * (1 + SURE))), climbing)
    begun, own = nearest_rotation(start[doubtful].astype(np.float64)), loadings[doubtful]
    lost = criterion(turns[doubtful] @ own) < criterion(begun @ own) * (1 - 1e-12)
    lost |= np.isin(doubtful, climbing)
    if lost.any():
        turns[doubtful[lost]] = varimax(begun[lost] @ own[lost]) @ begun[lost]
    return turns


def _slope(
    loadings: Loadings, products: Rotations, spare: Loadings
) -> tuple[Rotations, Float[np.ndarray, " draw"]]:
    """A quarter of the criterion's gradient, the skew matrix whose exponential climbs; and the criterion.

    `products` are inner products of the components; `spare` is overwritten.
    """
    rows = loadings.shape[2]
    np.square(loadings, out=spare)
    spare *= loadings
    fourth = spare @ np.swapaxes(loadings, 1, 2)
    second = np.diagonal(products, axis1=1, axis2=2)
    value = np.trace(fourth, axis1=1, axis2=2) - np.square(second).sum(axis=1) / rows
    fourth -= second[:, :, None] / rows * products
    return fourth - np.swapaxes(fourth, 1, 2), value


def _inverse_curvature(loadings: Loadings, products: Rotations) -> Rotations:
    """One over the curvature of every plane of two components; 0 for a component with itself, and for two of zeros."""
    squares = np.square(loadings)
    fourth, second = squares @ np.swapaxes(squares, 1, 2), squares.sum(axis=2)
    own = np.diagonal(fourth, axis1=1, axis2=2)
    simple = own[:, :, None] + own[:, None]
    gap = np.square(second[:, :, None] - second[:, None]) - 4 * np.square(products)
    curvature = np.abs(simple - 6 * fourth - gap / loadings.shape[2])
    curvature = np.maximum(curvature, FLAT * simple)
    apart = ~np.eye(loadings.shape[1], dtype=bool) & (simple > 0)
    return np.asarray(apart / np.where(apart, curvature, 1), loadings.dtype)


def _exponential(skew: Rotations) -> tuple[Rotations, Float[np.ndarray, "draw 1 1"]]:
    """Rotations by angles that are shrunk where they are large, and by how much.

    What the series leaves is removed by one step towards the nearest rotation.
    """
    square = skew @ skew
    bound = np.sqrt(np.abs(square).sum(axis=2, keepdims=True).max(axis=1, keepdims=True))
    shrunk = LARGE / np.maximum(bound, LARGE)
    skew, square = shrunk * skew, shrunk**2 * square
    eye = np.eye(skew.shape[1], dtype=skew.dtype)
    turned = eye + skew + square / 2 + (square @ skew) / 6
    return turned @ (1.5 * eye - 0.5 * (np.swapaxes(turned, 1, 2) @ turned)), shrunk


def nearest_rotation(matrices: Float[np.ndarray, "draw component component"]) -> Rotations:
    """Return the orthogonal matrix nearest to each, reflections allowed, by Newton and Schulz's iteration.

    It is in the precision of the matrices. Matrices that are singular, or nearly so, are decomposed instead.
    """
    eye, precision = np.eye(matrices.shape[1], dtype=matrices.dtype), np.finfo(matrices.dtype).eps
    product = np.swapaxes(matrices, 1, 2) @ matrices
    bound = np.abs(product).sum(axis=2).max(axis=1)[:, None, None]
    bound = np.where(bound > 0, bound, 1)
    turns, product = matrices / np.sqrt(bound), product / bound
    for _ in range(_ROUNDS):
        rest = np.abs(product - eye).max(initial=0.0)
        turns = turns @ (1.5 * eye - 0.5 * product)
        if rest < np.sqrt(precision):  # its square is left
            break
        product = np.swapaxes(turns, 1, 2) @ turns
    far = np.abs(np.swapaxes(turns, 1, 2) @ turns - eye).max(axis=(1, 2)) > 5000 * precision
    if far.any():
        left, _, right = np.linalg.svd(matrices[far])
        turns[far] = left @ right
    return np.asarray(turns)


@dataclass(frozen=True)
class Rotation(Block[Rotated]):
    """Components that rotate into one another: one orthogonal matrix acts on the named axes of every variable.

    Rotations here include reflections. Alignment makes the first variable's entries simple by varimax, so name the
    loadings first; scores and other variables rotate along.

    Parameters
    ----------
    axes : mapping of str to int or tuple of int
        Variable name to axis; to several axes where the matrix acts on each of them, such as both axes of a covariance
        matrix of factors. The first variable has one.

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
                "`axes` is empty; name the variables whose components rotate, loadings first, such as {'load': 1}."
            )
        if len(axes_of(self.axes[self.loadings])) > 1:
            raise ArgumentError(
                f"`axes` begins with {self.loadings}, which rotates along several axes; name the loadings first, with "
                "one axis."
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
        """The block as it acts on some variables alone; None if none with one axis is left."""
        there = set(names)
        kept = {name: places for name, places in self.axes.items() if name in there}
        first = sorted(kept, key=lambda name: len(axes_of(kept[name])))
        if not first or len(axes_of(kept[first[0]])) > 1:
            return None
        return Rotation({name: kept[name] for name in dict.fromkeys((first[0], *kept))})

    def identity(self, lead: tuple[int, ...], size: int) -> Rotated:
        """The identity."""
        return Rotated(np.broadcast_to(np.eye(size), (*lead, size, size)).copy())

    def random(self, rng: np.random.Generator, lead: tuple[int, ...], size: int) -> Rotated:
        """Draw orthogonal matrices evenly, reflections among them (Mezzadri 2007, Notices of the AMS 54(5))."""
        q, r = np.linalg.qr(rng.standard_normal((*lead, size, size)))
        return Rotated(q * np.sign(np.diagonal(r, axis1=-2, axis2=-1))[..., None, :])

    def log_order(self, size: int) -> float:
        """Infinite; log 2 for a single component, which has two signs."""
        return math.inf if size > 1 else math.log(2)

    def compose(self, first: Rotated, then: Rotated, beside: object) -> Rotated:
        """The element that acts like `first` followed by `then`."""
        return Rotated(then.matrix @ first.matrix)

    def inverse(self, part: Rotated, beside: object) -> Rotated:
        """The inverse of an element."""
        return Rotated(np.swapaxes(part.matrix, -1, -2))

    def of_variances(self, part: Rotated) -> None:
        """Raise an error: variances alone do not determine the variances after a rotation."""
        raise ArgumentError("`Rotation` moves no variances: these need covariances; rotate draws.")

    def check(self, shapes: Shapes) -> None:
        """Reject shapes that it cannot move, and loadings with fewer rows than components."""
        super().check(shapes)
        size, entries = self.size(shapes), math.prod(shapes[self.loadings])
        if entries < size * size:
            raise ArgumentError(
                f"`symmetry` rotates {size} components of {self.loadings}, which has {entries // size} entries each; "
                f"name loadings of {size} rows or more first."
            )
