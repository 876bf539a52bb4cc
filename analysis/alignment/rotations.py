"""The rotation of every draw that makes its loadings simple, before components are matched with one another.

All rotations of loadings are equally probable, so that a rule has to choose one of each draw. Turning every draw to a
common mean (Procrustes) makes draws as alike as they can be: rotations then differ from draw to draw by less than they
do, and standard deviations are too small. Varimax looks at one draw alone; what it leaves open is the components' order
and signs, which alignment finds as everywhere (Papastamoulis and Ntzoufras 2022, Statistics and Computing 32). Its
optimum has to be clear: loadings that are nearly spherical have none.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from onebasin.base.errors import ArgumentError
from onebasin.models.symmetry.blocks import Rotation, axes_of
from onebasin.models.symmetry.elements import Rotated
from onebasin.models.symmetry.rotation import (
    Curvature,
    Loadings,
    Rotations,
    criterion,
    nearest_rotation,
    refine,
)

from ..discovery.sorting import procrustes
from .draws import Arrays, DrawReader, Workers

CLEAR = 15.0
"""Degrees by which draws may turn about the mean in the plane of two components; 26 say that every angle is equal."""
ELSEWHERE = 0.2
"""Share of draws whose best optimum may be another than the one near the mean."""
STARTS = 10
"""Random starts of the mean's loadings, besides the one that they have."""
BETTER = 1e-6
"""Relative gain of the criterion above which an optimum is another one."""
_LEAST, _MOST, _WORK = 16, 200, 5e7


class UnclearRotation(ArgumentError):
    """Loadings for which varimax has no clear optimum; `reason` says so in a sentence, without the argument."""

    def __init__(self, argument: str, reason: str) -> None:
        super().__init__(
            f"`{argument}` cannot be aligned by a rotation. {reason} Use what no rotation changes, such as L L' of "
            "loadings L; or fix the rotation in the model: loadings with zeros above a positive diagonal."
        )
        self.reason = reason


def find_rotations(reader: DrawReader, block: Rotation, team: Workers) -> Rotated:
    """Find the rotations that make the loadings of all draws simple, all of them near one another."""

    def one(row: int) -> Loadings:
        draw = reader.read_one(row)
        return _loadings({name: values[None] for name, values in draw.items()}, block)

    size, rows = one(0).shape[1:]
    count = int(np.clip(_WORK / (size**2 * rows), _LEAST, _MOST))
    chosen = np.unique(np.linspace(0, reader.total - 1, count).round().astype(int))
    some = np.concatenate([one(int(row)) for row in chosen])
    # The mean of draws that are turned to one another, at the best optimum of some random starts; its components are
    # in order of size, with positive sums of cubes.
    mean = procrustes(some)[0].mean(axis=0)
    starts = np.concatenate([np.eye(len(mean))[None], _random(STARTS, len(mean))])
    every = np.broadcast_to(mean, (len(starts), *mean.shape))
    turns = _shared(every, starts, team)
    best = refine(mean[None], turns[[criterion(turns @ mean).argmax()]])[0] @ mean
    best = best[np.argsort(-np.square(best).sum(axis=1), kind="stable")]
    mean = np.asarray(best * np.where((best**3).sum(axis=1, keepdims=True) < 0, -1, 1))
    near = Curvature.at(mean)

    def simple(draws: Loadings) -> Rotations:
        towards = mean.astype(draws.dtype) @ np.swapaxes(draws, 1, 2)
        return refine(draws, nearest_rotation(towards), near)

    if reason := why_unclear(some, simple(some), mean, block.loadings, team):
        raise UnclearRotation(reader.argument, reason)

    def piece(_: slice, within: slice, values: Arrays) -> Rotations:
        draws = {block.loadings: _of_size_one(values[block.loadings][within])}
        return simple(_loadings(draws, block, np.float32))

    own = replace(reader, names=(block.loadings,))  # which reads no scores
    return Rotated(np.concatenate(list(team.through(own.read, reader.chunks, piece))))


def _loadings(draws: Arrays, block: Rotation, dtype: type = np.float64) -> Loadings:
    """Loadings (draw, component, row) of draws (draw, *event)."""
    (axis,) = axes_of(block.axes[block.loadings])
    front = np.moveaxis(draws[block.loadings], axis + 1, 1)
    return np.ascontiguousarray(front.reshape(*front.shape[:2], -1), dtype)


def why_unclear(
    draws: Loadings,
    turns: Rotations,
    mean: Float[np.ndarray, "component row"],
    loadings: str,
    team: Workers,
) -> str:
    """Say why draws do not agree about the rotation, in a sentence; empty where they do.

    Loadings (draw, component, row) are as they came, `turns` what makes them simple near a mean.
    """
    simple = turns @ draws
    about = nearest_rotation(simple.mean(axis=0) @ np.swapaxes(simple, 1, 2))
    sines = (about - np.swapaxes(about, 1, 2)) / 2
    angles = np.degrees(np.arcsin(np.clip(np.abs(sines), 0, 1)))
    degrees = np.sqrt((angles**2).mean(axis=0))  # in the plane of two components
    if (worst := float(degrees.max(initial=0.0))) > CLEAR:
        open_ = int((degrees > CLEAR).any(axis=0).sum())
        return (
            f"Varimax has no clear optimum: in the plane of two components of {loadings} the draws turn by "
            f"{worst:.0f} degrees about their mean ({CLEAR:.0f} are allowed, 26 are no information). This concerns "
            f"{open_} of {len(degrees)} components. Their loadings are nearly spherical, there are more "
            "components than the data tell apart, or the variable that was named first holds no loadings."
        )
    best = criterion(_shared(draws, _random(len(draws), draws.shape[1]), team) @ draws)
    elsewhere = float((best > criterion(simple) * (1 + BETTER)).mean())
    if elsewhere > ELSEWHERE:
        return (
            f"Varimax has no clear optimum: for {elsewhere:.0%} of the draws of {loadings} it is another one "
            f"than near the mean ({ELSEWHERE:.0%} are allowed)."
        )
    return ""


def _of_size_one(draws: np.ndarray) -> np.ndarray:
    """Divide draws (draw, *event) by their largest entries, so that squares are floats."""
    axes = tuple(range(1, draws.ndim))
    largest = np.maximum(draws.max(axes, keepdims=True), -draws.min(axes, keepdims=True))
    return np.asarray(draws / np.where(largest > 0, largest, 1))


def _shared(loadings: Loadings, starts: Rotations, team: Workers) -> Rotations:
    """Climb from random starts, which takes a hundred steps, in single precision."""
    single = _of_size_one(loadings).astype(np.float32)
    climbed = team.over(len(starts), lambda within: refine(single[within], starts[within]))
    return np.concatenate(list(climbed))


def _random(count: int, size: int) -> Rotations:
    return Rotation({"any": 0}).random(np.random.default_rng(0), (count,), size).matrix
