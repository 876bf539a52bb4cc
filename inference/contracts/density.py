"""The contract of a log density, for all methods.

Vectors (param,) are points of the unconstrained space. Log densities over vectors have the log Jacobian of the charts
in them, those over values have not; both are in nats.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import jax
import numpy as np
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


@runtime_checkable
class ValueDensity(Protocol):
    """A log density over values, which both engines have."""

    @property
    def names(self) -> tuple[str, ...]:
        """The variables."""

    @property
    def derived(self) -> tuple[str, ...]:
        """Quantities that follow from the variables."""

    def derived_at(self, values: Mapping[str, Any], seed: int) -> dict[str, np.ndarray]:
        """Return the derived quantities at points (point, ...); `seed` is that of random quantities among them."""

    def points(self, count: int, seed: int) -> dict[str, np.ndarray]:
        """Points to try, uniform within +-2 in the unconstrained space: name to array (point, ...)."""

    def log_density(self, values: Mapping[str, Any]) -> Float[np.ndarray, " point"]:
        """Log density at points (point, ...), up to one constant; -inf outside the support."""

    def log_likelihood(self, values: Mapping[str, Any]) -> Float[np.ndarray, " point"] | None:
        """Log likelihood of all data at points (point, ...); None from an engine that does not tell it apart."""
