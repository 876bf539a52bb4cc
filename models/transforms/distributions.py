"""Prior distributions on constrained weights and biases.

Both are restrictions of the independent normal prior to a constrained set, normalised there.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln
from numpyro import distributions as dist
from numpyro.distributions import constraints

from .transforms import UNIT_COLUMN_CHARTS


class UnitColumns(dist.Distribution):
    """Matrices (in, hidden) with independent columns, each uniform on the unit sphere.

    A normal prior N(0, s^2) restricted to unit vectors is this distribution for every s, since its
    density is constant on the sphere. The density is with respect to area. `in_dim` is at least 2;
    `chart`, one of `UNIT_COLUMN_CHARTS`, names the coordinates that a sampler moves in.
    """

    pytree_aux_fields = ("chart",)

    def __init__(self, in_dim: int, hidden_dim: int, chart: str) -> None:
        self.chart = chart
        super().__init__(event_shape=(in_dim, hidden_dim), validate_args=False)

    @property
    def support(self) -> constraints.Constraint:
        """The set of unit-norm columns, tagged with the chart."""
        return UNIT_COLUMN_CHARTS[self.chart].codomain

    def sample(self, key: jax.Array, sample_shape: tuple[int, ...] = ()) -> jax.Array:
        """Normalised Gaussian columns."""
        z = jax.random.normal(key, sample_shape + self.event_shape)
        return z / jnp.linalg.norm(z, axis=-2, keepdims=True)

    def log_prob(self, value: jax.Array) -> jax.Array:
        """Minus the log area of the spheres: a constant."""
        in_dim, hidden_dim = self.event_shape
        log_area = math.log(2) + in_dim / 2 * math.log(math.pi) - gammaln(in_dim / 2.0)
        return jnp.broadcast_to(-hidden_dim * log_area, jnp.shape(value)[:-2])


class OrderedNormal(dist.Distribution):
    """Independent N(0, scale^2) entries, given that they increase: b(1) < b(2) < ... < b(H).

    Pourzanjani et al. 2017, section 3.1. Sampled through the logarithms of the differences
    (NumPyro's `OrderedTransform`). `scale` is the standard deviation before ordering, `size` is H.
    """

    support = constraints.ordered_vector
    pytree_data_fields = ("scale",)

    def __init__(self, scale: float, size: int) -> None:
        self.scale = scale
        super().__init__(event_shape=(size,), validate_args=False)

    def sample(self, key: jax.Array, sample_shape: tuple[int, ...] = ()) -> jax.Array:
        """Sorted normal draws."""
        z = jax.random.normal(key, sample_shape + self.event_shape)
        return self.scale * jnp.sort(z, axis=-1)

    def log_prob(self, value: jax.Array) -> jax.Array:
        """Sum of normal log densities plus log H!, the number of orders that were excluded."""
        return jnp.sum(dist.Normal(0.0, self.scale).log_prob(value), -1) + gammaln(
            self.event_shape[0] + 1.0
        )
