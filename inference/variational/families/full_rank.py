"""A multivariate normal, which couples all coordinates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float

from ...mutual_information import LogRatios
from ..layout import Columns
from .base import LOG_2PI, Parameters, couples, log_diagonal, lower_triangle, standard_normal


@dataclass(frozen=True)
class FullRank:
    """A multivariate normal; `loc` (param,) and `lower` (param, param), a Cholesky factor with a log diagonal."""

    size: int
    factorises: bool = False

    @property
    def noise(self) -> int:
        """Standard normal numbers of a draw."""
        return self.size

    def initial(self, loc: Float[Array, " param"], scale: float) -> Parameters:
        """Parameters of N(loc, scale^2 I)."""
        return {"loc": loc, "lower": jnp.diag(jnp.full_like(loc, math.log(scale)))}

    def transform(
        self, p: Parameters, eps: Float[Array, "sample param"]
    ) -> Float[Array, "sample param"]:
        """Draws from standard normal ones."""
        return p["loc"][None, :] + eps @ lower_triangle(p["lower"]).T

    def entropy(self, p: Parameters) -> Float[Array, ""]:
        """Entropy."""
        return jnp.trace(p["lower"]) + 0.5 * self.size * (1 + LOG_2PI)

    def log_density(
        self, p: Parameters, points: Float[Array, "sample param"]
    ) -> Float[Array, " sample"]:
        """Log densities."""
        centred = points - p["loc"][None, :]
        eps = solve_triangular(lower_triangle(p["lower"]), centred.T, lower=True).T
        return standard_normal(eps, jnp.trace(p["lower"]))

    def ratios(
        self, p: Parameters, draws: Float[Array, "draw param"], columns: Columns
    ) -> LogRatios:
        """There are none."""
        raise couples("fullrank")

    def describe(self, p: Parameters) -> dict[str, tuple[tuple[str, ...], jax.Array]]:
        """Parameters under the names of docs/reference/posterior.md."""
        return {
            "loc": (("param",), p["loc"]),
            "scale_tril": (("param", "param_bis"), lower_triangle(p["lower"])),
        }

    def restore(self, described: Mapping[str, jax.Array]) -> Parameters:
        """Parameters from what `describe` names."""
        return {"loc": described["loc"], "lower": log_diagonal(described["scale_tril"])}
