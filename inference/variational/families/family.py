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

from ...mutual_information import LogRatios
from ..gaussian import Parameters
from ..layout import Columns

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


def standard_normal(eps: jax.Array, log_determinant: jax.Array) -> jax.Array:
    """Log density of draws (sample, param) from the standard normal numbers behind them."""
    constant = log_determinant + 0.5 * eps.shape[-1] * LOG_2PI
    return -0.5 * jnp.sum(eps * eps, axis=-1) - constant
