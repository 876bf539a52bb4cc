"""Protocol of a log density over unconstrained vectors (param,), in nats, with the log Jacobian of the transforms."""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import jax
from jaxtyping import Array, Float, Int

Values = dict[str, jax.Array]  # Value of every variable, or its unconstrained coordinates.
Vector = Float[Array, " param"]  # Coordinates of all variables in the unconstrained space.
Rows = Int[Array, " row"] | None  # Indices of some observations; None for all.
Terms = Float[Array, " term"]  # Numbers whose sum is a log likelihood.


@runtime_checkable
class LogDensity(Protocol):
    """A log density over vectors, made of functions that JAX can differentiate, vectorise and compile.

    Attributes
    ----------
    names : tuple of str
        Names of the variables.
    size : int
        Number of coordinates of a vector.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """The variables."""

    @property
    def size(self) -> int:
        """Number of coordinates of a vector."""

    def constrain(self, vector: Vector) -> Values:
        """Return the value of every variable."""

    def unconstrain(self, values: Mapping[str, Any]) -> Vector:
        """Return the vector of the given values."""

    def log_density(self, vector: Vector) -> Float[Array, ""]:
        """Return the log prior plus the log likelihood of all data."""

    def log_prior(self, vector: Vector) -> Float[Array, ""]:
        """Return the log prior density."""

    def log_likelihood(self, vector: Vector, rows: Rows = None) -> Terms:
        """Return terms whose sum is the log likelihood of all data, or of the observations `rows`."""
