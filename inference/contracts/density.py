"""A log density over vectors (param,) of the unconstrained space, in nats, with the log Jacobian of the charts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import jax
from jaxtyping import Array, Float, Int

Values = dict[str, jax.Array]
"""Value of every variable, or its coordinates."""


@runtime_checkable
class LogDensity(Protocol):
    """A log density over vectors, in functions that JAX can differentiate, vectorise and compile.

    Attributes
    ----------
    names : tuple of str
        The variables.
    size : int
        Coordinates of a vector.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """The variables."""

    @property
    def size(self) -> int:
        """Coordinates of a vector."""

    def constrain(self, vector: Float[Array, " param"]) -> Values:
        """Value of every variable."""

    def unconstrain(self, values: Mapping[str, Any]) -> Float[Array, " param"]:
        """The vector of values."""

    def log_density(self, vector: Float[Array, " param"]) -> Float[Array, ""]:
        """Log prior plus log likelihood of all data."""

    def log_prior(self, vector: Float[Array, " param"]) -> Float[Array, ""]:
        """Log prior density."""

    def log_likelihood(
        self, vector: Float[Array, " param"], rows: Int[Array, " row"] | None = None
    ) -> Float[Array, " term"]:
        """Terms whose sum is the log likelihood of all data, or of some observations."""
