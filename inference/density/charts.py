"""Charts: transforms between a variable's unconstrained coordinates and its values, in NumPyro and in Stan.

NumPyro's own chart is used if exchanging entries of the value exchanges coordinates. Its chart of a simplex,
stick-breaking, does not have this property: the last of K weights has no coordinate. Such a simplex gets theta =
softmax(z), with one coordinate per weight. The mean of z has no influence on theta. Along the unit vector (1, ..., 1)
/ sqrt(K), z therefore gets the density N(0, 1), independent of everything else. This leaves the log evidence
unchanged, and the joint ELBO is also an ELBO of theta, because the divergence can only grow.

If a parameter of a Stan program is an array of matrices, the names of its coordinates are not in the order of its
vector. In the vector, array indices vary row by row, and only the last two axes column by column. In the names, all
axes vary column by column. Changing one coordinate shows which order the vector has.

Charts act on one point, without leading axes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro  # noqa: F401 - import all of NumPyro before a part of it
from jaxtyping import Int
from numpy.typing import ArrayLike
from numpyro.distributions import constraints
from numpyro.distributions.transforms import biject_to

from ..contracts.density import Values, Vector


class Coordinates:
    """A vector that joins the coordinates of all variables, one variable after another."""

    charts: Mapping[str, Any]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the variables, in the order of declaration."""
        return tuple(self.charts)

    @property
    def order(self) -> Sequence[str]:
        """Names of the variables, in the order of the vector."""
        return self.names

    @property
    def size(self) -> int:
        """Number of coordinates of a vector."""
        return sum(math.prod(chart.shape) for chart in self.charts.values())

    def unravel(self, vector: Vector) -> Values:
        """Split a vector into the coordinates of every variable."""
        ends = np.cumsum([math.prod(self.charts[name].shape) for name in self.order])
        parts = jnp.split(vector, ends[:-1])
        each = zip(self.order, parts, strict=True)
        return {name: part.reshape(self.charts[name].shape) for name, part in each}

    def ravel(self, coordinates: Mapping[str, Any]) -> Vector:
        """Join the coordinates of every variable to a vector."""
        return jnp.concatenate([jnp.ravel(coordinates[name]) for name in self.order])

    def places(self) -> dict[str, np.ndarray]:
        """Return the positions in the vector of every variable's coordinates."""
        places, first = {}, 0
        for name in self.order:
            shape = self.charts[name].shape
            size = math.prod(shape)
            places[name] = np.arange(first, first + size).reshape(shape)
            first += size
        return places


@dataclass(frozen=True)
class Bijection:
    """NumPyro's chart of a site's support, for values of one shape."""

    support: Any
    event_shape: tuple[int, ...]
    exact: bool = True

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the coordinates."""
        return tuple(biject_to(self.support).inverse_shape(self.event_shape))

    def forward(self, z: jax.Array) -> jax.Array:
        """Values."""
        return biject_to(self.support)(z)

    def inverse(self, value: jax.Array) -> jax.Array:
        """Coordinates."""
        return biject_to(self.support).inv(value)

    def log_jacobian(self, z: jax.Array, value: jax.Array) -> jax.Array:
        """Return the log determinant of the chart's Jacobian."""
        return jnp.sum(biject_to(self.support).log_abs_det_jacobian(z, value))


@dataclass(frozen=True)
class Softmax:
    """A chart of a simplex along the last axis, with one coordinate per weight."""

    shape: tuple[int, ...]  # Shape of the values and of the coordinates.
    exact: bool = False
    support = constraints.simplex

    @property
    def event_shape(self) -> tuple[int, ...]:
        """The shape of the values."""
        return self.shape

    def forward(self, z: jax.Array) -> jax.Array:
        """Values."""
        return jax.nn.softmax(z, axis=-1)

    def inverse(self, value: jax.Array) -> jax.Array:
        """Return coordinates with mean zero."""
        z = jnp.log(value)
        return z - jnp.mean(z, axis=-1, keepdims=True)

    def log_jacobian(self, z: jax.Array, value: jax.Array) -> jax.Array:
        """Return the sum of log theta, plus (log K) / 2, plus the log density of the coordinates' mean."""
        size = self.shape[-1]
        along = jnp.sum(z, axis=-1) / math.sqrt(size)
        mean = -0.5 * along**2 - 0.5 * math.log(2 * math.pi)
        simplex = jnp.sum(jax.nn.log_softmax(z, axis=-1), axis=-1) + 0.5 * math.log(size)
        return jnp.sum(mean + simplex)


def is_simplex(support: Any) -> bool:
    """Return whether a support consists of weights that sum to one along the last axis."""
    while isinstance(support, constraints.independent):
        support = support.base_constraint
    return support is constraints.simplex


Constrain = Callable[[np.ndarray], Mapping[str, np.ndarray]]
"""A function that maps a vector to the values of all parameters."""

CLOSE = 1e-9  # Tolerance when two implementations of a chart are compared.


@dataclass(frozen=True)
class StanChart:
    """Stan's chart of one parameter."""

    shape: tuple[int, ...]
    event_shape: tuple[int, ...]
    places: Int[np.ndarray, ...]  # Position of each coordinate in Stan's vector.
    simplex: Chart | None = None  # The same chart in JAX, if the values are simplexes.
    exact: bool = True

    @property
    def support(self) -> Any:
        """NumPyro's constraint on the values, if it is a simplex."""
        return None if self.simplex is None else constraints.simplex


@dataclass(frozen=True)
class LogRatio:
    """Stan's simplex since version 2.37: theta = softmax(V y), where V has orthonormal columns that sum to zero.

    This is the isometric log ratio (Egozcue et al. 2003) in pivot coordinates.
    """

    event_shape: tuple[int, ...]
    exact: bool = True
    support = constraints.simplex

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the coordinates."""
        return (*self.event_shape[:-1], self.event_shape[-1] - 1)

    def forward(self, z: jax.Array) -> jax.Array:
        """Values."""
        return jax.nn.softmax(z @ self._columns().T, axis=-1)

    def inverse(self, value: jax.Array) -> jax.Array:
        """Coordinates."""
        coordinates: jax.Array = jnp.log(value) @ self._columns()
        return coordinates

    def log_jacobian(self, z: jax.Array, value: jax.Array) -> jax.Array:
        """Return the log determinant of the Jacobian: the sum of log theta, plus (log K) / 2."""
        del z
        return jnp.sum(jnp.sum(jnp.log(value), axis=-1) + 0.5 * math.log(self.event_shape[-1]))

    def _columns(self) -> np.ndarray:
        size = self.event_shape[-1]
        columns = np.zeros((size, size - 1))
        for i in range(1, size):
            columns[:i, i - 1] = 1 / math.sqrt(i * (i + 1))
            columns[i, i - 1] = -i / math.sqrt(i * (i + 1))
        return columns


Chart = Bijection | Softmax | LogRatio
"""Chart of one variable, in JAX functions; `log_jacobian` is added to the log density."""


def charts_of(
    names: Sequence[str], shapes: Mapping[str, tuple[int, ...]], constrain: Constrain
) -> dict[str, StanChart]:
    """Make the charts of all parameters from the names of a program's coordinates and its function `constrain`.

    `shapes` maps parameters to the shape of their values, in the program's order.
    """
    point = np.random.default_rng(0).normal(size=len(names))
    values = constrain(point)
    # Zero-based indices of every parameter's coordinates. Coordinates without plain indices are numbered.
    indices: dict[str, list[tuple[int, ...]]] = {}
    for name in names:
        variable, *words = name.split(".")
        own = indices.setdefault(variable.partition(":")[0], [])
        plain = all(word.isdecimal() for word in words)
        own.append(tuple(int(word) - 1 for word in words) if plain else (len(own),))
    charts: dict[str, StanChart] = {}
    first = 0
    for name, event_shape in shapes.items():
        own = indices.get(name, [])
        shape = _box(own)
        order = np.arange(first, first + len(own))
        if len(shape) > 1 and len(own) > 1:
            nudged = point.copy()
            nudged[first + 1] += 1.0
            # The order is by column if the second coordinate changes another row than the first.
            moved = ~np.isclose(values[name], constrain(nudged)[name], rtol=0, atol=0)
            by_column = bool((np.argwhere(moved)[:, len(shape) - 2] > 0).any())
            if by_column:
                order = order.reshape(*shape[:-2], shape[-1], shape[-2]).swapaxes(-1, -2)
        places = order.reshape(shape)
        simplex = _simplex(event_shape, shape, point[places], values[name])
        charts[name] = StanChart(shape, event_shape, places, simplex)
        first += len(own)
    return charts


def _box(indices: list[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the shape that indices fill, or a single axis if they do not fill a box."""
    if not indices:
        return (0,)
    if len({len(index) for index in indices}) == 1:
        shape = tuple(1 + max(axis) for axis in zip(*indices, strict=True))
        if math.prod(shape) == len(set(indices)):
            return shape
    return (len(indices),)


def _simplex(
    event_shape: tuple[int, ...], shape: tuple[int, ...], coordinates: ArrayLike, values: ArrayLike
) -> Chart | None:
    """Return the JAX chart that reproduces the program's simplexes; None if no known chart does."""
    if not event_shape or event_shape[-1] < 2 or shape != (*event_shape[:-1], event_shape[-1] - 1):
        return None
    known: tuple[Chart, ...] = (LogRatio(event_shape), Bijection(constraints.simplex, event_shape))
    for chart in known:
        if np.allclose(chart.forward(jnp.asarray(coordinates)), values, rtol=CLOSE, atol=CLOSE):
            return chart
    return None
