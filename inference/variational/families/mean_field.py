"""Independent normals: the family that factorises over everything."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...mutual_information import LogRatios
from ...mutual_information.pairwise import mean_field
from ..layout import Columns
from .base import LOG_2PI, Parameters, standard_normal


@dataclass(frozen=True)
class MeanField:
    """Independent normals; parameters `loc` and `log_scale`, both (param,)."""

    size: int
    factorises: bool = True

    @property
    def noise(self) -> int:
        """Standard normal numbers of a draw."""
        return self.size

    def initial(self, loc: Float[Array, " param"], scale: float) -> Parameters:
        """Parameters of N(loc, scale^2 I)."""
        return {"loc": loc, "log_scale": jnp.full_like(loc, math.log(scale))}

    def transform(
        self, p: Parameters, eps: Float[Array, "sample param"]
    ) -> Float[Array, "sample param"]:
        """Draws from standard normal ones."""
        return p["loc"][None, :] + jnp.exp(p["log_scale"])[None, :] * eps

    def entropy(self, p: Parameters) -> Float[Array, ""]:
        """Entropy."""
        return jnp.sum(p["log_scale"]) + 0.5 * self.size * (1 + LOG_2PI)

    def log_density(
        self, p: Parameters, points: Float[Array, "sample param"]
    ) -> Float[Array, " sample"]:
        """Log densities."""
        eps = (points - p["loc"][None, :]) * jnp.exp(-p["log_scale"])[None, :]
        return standard_normal(eps, jnp.sum(p["log_scale"]))

    def ratios(
        self, p: Parameters, draws: Float[Array, "draw param"], columns: Columns
    ) -> LogRatios:
        """Log densities of components under each other's distributions."""
        scale = jnp.exp(p["log_scale"])
        index = columns.index
        flips = None if columns.flips is None else jnp.asarray(columns.flips)
        return mean_field(draws[:, index], p["loc"][index], scale[index], flips=flips)

    def describe(self, p: Parameters) -> dict[str, tuple[tuple[str, ...], jax.Array]]:
        """Parameters under the names of docs/reference/posterior.md."""
        return {"loc": (("param",), p["loc"]), "scale": (("param",), jnp.exp(p["log_scale"]))}

    def restore(self, described: Mapping[str, jax.Array]) -> Parameters:
        """Parameters from what `describe` names."""
        return {"loc": described["loc"], "log_scale": jnp.log(described["scale"])}
