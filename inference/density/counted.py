"""A log density at many points at a time, compiled for blocks of points, with how often it was evaluated."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jaxtyping import Float

from onebasin.base.precision import precision

if TYPE_CHECKING:
    from onebasin.models.target import Target

    from .stan_vectors import Density

Points = Float[np.ndarray, "point param"]
Heights = Float[np.ndarray, " point"]


def in_blocks(function: Callable[..., Any], *values: Any, size: int) -> Any:
    """Call a compiled function with values (point, ...), of as many points at a time as it was compiled for."""
    count = len(jax.tree.leaves(values)[0])
    parts = []
    for first in range(0, count, size):
        rows = np.minimum(np.arange(first, first + size), count - 1)
        found = function(*jax.tree.map(lambda value, r=rows: np.asarray(value)[r], values))
        parts.append(jax.tree.map(np.asarray, found))
    return jax.tree.map(lambda *each: np.concatenate(each)[:count], *parts)


def in_double(function: Callable[..., Any], size: int | None = None) -> Callable[..., Any]:
    """Compile a function of one point for points (point, ...) in double precision, for NumPy; so many at a time."""
    compiled = jax.jit(jax.vmap(function))

    def call(values: Any) -> Any:
        with precision("float64"):
            found = compiled(values) if size is None else in_blocks(compiled, values, size=size)
            return jax.tree.map(np.asarray, found)

    return call


class CountedDensity:
    """A target's log density over vectors, for NumPy, in double precision.

    `gradients` and `heights` count the points at which the gradient, and at which the log density alone was evaluated;
    a product of the Hessian with a vector counts as two gradients.
    """

    BLOCK = 64

    def __init__(self, density: Density) -> None:
        self.density = density
        self.gradients = self.heights = 0
        height = density.log_density
        slope = jax.grad(height)
        self._heights = jax.jit(jax.vmap(height))
        self._gradients = jax.jit(jax.vmap(jax.value_and_grad(height)))
        self._products = jax.jit(jax.vmap(lambda x, v: jax.jvp(slope, (x,), (v,))[1]))
        self._constrain = jax.jit(jax.vmap(density.constrain))
        self._quantities = jax.jit(jax.vmap(lambda x: density.quantities(density.unravel(x))))

    @classmethod
    def of(cls, target: Target, progress: Callable[[str], None] | None = None) -> CountedDensity:
        """Count the evaluations of a target's log density."""
        from .network import density_of

        return cls(density_of(target, progress))

    @property
    def size(self) -> int:
        """Coordinates of a vector."""
        return self.density.size

    def log_density(self, points: Points) -> Heights:
        """Log densities, -inf where there is none, or an infinite one."""
        self.heights += len(points)
        values = in_blocks(self._heights, points, size=self.BLOCK)
        return np.where(np.isfinite(values), values, -np.inf)

    def gradient(self, points: Points) -> tuple[Heights, Points]:
        """Log densities and gradients; -inf where either is not finite."""
        self.gradients += len(points)
        values, slopes = in_blocks(self._gradients, points, size=self.BLOCK)
        there = np.isfinite(values) & np.isfinite(slopes).all(axis=1)
        return np.where(there, values, -np.inf), slopes

    def products(self, points: Points, directions: Points) -> Points:
        """Products of the Hessian at each point with the direction in the same row."""
        self.gradients += 2 * len(points)
        found: Points = in_blocks(self._products, points, directions, size=self.BLOCK)
        return found

    def hessian(self, point: Float[np.ndarray, " param"]) -> Float[np.ndarray, "param param"]:
        """Second derivatives at a point."""
        found = self.products(np.tile(point, (self.size, 1)), np.eye(self.size))
        return (found + found.T) / 2

    def constrain(self, points: Points) -> dict[str, np.ndarray]:
        """Values (point, ...) of the variables."""
        found: dict[str, np.ndarray] = in_blocks(self._constrain, points, size=self.BLOCK)
        return found

    def quantities(self, points: Points) -> dict[str, np.ndarray]:
        """Values (point, ...) of the variables and of what follows from them."""
        found: dict[str, np.ndarray] = in_blocks(self._quantities, points, size=self.BLOCK)
        return found
