"""What every family of approximations can do, in the unconstrained space.

A family draws z = loc + (its scale) eps from standard normal eps, knows its entropy and its log density anywhere, and,
where it factorises over the parts of a block, which part of a draw has which log density under which part's
distribution. Log density and entropy are complete, in nats.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Protocol, runtime_checkable

import jax
import jax.numpy as jnp

from onebasin.base.errors import ArgumentError

from ...mutual_information import LogRatios
from ..layout import Columns

Parameters = dict[str, jax.Array]

LOG_2PI = math.log(2 * math.pi)


@runtime_checkable
class Family(Protocol):
    """What every family can do."""

    @property
    def factorises(self) -> bool:
        """Whether it is independent over the parts of every block."""

    @property
    def noise(self) -> int:
        """Standard normal numbers of a draw."""

    def initial(self, loc: jax.Array, scale: float) -> Parameters:
        """Parameters of about N(loc, scale^2 I)."""

    def transform(self, p: Parameters, eps: jax.Array) -> jax.Array:
        """Draws (sample, param) from eps (sample, noise)."""

    def entropy(self, p: Parameters) -> jax.Array:
        """Entropy."""

    def log_density(self, p: Parameters, points: jax.Array) -> jax.Array:
        """Log densities (sample,) of points (sample, param)."""

    def ratios(self, p: Parameters, draws: jax.Array, columns: Columns) -> LogRatios:
        """Log densities of parts under each other's distributions."""

    def describe(self, p: Parameters) -> dict[str, tuple[tuple[str, ...], jax.Array]]:
        """Parameters under their names in files, with their axes."""

    def restore(self, described: Mapping[str, jax.Array]) -> Parameters:
        """Parameters from what `describe` names."""


def sample(family: Family, p: Parameters, key: jax.Array, num: int) -> jax.Array:
    """Draws (sample, param)."""
    return family.transform(p, jax.random.normal(key, (num, family.noise), p["loc"].dtype))


def standard_normal(eps: jax.Array, log_determinant: jax.Array) -> jax.Array:
    """Log density of draws (sample, param) from the standard normal numbers behind them."""
    constant = log_determinant + 0.5 * eps.shape[-1] * LOG_2PI
    return -0.5 * jnp.sum(eps * eps, axis=-1) - constant


def lower_triangle(lower: jax.Array) -> jax.Array:
    """Cholesky factors from matrices (..., k, k) that hold the log of their diagonal."""
    diagonal = jnp.exp(jnp.diagonal(lower, axis1=-2, axis2=-1))
    eye = jnp.eye(lower.shape[-1], dtype=lower.dtype)
    return jnp.tril(lower, -1) + diagonal[..., None] * jnp.broadcast_to(eye, lower.shape)


def log_diagonal(scale: jax.Array) -> jax.Array:
    """What `lower_triangle` takes, from Cholesky factors."""
    diagonal = jnp.diagonal(scale, axis1=-2, axis2=-1)
    eye = jnp.broadcast_to(jnp.eye(scale.shape[-1], dtype=scale.dtype), scale.shape)
    return jnp.tril(scale, -1) + jnp.log(diagonal)[..., None] * eye


def couples(family: str) -> ValueError:
    """What a family that couples the components answers to whoever asks for their distributions."""
    return ArgumentError(
        f"`family` is {family!r}, which couples the parts, so that they have no distributions of their own. Use "
        "mutual_information='infonce', or family='meanfield'."
    )
