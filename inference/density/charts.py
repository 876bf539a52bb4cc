"""Charts: how a site's coordinates in the unconstrained space become its values.

NumPyro's own chart serves wherever exchanging parts of the value exchanges coordinates. Its chart of a
simplex, stick-breaking, does not: the last of K weights has no coordinate of its own. There, theta = softmax(z) with
as many coordinates as weights. The mean of z has no influence on theta; along the unit vector (1, ..., 1) / sqrt(K),
z is given the density N(0, 1), independent of all else. That adds a variable which nothing depends on: the log
evidence stays as it is, and the ELBO of both variables is one of theta (the divergence can only grow).

Convention: charts act on one point, without leading axes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpyro  # noqa: F401 - whole, before a part of it
from numpyro.distributions import constraints
from numpyro.distributions.transforms import biject_to


@runtime_checkable
class Chart(Protocol):
    """Coordinates of one site."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the coordinates."""

    @property
    def event_shape(self) -> tuple[int, ...]:
        """Of the values."""

    @property
    def support(self) -> Any:
        """NumPyro's constraint on the values."""

    @property
    def exact(self) -> bool:
        """Whether values have one point of coordinates each."""

    def forward(self, z: jax.Array) -> jax.Array:
        """Values."""

    def inverse(self, value: jax.Array) -> jax.Array:
        """Coordinates."""

    def log_jacobian(self, z: jax.Array, value: jax.Array) -> jax.Array:
        """What the log density of the coordinates has beyond that of the values."""


@dataclass(frozen=True)
class Bijection:
    """NumPyro's chart of a site's support, for values of a shape."""

    support: Any
    event_shape: tuple[int, ...]
    exact: bool = True

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the coordinates."""
        return tuple(biject_to(self.support).inverse_shape(self.event_shape))

    def forward(self, z: jax.Array) -> jax.Array:
        """Values."""
        return biject_to(self.support)(z)

    def inverse(self, value: jax.Array) -> jax.Array:
        """Coordinates."""
        return biject_to(self.support).inv(value)

    def log_jacobian(self, z: jax.Array, value: jax.Array) -> jax.Array:
        """Log determinant of the chart."""
        return jnp.sum(biject_to(self.support).log_abs_det_jacobian(z, value))


@dataclass(frozen=True)
class Softmax:
    """A simplex along the last axis, with a coordinate for every weight.

    Attributes
    ----------
    shape : tuple of int
        Of the values and of the coordinates.
    """

    shape: tuple[int, ...]
    exact: bool = False

    @property
    def support(self) -> Any:
        """NumPyro's constraint on the values."""
        return constraints.simplex

    @property
    def event_shape(self) -> tuple[int, ...]:
        """Of the values."""
        return self.shape

    def forward(self, z: jax.Array) -> jax.Array:
        """Values."""
        return jax.nn.softmax(z, axis=-1)

    def inverse(self, value: jax.Array) -> jax.Array:
        """Coordinates, with mean zero."""
        z = jnp.log(value)
        return z - jnp.mean(z, axis=-1, keepdims=True)

    def log_jacobian(self, z: jax.Array, value: jax.Array) -> jax.Array:
        """Sum log theta + (log K) / 2 of the coordinates that sum to zero, and the density of their mean."""
        size = self.shape[-1]
        along = jnp.sum(z, axis=-1) / math.sqrt(size)
        mean = -0.5 * along**2 - 0.5 * math.log(2 * math.pi)
        simplex = jnp.sum(jax.nn.log_softmax(z, axis=-1), axis=-1) + 0.5 * math.log(size)
        return jnp.sum(mean + simplex)


def is_simplex(support: Any) -> bool:
    """Whether values are weights that sum to one along the last axis."""
    while isinstance(support, constraints.independent):
        support = support.base_constraint
    return support is constraints.simplex
