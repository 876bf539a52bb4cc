"""Families of Gaussian approximations in the unconstrained space.

A family draws z = loc + (its scale) eps from standard normal eps, knows its entropy and its log density anywhere, and,
where it factorises over the parts of a block, which part of a draw has which log density under which part's
distribution. Log density and entropy are complete, in nats.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_solve, solve_triangular
from jaxtyping import Array, Float, Int

from onebasin.base.errors import ArgumentError

from ..mutual_information import LogRatios
from ..mutual_information.ratios import block, mean_field
from .layout import PartColumns, SymmetryLayout

Parameters = dict[str, jax.Array]

LOG_2PI = math.log(2 * math.pi)


class GaussianFamily(ABC):
    """A family of approximations; `factorises` says whether it is independent over the parts of every block."""

    word: ClassVar[str]
    factorises: ClassVar[bool] = True

    @property
    @abstractmethod
    def noise(self) -> int:
        """Standard normal numbers of a draw."""

    @abstractmethod
    def initial(self, loc: jax.Array, scale: float) -> Parameters:
        """Parameters of about N(loc, scale^2 I)."""

    @abstractmethod
    def transform(self, p: Parameters, eps: jax.Array) -> jax.Array:
        """Draws (sample, param) from eps (sample, noise)."""

    @abstractmethod
    def entropy(self, p: Parameters) -> jax.Array:
        """Entropy."""

    @abstractmethod
    def log_density(self, p: Parameters, points: jax.Array) -> jax.Array:
        """Log densities (sample,) of points (sample, param)."""

    @abstractmethod
    def describe(self, p: Parameters) -> dict[str, tuple[tuple[str, ...], jax.Array]]:
        """Parameters under the names of docs/reference/posterior.md, with their axes."""

    @abstractmethod
    def restore(self, described: Mapping[str, jax.Array]) -> Parameters:
        """Parameters from what `describe` names."""

    def ratios(self, p: Parameters, draws: jax.Array, columns: PartColumns) -> LogRatios:
        """Log densities of parts under each other's distributions."""
        raise ArgumentError(
            f"`family` is {self.word!r}, which couples the components, so that they have no separate distributions. "
            "Use mutual_information='infonce', or family='meanfield'."
        )


def sample(family: GaussianFamily, p: Parameters, key: jax.Array, num: int) -> jax.Array:
    """Draws (sample, param)."""
    return family.transform(p, jax.random.normal(key, (num, family.noise), p["loc"].dtype))


def standard_normal(eps: jax.Array, log_determinant: jax.Array) -> jax.Array:
    """Log density of draws (sample, param) from the standard normal numbers behind them."""
    constant = log_determinant + 0.5 * eps.shape[-1] * LOG_2PI
    return -0.5 * jnp.sum(eps * eps, axis=-1) - constant


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


@dataclass(frozen=True)
class MeanField(GaussianFamily):
    """Independent normals; parameters `loc` and `log_scale`, both (param,)."""

    word: ClassVar[str] = "meanfield"
    size: int

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
        self, p: Parameters, draws: Float[Array, "draw param"], columns: PartColumns
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


@dataclass(frozen=True)
class FullRank(GaussianFamily):
    """A multivariate normal; `loc` (param,) and `lower` (param, param), a Cholesky factor with a log diagonal."""

    word: ClassVar[str] = "fullrank"
    factorises: ClassVar[bool] = False
    size: int

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

    def describe(self, p: Parameters) -> dict[str, tuple[tuple[str, ...], jax.Array]]:
        """Parameters under the names of docs/reference/posterior.md."""
        return {
            "loc": (("param",), p["loc"]),
            "scale_tril": (("param", "param_bis"), lower_triangle(p["lower"])),
        }

    def restore(self, described: Mapping[str, jax.Array]) -> Parameters:
        """Parameters from what `describe` names."""
        return {"loc": described["loc"], "lower": log_diagonal(described["scale_tril"])}


@dataclass(frozen=True)
class LowRank(GaussianFamily):
    """Covariance diag(scale^2) + F F^T; parameters `loc`, `log_scale` (param,) and `factor` (param, rank).

    It couples all coordinates, so that parts are not independent.
    """

    word: ClassVar[str] = "lowrank"
    factorises: ClassVar[bool] = False
    size: int
    rank: int

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


@dataclass(frozen=True)
class PerComponent(GaussianFamily):
    """A full covariance within each component of a block, and one for all that no block moves.

    Parameters `loc` (param,), `lower` (component, within, within) for every block and `rest` (within, within): Cholesky
    factors with the log of their diagonal.

    Attributes
    ----------
    indices : tuple of arrays (component, within)
        Places of the components of every block; blocks do not overlap.
    rest : array (within,)
        Places of the other coordinates.
    """

    word: ClassVar[str] = "block"
    indices: tuple[Int[np.ndarray, "_ _"], ...]
    rest: Int[np.ndarray, " _"]

    @property
    def noise(self) -> int:
        """Standard normal numbers of a draw."""
        return sum(index.size for index in self.indices) + self.rest.size

    def initial(self, loc: Float[Array, " param"], scale: float) -> Parameters:
        """Parameters of N(loc, scale^2 I)."""
        p = {"loc": loc, "rest": jnp.diag(jnp.full(self.rest.size, math.log(scale), loc.dtype))}
        for number, index in enumerate(self.indices):
            one = jnp.diag(jnp.full(index.shape[1], math.log(scale), loc.dtype))
            p[f"lower{number}"] = jnp.broadcast_to(one[None], (len(index), *one.shape))
        return p

    def transform(
        self, p: Parameters, eps: Float[Array, "sample param"]
    ) -> Float[Array, "sample param"]:
        """Draws; entry k of eps goes with coordinate k."""
        out = (
            jnp.zeros_like(eps)
            .at[:, self.rest]
            .set(eps[:, self.rest] @ lower_triangle(p["rest"]).T)
        )
        for number, index in enumerate(self.indices):
            scale = lower_triangle(p[f"lower{number}"])
            out = out.at[:, index].set(jnp.einsum("hde,she->shd", scale, eps[:, index]))
        return p["loc"][None, :] + out

    def entropy(self, p: Parameters) -> Float[Array, ""]:
        """Entropy."""
        return self._log_determinant(p) + 0.5 * self.noise * (1 + LOG_2PI)

    def log_density(
        self, p: Parameters, points: Float[Array, "sample param"]
    ) -> Float[Array, " sample"]:
        """Log densities."""
        centred = points - p["loc"][None, :]
        eps = (
            jnp.zeros_like(points)
            .at[:, self.rest]
            .set(solve_triangular(lower_triangle(p["rest"]), centred[:, self.rest].T, lower=True).T)
        )
        for number, index in enumerate(self.indices):
            scale = lower_triangle(p[f"lower{number}"])
            rows = jnp.moveaxis(centred[:, index], 0, 2)
            found = jax.vmap(lambda s, r: solve_triangular(s, r, lower=True))(scale, rows)
            eps = eps.at[:, index].set(jnp.moveaxis(found, 2, 0))
        return standard_normal(eps, self._log_determinant(p))

    def ratios(
        self, p: Parameters, draws: Float[Array, "draw param"], columns: PartColumns
    ) -> LogRatios:
        """Log densities of components under each other's distributions."""
        number = next(
            i for i, index in enumerate(self.indices) if np.array_equal(index, columns.index)
        )
        flips = None if columns.flips is None else jnp.asarray(columns.flips)
        index = columns.index
        scale = lower_triangle(p[f"lower{number}"])
        return block(draws[:, index], p["loc"][index], scale, flips=flips)

    def describe(self, p: Parameters) -> dict[str, tuple[tuple[str, ...], jax.Array]]:
        """`loc`, and Cholesky factors `scale_tril_rest`, `scale_tril_0`, ..."""
        out = {
            "loc": (("param",), p["loc"]),
            "scale_tril_rest": (("rest", "rest_bis"), lower_triangle(p["rest"])),
        }
        for number in range(len(self.indices)):
            dims = (f"part{number}", f"within{number}", f"within{number}_bis")
            out[f"scale_tril_{number}"] = (dims, lower_triangle(p[f"lower{number}"]))
        return out

    def restore(self, described: Mapping[str, jax.Array]) -> Parameters:
        """Parameters from what `describe` names."""
        p = {"loc": described["loc"], "rest": log_diagonal(described["scale_tril_rest"])}
        for number in range(len(self.indices)):
            p[f"lower{number}"] = log_diagonal(described[f"scale_tril_{number}"])
        return p

    def _log_determinant(self, p: Parameters) -> jax.Array:
        lower = [p[f"lower{number}"] for number in range(len(self.indices))]
        diagonals = [jnp.sum(jnp.diagonal(x, axis1=-2, axis2=-1)) for x in (*lower, p["rest"])]
        return sum(diagonals[1:], diagonals[0])


GAUSSIANS: Mapping[str, Callable[[int], GaussianFamily]] = {
    "meanfield": MeanField,
    "fullrank": FullRank,
}
"""The families of ADVI, from the number of coordinates."""


def family_of(name: str, layout: SymmetryLayout, rank: int) -> GaussianFamily:
    """The family of this name on a layout."""
    if name == "meanfield":
        return MeanField(layout.density.size)
    if name == "lowrank":
        return LowRank(layout.density.size, rank)
    if layout.overlaps or not layout.has_parts:
        raise ArgumentError(
            "`family` is 'block', but a coordinate of this target belongs to more than one component (a weight between "
            "two hidden layers, an entry of a transition matrix), so that components have no separate covariances. Use "
            "family='meanfield'."
        )
    indices = tuple(layout.columns(block).index for block in layout.blocks)
    return PerComponent(indices, layout.rest())
