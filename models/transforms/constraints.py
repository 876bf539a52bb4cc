"""The sets that the charts of `models.transforms.transforms` map to, as NumPyro constraints.

Three of them are the same set, matrices with unit-norm columns; each names the chart that a sampler
moves in, since NumPyro looks up the transform by the constraint's type.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpyro  # noqa: F401 - whole, before a part of it
from numpyro.distributions import constraints


class UnitColumnsConstraint(constraints.ParameterFreeConstraint):
    """Matrices (in, hidden) whose columns have Euclidean norm 1."""

    event_dim = 2

    def __call__(self, x: jax.Array) -> jax.Array:
        """Tell whether every column's squared norm is 1 but for rounding."""
        tolerance = 10 * jnp.finfo(x.dtype).eps * x.shape[-2]
        return jnp.all(jnp.abs(jnp.sum(x * x, -2) - 1) < tolerance, axis=-1)

    def feasible_like(self, prototype: jax.Array) -> jax.Array:
        """Return the matrix whose columns all are the first unit vector."""
        return jnp.zeros_like(prototype).at[..., 0, :].set(1.0)


class GivensColumns(UnitColumnsConstraint):
    """Unit-norm columns, to be sampled in the Givens chart."""


class SeamlessGivensColumns(UnitColumnsConstraint):
    """Unit-norm columns, to be sampled in the Givens chart without a seam."""


class UnitVectorColumns(UnitColumnsConstraint):
    """Unit-norm columns, to be sampled as normalised Gaussians."""


givens_columns = GivensColumns()
seamless_givens_columns = SeamlessGivensColumns()
unit_vector_columns = UnitVectorColumns()
