"""Components that rotate into one another: factors, principal components, dimensions of a latent space."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from onebasin.base.errors import ArgumentError

from .arrays import rotate
from .axis_part import AxisPart
from .block import Axes, Block, Values, axes_of, check_axes
from .elements import Rotated, Shapes
from .exchangeable import Exchangeable


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
        """Give rotations of what a block with all signs moves; None where it has not, or has too few entries.

        The variable with the fewest entries comes first: that of loadings, as a rule.
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

        `matrix` (*lead, component, component) is orthogonal. Those of the block's variables that are there are rotated,
        with NumPy or JAX; all values are returned.
        """
        out = dict(values)
        for name in (name for name in self.axes if name in out):
            for axis in axes_of(self.axes[name]):
                out[name] = rotate(out[name], matrix, axis)
        return out

    def describe(self) -> str:
        """Say in plain words what it moves."""
        return f"rotations of {', '.join(self.variables)}"

    def restricted(self, names: Iterable[str]) -> Rotation | None:
        """The block as it acts on some variables alone; None where none with one axis is left."""
        there = set(names)
        kept = {name: places for name, places in self.axes.items() if name in there}
        first = sorted(kept, key=lambda name: len(axes_of(kept[name])))
        if not first or len(axes_of(kept[first[0]])) > 1:
            return None
        return Rotation({name: kept[name] for name in dict.fromkeys((first[0], *kept))})

    def identity(self, lead: tuple[int, ...], size: int) -> Rotated:
        """The part that moves nothing."""
        return Rotated(np.broadcast_to(np.eye(size), (*lead, size, size)).copy())

    def random(self, rng: np.random.Generator, lead: tuple[int, ...], size: int) -> Rotated:
        """Draw orthogonal matrices evenly, reflections among them (Mezzadri 2007, Notices of the AMS 54(5))."""
        q, r = np.linalg.qr(rng.standard_normal((*lead, size, size)))
        return Rotated(q * np.sign(np.diagonal(r, axis1=-2, axis2=-1))[..., None, :])

    def log_order(self, size: int) -> float:
        """Infinite, but for one component, which has two signs."""
        return math.inf if size > 1 else math.log(2)

    def compose(self, first: Rotated, then: Rotated, beside: object) -> Rotated:
        """The part that acts like `first` followed by `then`."""
        return Rotated(then.matrix @ first.matrix)

    def inverse(self, part: Rotated, beside: object) -> Rotated:
        """The part that undoes one."""
        return Rotated(np.swapaxes(part.matrix, -1, -2))

    def of_variances(self, part: Rotated) -> None:
        """Refuse: variances alone do not say what they are after a rotation."""
        raise ArgumentError("`Rotation` moves no variances: these need covariances; rotate draws.")

    def check(self, shapes: Shapes) -> None:
        """Refuse shapes that it cannot move, and loadings with fewer rows than components."""
        super().check(shapes)
        size, entries = self.size(shapes), math.prod(shapes[self.loadings])
        if entries < size * size:
            raise ArgumentError(
                f"`symmetry` rotates {size} components of {self.loadings}, which has {entries // size} entries each; "
                f"name loadings of {size} rows or more first."
            )
