"""Gaussian approximations in the unconstrained space: mean-field and full-rank.

A family is a few pure functions of its parameters: z = loc + scale eps for standard normal eps, and the
entropy in closed form.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Parameters = dict[str, jax.Array]


@dataclass(frozen=True)
class MeanField:
    """Independent normals; parameters `loc` and `log_scale`, both (param,)."""

    def initial(self, loc: Float[Array, " param"], scale: float) -> Parameters:
        """Parameters of N(loc, scale^2 I)."""
        return {"loc": loc, "log_scale": jnp.full_like(loc, math.log(scale))}

    def transform(
        self, p: Parameters, eps: Float[Array, "sample param"]
    ) -> Float[Array, "sample param"]:
        """Draws from standard normal ones."""
        return p["loc"][None, :] + jnp.exp(p["log_scale"])[None, :] * eps

    def log_scale_determinant(self, p: Parameters) -> Float[Array, ""]:
        """Log determinant of the scale, the part of the entropy that depends on the parameters."""
        return jnp.sum(p["log_scale"])

    def describe(self, p: Parameters) -> dict[str, tuple[tuple[str, ...], jax.Array]]:
        """Parameters under the names of docs/architecture.md."""
        return {"loc": (("param",), p["loc"]), "scale": (("param",), jnp.exp(p["log_scale"]))}


@dataclass(frozen=True)
class FullRank:
    """A multivariate normal; `loc` (param,) and `lower` (param, param), a Cholesky factor with a log diagonal."""

    def initial(self, loc: Float[Array, " param"], scale: float) -> Parameters:
        """Parameters of N(loc, scale^2 I)."""
        return {"loc": loc, "lower": jnp.diag(jnp.full_like(loc, math.log(scale)))}

    def transform(
        self, p: Parameters, eps: Float[Array, "sample param"]
    ) -> Float[Array, "sample param"]:
        """Draws from standard normal ones."""
        return p["loc"][None, :] + eps @ self._scale_tril(p).T

    def log_scale_determinant(self, p: Parameters) -> Float[Array, ""]:
        """Log determinant of the scale, the part of the entropy that depends on the parameters."""
        return jnp.trace(p["lower"])

    def describe(self, p: Parameters) -> dict[str, tuple[tuple[str, ...], jax.Array]]:
        """Parameters under the names of docs/architecture.md."""
        return {
            "loc": (("param",), p["loc"]),
            "scale_tril": (("param", "param_bis"), self._scale_tril(p)),
        }

    def _scale_tril(self, p: Parameters) -> Float[Array, "param param"]:
        return jnp.tril(p["lower"], -1) + jnp.diag(jnp.exp(jnp.diag(p["lower"])))


GAUSSIANS: dict[str, MeanField | FullRank] = {"meanfield": MeanField(), "fullrank": FullRank()}


def entropy(family: MeanField | FullRank, p: Parameters) -> Float[Array, ""]:
    """Entropy in nats."""
    return family.log_scale_determinant(p) + 0.5 * p["loc"].size * (1 + math.log(2 * math.pi))


def log_density(
    family: MeanField | FullRank, p: Parameters, eps: Float[Array, "sample param"]
) -> Float[Array, " sample"]:
    """Log density of the draws that come from `eps`."""
    constant = family.log_scale_determinant(p) + 0.5 * p["loc"].size * math.log(2 * math.pi)
    return -0.5 * jnp.sum(eps * eps, -1) - constant
