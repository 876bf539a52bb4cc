"""A log density over vectors (param,) of the unconstrained space, in nats, with the log Jacobian of the charts."""

from __future__ import annotations

import jax
from jaxtyping import Array, Float, Int

Values = dict[str, jax.Array]
"""Value of every variable, or its coordinates."""
Vector = Float[Array, " param"]
"""Coordinates of all variables in the unconstrained space."""
Rows = Int[Array, " row"] | None
"""Some observations; None for all."""
Terms = Float[Array, " term"]
"""Numbers whose sum is a log likelihood."""
