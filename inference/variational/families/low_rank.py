"""A diagonal plus low rank, which couples all coordinates.

Source: Ong, Nott and Smith 2018; its determinant and inverse by the matrix determinant lemma and Woodbury's identity.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_solve
from jaxtyping import Array, Float

from ...mutual_information import LogRatios
from ..layout import Columns
from .base import LOG_2PI, Parameters, couples, standard_normal


@dataclass(frozen=True)
class LowRank:
    """Covariance diag(scale^2) + F F^T; parameters `loc`, `log_scale` (param,) and `factor` (param, rank).

    It couples all coordinates, so that parts are not independent.
    """

    size: int
    rank: int
    factorises: bool = False

    @property
    def noise(self) -> int:
        """Standard normal numbers of a draw: one a coordinate, then one a factor."""
        return self.size + self.rank

    def initial(self, loc: Float[Array, " param"], scale: float) -> Parameters:
        """N(loc, scale^2 I) and a tenth of it along random directions, without which the factor's gradient is zero."""
        noise = np.random.default_rng(self.size).standard_normal((self.size, self.rank))
        factor = jnp.asarray(0.1 * scale * noise, loc.dtype)
        return {"loc": loc, "log_scale": jnp.full_like(loc, math.log(scale)), "factor": factor}

    def transform(
        self, p: Parameters, eps: Float[Array, "sample noise"]
    ) -> Float[Array, "sample param"]:
        """Draws."""
        own, common = eps[:, : self.size], eps[:, self.size :]
        return p["loc"][None, :] + jnp.exp(p["log_scale"])[None, :] * own + common @ p["factor"].T

    def entropy(self, p: Parameters) -> Float[Array, ""]:
        """Entropy."""
        half = 0.5 * self._capacitance(p)[1]
        return jnp.sum(p["log_scale"]) + half + 0.5 * self.size * (1 + LOG_2PI)

    def log_density(
        self, p: Parameters, points: Float[Array, "sample param"]
    ) -> Float[Array, " sample"]:
        """Log densities."""
        chol, log_det = self._capacitance(p)
        eps = (points - p["loc"][None, :]) * jnp.exp(-p["log_scale"])[None, :]
        along = eps @ (p["factor"] * jnp.exp(-p["log_scale"])[:, None])
        explained = jnp.sum(along * cho_solve((chol, True), along.T).T, axis=-1)
        return standard_normal(eps, jnp.sum(p["log_scale"]) + 0.5 * log_det) + 0.5 * explained

    def ratios(
        self, p: Parameters, draws: Float[Array, "draw param"], columns: Columns
    ) -> LogRatios:
        """There are none."""
        raise couples("lowrank")

    def describe(self, p: Parameters) -> dict[str, tuple[tuple[str, ...], jax.Array]]:
        """`loc`, `scale` and `factor`."""
        return {
            "loc": (("param",), p["loc"]),
            "scale": (("param",), jnp.exp(p["log_scale"])),
            "factor": (("param", "rank"), p["factor"]),
        }

    def restore(self, described: Mapping[str, jax.Array]) -> Parameters:
        """Parameters from what `describe` names."""
        log_scale = jnp.log(described["scale"])
        return {"loc": described["loc"], "log_scale": log_scale, "factor": described["factor"]}

    def _capacitance(self, p: Parameters) -> tuple[jax.Array, jax.Array]:
        """Cholesky factor and log determinant of I + F^T diag(scale^-2) F."""
        scaled = p["factor"] * jnp.exp(-p["log_scale"])[:, None]
        chol = jnp.linalg.cholesky(jnp.eye(self.rank, dtype=scaled.dtype) + scaled.T @ scaled)
        return chol, 2 * jnp.sum(jnp.log(jnp.diagonal(chol)))
