"""Families of Gaussian approximations in the unconstrained space.

A family draws z = loc + (its scale) eps from standard normal eps, and knows its entropy and its log density anywhere;
mean field also knows which part of a draw has which log density under which part's distribution. Log density and
entropy are complete, in nats.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, override

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float

from ..contracts.density import Vector
from ..mutual_information.ratios import LogRatios, mean_field
from .layout import PartColumns

Parameters = dict[str, jax.Array]
Draws = Float[Array, "sample param"]
Sampled = Float[Array, " sample"]  # A number of every draw.

LOG_2PI = math.log(2 * math.pi)


Axes = dict[str, tuple[str, tuple[str, ...]]]
"""Name of docs/reference/posterior.md to our parameter and its axes there."""


@dataclass(frozen=True)
class GaussianFamily(ABC):
    """A family of approximations."""

    word: ClassVar[str]
    size: int

    @property
    @abstractmethod
    def axes(self) -> Axes:
        """All parameters but `loc`."""

    @abstractmethod
    def initial(self, loc: Vector, scale: float) -> Parameters:
        """Parameters of about N(loc, scale^2 I)."""

    @abstractmethod
    def scaled(self, p: Parameters, eps: Float[Array, "sample param"]) -> Draws:
        """Draws of mean zero from standard normal ones."""

    @abstractmethod
    def whitened(self, p: Parameters, centred: Draws) -> Draws:
        """The standard normal draws of `scaled`."""

    @abstractmethod
    def log_determinant(self, p: Parameters) -> Float[Array, ""]:
        """Log determinant of the scale: half of the covariance's."""

    def transform(self, p: Parameters, eps: Float[Array, "sample param"]) -> Draws:
        """Draws from standard normal ones."""
        return p["loc"][None, :] + self.scaled(p, eps)

    def entropy(self, p: Parameters) -> Float[Array, ""]:
        """Entropy."""
        return self.log_determinant(p) + 0.5 * self.size * (1 + LOG_2PI)

    def log_density(self, p: Parameters, points: Draws) -> Sampled:
        """Log densities."""
        eps = self.whitened(p, points - p["loc"][None, :])
        constant = self.log_determinant(p) + 0.5 * self.size * LOG_2PI
        return -0.5 * jnp.sum(eps * eps, axis=-1) - constant

    def describe(self, p: Parameters) -> dict[str, tuple[tuple[str, ...], jax.Array]]:
        """Parameters under the names of docs/reference/posterior.md, with their axes."""
        found = {name: (axes, _natural(name)[0](p[own])) for name, (own, axes) in self.axes.items()}
        return {"loc": (("param",), p["loc"]), **found}

    def restore(self, described: Mapping[str, jax.Array]) -> Parameters:
        """Parameters from what `describe` names."""
        found = {own: _natural(name)[1](described[name]) for name, (own, _) in self.axes.items()}
        return {"loc": described["loc"], **found}


def sample(family: GaussianFamily, p: Parameters, key: jax.Array, num: int) -> jax.Array:
    """Draws (sample, param)."""
    return family.transform(p, jax.random.normal(key, (num, family.size), p["loc"].dtype))


def lower_triangle(lower: jax.Array) -> jax.Array:
    """Cholesky factors from matrices (..., k, k) that hold the log of their diagonal."""
    diagonal = jnp.exp(jnp.diagonal(lower, axis1=-2, axis2=-1))
    eye = jnp.eye(lower.shape[-1], dtype=lower.dtype)
    return jnp.tril(lower, -1) + diagonal[..., None] * jnp.broadcast_to(eye, lower.shape)


def log_diagonal(scale: jax.Array) -> jax.Array:
    """Return the argument of `lower_triangle`, from Cholesky factors."""
    diagonal = jnp.diagonal(scale, axis1=-2, axis2=-1)
    eye = jnp.broadcast_to(jnp.eye(scale.shape[-1], dtype=scale.dtype), scale.shape)
    return jnp.tril(scale, -1) + jnp.log(diagonal)[..., None] * eye


def _natural(name: str) -> tuple[Callable[..., jax.Array], Callable[..., jax.Array]]:
    """From our parameter to what it is described by under a name, and back."""
    if name.startswith("scale_tril"):
        return lower_triangle, log_diagonal
    return (jnp.exp, jnp.log) if name == "scale" else (jnp.asarray, jnp.asarray)


@dataclass(frozen=True)
class MeanField(GaussianFamily):
    """Independent normals; parameters `loc` and `log_scale`, both (param,)."""

    word: ClassVar[str] = "meanfield"

    @property
    def axes(self) -> Axes:
        """`scale`."""
        return {"scale": ("log_scale", ("param",))}

    @override
    def initial(self, loc: jax.Array, scale: float) -> Parameters:
        return {"loc": loc, "log_scale": jnp.full_like(loc, math.log(scale))}

    @override
    def scaled(self, p: Parameters, eps: jax.Array) -> jax.Array:
        return jnp.exp(p["log_scale"])[None, :] * eps

    @override
    def whitened(self, p: Parameters, centred: jax.Array) -> jax.Array:
        return centred * jnp.exp(-p["log_scale"])[None, :]

    @override
    def log_determinant(self, p: Parameters) -> jax.Array:
        return jnp.sum(p["log_scale"])

    def ratios(self, p: Parameters, draws: Draws, columns: PartColumns) -> LogRatios:
        """Log densities of components under each other's distributions."""
        scale = jnp.exp(p["log_scale"])
        index = columns.index
        flips = None if columns.flips is None else jnp.asarray(columns.flips)
        return mean_field(draws[:, index], p["loc"][index], scale[index], flips=flips)


@dataclass(frozen=True)
class FullRank(GaussianFamily):
    """A multivariate normal; `loc` (param,) and `lower` (param, param), a Cholesky factor with a log diagonal."""

    word: ClassVar[str] = "fullrank"

    @property
    def axes(self) -> Axes:
        """`scale_tril`."""
        return {"scale_tril": ("lower", ("param", "param_bis"))}

    @override
    def initial(self, loc: jax.Array, scale: float) -> Parameters:
        return {"loc": loc, "lower": jnp.diag(jnp.full_like(loc, math.log(scale)))}

    @override
    def scaled(self, p: Parameters, eps: jax.Array) -> jax.Array:
        return eps @ lower_triangle(p["lower"]).T

    @override
    def whitened(self, p: Parameters, centred: jax.Array) -> jax.Array:
        return solve_triangular(lower_triangle(p["lower"]), centred.T, lower=True).T

    @override
    def log_determinant(self, p: Parameters) -> jax.Array:
        return jnp.trace(p["lower"])


GAUSSIANS: Mapping[str, Callable[[int], GaussianFamily]] = {
    "meanfield": MeanField,
    "fullrank": FullRank,
}
"""The families of ADVI, from the number of coordinates."""
