"""Log densities in nats, as methods meet them.

Over vectors (param,) of the unconstrained space they have the log Jacobian of the charts; over values they have none,
and nothing needs JAX.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import jax
import numpy as np
from jaxtyping import Array, Float, Int

Values = dict[str, jax.Array]
"""Value of every variable, or its coordinates."""
Vector = Float[Array, " param"]
"""Coordinates of all variables in the unconstrained space."""
Rows = Int[Array, " row"] | None
"""Some observations; None for all."""
Terms = Float[Array, " term"]
"""Numbers whose sum is a log likelihood."""


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
