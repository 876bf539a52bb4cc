"""A log density over values, in nats, without a Jacobian; nothing of it needs JAX."""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float


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
