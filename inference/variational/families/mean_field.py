"""Independent normals: the family that factorises over everything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...mutual_information import LogRatios
from ...mutual_information.pairwise import mean_field
from ..gaussian import MeanField as Gaussian
from ..gaussian import Parameters, entropy
from ..layout import Columns
from .family import standard_normal


@dataclass(frozen=True)
class MeanField(Gaussian):
    """Independent normals; parameters `loc` and `log_scale`, both (param,)."""

    size: int
    factorises: bool = True

    @property
    def noise(self) -> int:
        """Standard normal numbers of a draw."""
        return self.size

    def entropy(self, p: Parameters) -> Float[Array, ""]:
        """Entropy."""
        return entropy(self, p)

    def log_density(
        self, p: Parameters, points: Float[Array, "sample param"]
    ) -> Float[Array, " sample"]:
        """Log densities."""
        eps = (points - p["loc"][None, :]) * jnp.exp(-p["log_scale"])[None, :]
        return standard_normal(eps, jnp.sum(p["log_scale"]))

    def ratios(
        self, p: Parameters, draws: Float[Array, "draw param"], columns: Columns
    ) -> LogRatios:
        """Log densities of parts under each other's distributions."""
        scale = jnp.exp(p["log_scale"])
        index = columns.index
        flips = None if columns.flips is None else jnp.asarray(columns.flips)
        return mean_field(draws[:, index], p["loc"][index], scale[index], flips=flips)

    def restore(self, described: Mapping[str, jax.Array]) -> Parameters:
        """Parameters from what `describe` names."""
        return {"loc": described["loc"], "log_scale": jnp.log(described["scale"])}
