"""A log density over vectors (param,) of the unconstrained space, in nats, with the log Jacobian of the charts."""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import jax
from jaxtyping import Array, Float, Int

Values = dict[str, jax.Array]  # Value of every variable, or its coordinates.
Vector = Float[Array, " param"]  # Coordinates of all variables in the unconstrained space.
Rows = Int[Array, " row"] | None  # Some observations; None for all.
Terms = Float[Array, " term"]  # Numbers whose sum is a log likelihood.


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

    def constrain(self, vector: Vector) -> Values:
        """Value of every variable."""

    def unconstrain(self, values: Mapping[str, Any]) -> Vector:
        """The vector of values."""

    def log_density(self, vector: Vector) -> Float[Array, ""]:
        """Log prior plus log likelihood of all data."""

    def log_prior(self, vector: Vector) -> Float[Array, ""]:
        """Log prior density."""

    def log_likelihood(self, vector: Vector, rows: Rows = None) -> Terms:
        """Terms whose sum is the log likelihood of all data, or of some observations."""
