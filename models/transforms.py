r"""Charts of unit-norm weight columns, as NumPyro transforms.

A weight matrix W (in, hidden) whose columns are unit vectors lives on a product of spheres. Each chart maps
an unconstrained array to such a matrix; its `log_abs_det_jacobian` is the log density, on the
unconstrained space, that makes the columns uniform on their spheres when nothing else is said (up to a constant).

`GivensTransform` is the chart of Pourzanjani et al. 2017, section 3.2: from K - 1 angles a column,

    w_1 = cos t_1 cos t_2 ... cos t_{K-1},   w_{i+1} = sin t_i cos t_{i+1} ... cos t_{K-1},

with the longitude t_1 in (-pi, pi), the latitudes t_i in (-pi/2, pi/2), and the log area element
sum_i (i - 1) log cos t_i. Being a bijection, its Jacobian is a true one.

The open interval of the longitude has a seam: two neighbouring unit vectors on either side of +-pi are
infinitely far apart in the unconstrained space, so a posterior that touches the seam is split into two modes.
`SeamlessGivensTransform` gives the longitude as the direction of a point of the plane instead; `UnitVectorTransform`
normalises a Gaussian vector, as Stan's `unit_vector` does. Both carry one redundant radius a column, whose own
density is independent of the unit vector, so the posterior of W is the same in every chart.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float
from numpyro.distributions import biject_to, constraints
from numpyro.distributions.transforms import ParameterFreeTransform

RADIUS_SD = 0.25
"""Spread of the seamless chart's redundant radius about 1. Narrow enough to keep away from the origin, where the
angle is undefined (4 sd), wide enough not to force a smaller step size than the weights do."""


class _UnitColumns(constraints.ParameterFreeConstraint):
    """Matrices (in, hidden) whose columns have Euclidean norm 1."""

    event_dim = 2

    def __call__(self, x: jax.Array) -> jax.Array:
        tolerance = 10 * jnp.finfo(x.dtype).eps * x.shape[-2]
        return jnp.all(jnp.abs(jnp.sum(x * x, -2) - 1) < tolerance, axis=-1)

    def feasible_like(self, prototype: jax.Array) -> jax.Array:
        return jnp.zeros_like(prototype).at[..., 0, :].set(1.0)


class _GivensColumns(_UnitColumns):
    """Unit-norm columns, to be sampled in the Givens chart."""


class _SeamlessGivensColumns(_UnitColumns):
    """Unit-norm columns, to be sampled in the Givens chart without a seam."""


class _UnitVectorColumns(_UnitColumns):
    """Unit-norm columns, to be sampled as normalised Gaussians."""


class _Angles(constraints.ParameterFreeConstraint):
    """Angles (in - 1, hidden): row 0 in (-pi, pi), the others in (-pi/2, pi/2)."""

    event_dim = 2

    def __call__(self, x: jax.Array) -> jax.Array:
        return jnp.all(jnp.abs(x) < _half_widths(x.shape[-2])[:, None], axis=(-2, -1))

    def feasible_like(self, prototype: jax.Array) -> jax.Array:
        return jnp.zeros_like(prototype)


angles = _Angles()
givens_columns = _GivensColumns()
seamless_givens_columns = _SeamlessGivensColumns()
unit_vector_columns = _UnitVectorColumns()


def _half_widths(num_angles: int) -> jax.Array:
    """Half the range of each angle of a column, the longitude first."""
    return jnp.full(num_angles, math.pi / 2).at[0].set(math.pi)


def _columns_from_parts(cos: jax.Array, sin: jax.Array) -> jax.Array:
    """Unit columns from the cosines and sines (in - 1, hidden) of their angles."""
    ones = jnp.ones_like(cos[..., :1, :])
    # tails[i] = cos t_{i+1} ... cos t_{K-1}, the product that is still to come.
    tails = jnp.concatenate([jnp.flip(jnp.cumprod(jnp.flip(cos, -2), -2), -2), ones], -2)
    return tails * jnp.concatenate([ones, sin], -2)


def _latitude_log_density(latitudes: jax.Array) -> jax.Array:
    """Sum_i (i - 1) log cos t_i over the latitudes t_2, t_3, ..., as (..., latitude, hidden)."""
    powers = jnp.arange(1, latitudes.shape[-2] + 1, dtype=latitudes.dtype)
    return powers[:, None] * jnp.log(jnp.cos(latitudes))


def _interval(x: jax.Array, half_width: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Map reals to (-half_width, half_width) by the logistic function; value and log derivative."""
    value = half_width * jnp.tanh(x / 2)
    log_derivative = jnp.log(2 * half_width) + jax.nn.log_sigmoid(x) + jax.nn.log_sigmoid(-x)
    return value, log_derivative


def _interval_inverse(y: jax.Array, half_width: jax.Array) -> jax.Array:
    return 2 * jnp.arctanh(y / half_width)


class _ColumnTransform(ParameterFreeTransform):
    """What the charts share: matrices of columns, one independent chart a column."""

    extra_rows = 0
    """Rows of the unconstrained array minus rows of W."""

    def forward_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return (*shape[:-2], shape[-2] - self.extra_rows, shape[-1])

    def inverse_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return (*shape[:-2], shape[-2] + self.extra_rows, shape[-1])


class AnglesTransform(_ColumnTransform):
    """From reals (in - 1, hidden) to a longitude and latitudes a column, by scaled logistic functions."""

    domain = constraints.real_matrix
    codomain = angles

    def __call__(self, x: Float[Array, "*batch angle hidden"]) -> jax.Array:
        return _interval(x, _half_widths(x.shape[-2])[:, None])[0]

    def _inverse(self, y: Float[Array, "*batch angle hidden"]) -> jax.Array:
        return _interval_inverse(y, _half_widths(y.shape[-2])[:, None])

    def log_abs_det_jacobian(
        self, x: jax.Array, y: jax.Array, intermediates: object = None
    ) -> jax.Array:
        return jnp.sum(_interval(x, _half_widths(x.shape[-2])[:, None])[1], (-2, -1))


class GivensTransform(_ColumnTransform):
    """From angles (in - 1, hidden) to unit-norm columns (in, hidden); Pourzanjani et al. 2017, section 3.2."""

    domain = angles
    codomain = givens_columns
    extra_rows = -1

    def __call__(self, x: Float[Array, "*batch angle hidden"]) -> jax.Array:
        return _columns_from_parts(jnp.cos(x), jnp.sin(x))

    def _inverse(self, y: Float[Array, "*batch in hidden"]) -> jax.Array:
        longitude = jnp.arctan2(y[..., 1:2, :], y[..., :1, :])
        # The latitude t_i is the elevation of component i + 1 over the span of those before it.
        before = jnp.sqrt(jnp.cumsum(y * y, -2))[..., 1:-1, :]
        return jnp.concatenate([longitude, jnp.arctan2(y[..., 2:, :], before)], -2)

    def log_abs_det_jacobian(
        self, x: jax.Array, y: jax.Array, intermediates: object = None
    ) -> jax.Array:
        return jnp.sum(_latitude_log_density(x[..., 1:, :]), (-2, -1))


class UnconstrainedGivensTransform(_ColumnTransform):
    """Reals (in - 1, hidden) to unit-norm columns: `AnglesTransform`, then `GivensTransform`."""

    domain = constraints.real_matrix
    codomain = givens_columns
    extra_rows = -1

    def __call__(self, x: Float[Array, "*batch angle hidden"]) -> jax.Array:
        return GivensTransform()(AnglesTransform()(x))

    def _inverse(self, y: Float[Array, "*batch in hidden"]) -> jax.Array:
        return AnglesTransform()._inverse(GivensTransform()._inverse(y))

    def log_abs_det_jacobian(
        self, x: jax.Array, y: jax.Array, intermediates: object = None
    ) -> jax.Array:
        theta, log_derivative = _interval(x, _half_widths(x.shape[-2])[:, None])
        return jnp.sum(log_derivative, (-2, -1)) + jnp.sum(
            _latitude_log_density(theta[..., 1:, :]), (-2, -1)
        )


class SeamlessGivensTransform(_ColumnTransform):
    """Reals (in, hidden) to unit-norm columns; the longitude is the direction of the first two rows.

    Rows 0 and 1 are a point of the plane in polar form, with density proportional to
    exp(-(r - 1)^2 / (2 RADIUS_SD^2)); rows 2 and on are the latitudes of `UnconstrainedGivensTransform`. The
    inverse returns the point with r = 1. `log_abs_det_jacobian` includes the radius' density, without its constant.
    """

    domain = constraints.real_matrix
    codomain = seamless_givens_columns

    def __call__(self, x: Float[Array, "*batch in hidden"]) -> jax.Array:
        plane = x[..., :2, :]
        direction = plane / jnp.linalg.norm(plane, axis=-2, keepdims=True)
        latitudes, _ = _interval(x[..., 2:, :], jnp.asarray(math.pi / 2, x.dtype))
        cos = jnp.concatenate([direction[..., :1, :], jnp.cos(latitudes)], -2)
        sin = jnp.concatenate([direction[..., 1:, :], jnp.sin(latitudes)], -2)
        return _columns_from_parts(cos, sin)

    def _inverse(self, y: Float[Array, "*batch in hidden"]) -> jax.Array:
        theta = GivensTransform()._inverse(y)
        longitude, latitudes = theta[..., :1, :], theta[..., 1:, :]
        rest = _interval_inverse(latitudes, jnp.asarray(math.pi / 2, y.dtype))
        return jnp.concatenate([jnp.cos(longitude), jnp.sin(longitude), rest], -2)

    def log_abs_det_jacobian(
        self, x: jax.Array, y: jax.Array, intermediates: object = None
    ) -> jax.Array:
        radius = jnp.linalg.norm(x[..., :2, :], axis=-2)
        latitudes, log_derivative = _interval(
            x[..., 2:, :], jnp.asarray(math.pi / 2, x.dtype)
        )
        return (
            jnp.sum(-0.5 * ((radius - 1) / RADIUS_SD) ** 2, -1)
            + jnp.sum(log_derivative, (-2, -1))
            + jnp.sum(_latitude_log_density(latitudes), (-2, -1))
        )


class UnitVectorTransform(_ColumnTransform):
    """Reals (in, hidden) to unit-norm columns, by normalising each column.

    The same chart as Stan's `unit_vector`: an independent standard normal vector is normalised, and its density
    stands in the place of the Jacobian, which does not exist. The inverse returns the column itself (r = 1).
    """

    domain = constraints.real_matrix
    codomain = unit_vector_columns

    def __call__(self, x: Float[Array, "*batch in hidden"]) -> jax.Array:
        return x / jnp.linalg.norm(x, axis=-2, keepdims=True)

    def _inverse(self, y: Float[Array, "*batch in hidden"]) -> jax.Array:
        return y

    def log_abs_det_jacobian(
        self, x: jax.Array, y: jax.Array, intermediates: object = None
    ) -> jax.Array:
        return -0.5 * jnp.sum(x * x, (-2, -1))


@biject_to.register(_GivensColumns)
def _(constraint: _GivensColumns) -> UnconstrainedGivensTransform:
    return UnconstrainedGivensTransform()


@biject_to.register(_SeamlessGivensColumns)
def _(constraint: _SeamlessGivensColumns) -> SeamlessGivensTransform:
    return SeamlessGivensTransform()


@biject_to.register(_UnitVectorColumns)
def _(constraint: _UnitVectorColumns) -> UnitVectorTransform:
    return UnitVectorTransform()


@biject_to.register(_Angles)
def _(constraint: _Angles) -> AnglesTransform:
    return AnglesTransform()
