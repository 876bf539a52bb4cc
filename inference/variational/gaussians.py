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
from functools import partial
from typing import ClassVar, override

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_solve, solve_triangular
from jaxtyping import Array, Float, Int

from onebasin.base.errors import ArgumentError

from ..contracts.density import Vector
from ..mutual_information.ratios import LogRatios, block, mean_field
from .layout import PartColumns, SymmetryLayout

Parameters = dict[str, jax.Array]
Draws = Float[Array, "sample param"]
Sampled = Float[Array, " sample"]
"""A number of every draw."""

LOG_2PI = math.log(2 * math.pi)


Axes = dict[str, tuple[str, tuple[str, ...]]]
"""Name of docs/reference/posterior.md to our parameter and its axes there."""


@dataclass(frozen=True)
class GaussianFamily(ABC):
    """A family of approximations; `factorises` says whether it is independent over the parts of every block."""

    word: ClassVar[str]
    factorises: ClassVar[bool] = True
    size: int

    @property
    def noise(self) -> int:
        """Standard normal numbers of a draw."""
        return self.size

    @property
    @abstractmethod
    def axes(self) -> Axes:
        """All parameters but `loc`."""

    @abstractmethod
    def initial(self, loc: Vector, scale: float) -> Parameters:
        """Parameters of about N(loc, scale^2 I)."""

    @abstractmethod
    def scaled(self, p: Parameters, eps: Float[Array, "sample noise"]) -> Draws:
        """Draws of mean zero from standard normal ones."""

    @abstractmethod
    def whitened(self, p: Parameters, centred: Draws) -> Draws:
        """The standard normal draws of `scaled`."""

    @abstractmethod
    def log_determinant(self, p: Parameters) -> Float[Array, ""]:
        """Log determinant of the scale: half of the covariance's."""

    def transform(self, p: Parameters, eps: Float[Array, "sample noise"]) -> Draws:
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

    def ratios(self, p: Parameters, draws: Draws, columns: PartColumns) -> LogRatios:
        """Log densities of components under each other's distributions."""
        raise ArgumentError(
            f"`family` is {self.word!r}, which couples the components, so that they have no separate distributions. "
            "Use mutual_information='infonce', or family='meanfield'."
        )


def sample(family: GaussianFamily, p: Parameters, key: jax.Array, num: int) -> jax.Array:
    """Draws (sample, param)."""
    return family.transform(p, jax.random.normal(key, (num, family.noise), p["loc"].dtype))


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


class Diagonal(GaussianFamily):
    """A scale for each coordinate: parameters `loc` and `log_scale`, both (param,)."""

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


@dataclass(frozen=True)
class MeanField(Diagonal):
    """Independent normals."""

    word: ClassVar[str] = "meanfield"

    @override
    def ratios(self, p: Parameters, draws: jax.Array, columns: PartColumns) -> LogRatios:
        scale = jnp.exp(p["log_scale"])
        index = columns.index
        flips = None if columns.flips is None else jnp.asarray(columns.flips)
        return mean_field(draws[:, index], p["loc"][index], scale[index], flips=flips)


@dataclass(frozen=True)
class FullRank(GaussianFamily):
    """A multivariate normal; `loc` (param,) and `lower` (param, param), a Cholesky factor with a log diagonal."""

    word: ClassVar[str] = "fullrank"
    factorises: ClassVar[bool] = False

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


@dataclass(frozen=True)
class LowRank(Diagonal):
    """Covariance diag(scale^2) + F F^T; with the parameter `factor` (param, rank) too.

    It couples all coordinates, so that parts are not independent.
    """

    word: ClassVar[str] = "lowrank"
    factorises: ClassVar[bool] = False
    rank: int

    @property
    def axes(self) -> Axes:
        """`scale` and `factor`."""
        return {**super().axes, "factor": ("factor", ("param", "rank"))}

    @property
    def noise(self) -> int:
        """Standard normal numbers of a draw: one a coordinate, then one a factor."""
        return self.size + self.rank

    @override
    def initial(self, loc: jax.Array, scale: float) -> Parameters:
        # A tenth of the scale along random directions, without which the factor's gradient is zero.
        noise = np.random.default_rng(self.size).standard_normal((self.size, self.rank))
        factor = jnp.asarray(0.1 * scale * noise, loc.dtype)
        return {**super().initial(loc, scale), "factor": factor}

    @override
    def transform(self, p: Parameters, eps: jax.Array) -> jax.Array:
        return super().transform(p, eps[:, : self.size]) + eps[:, self.size :] @ p["factor"].T

    @override
    def log_determinant(self, p: Parameters) -> jax.Array:
        return super().log_determinant(p) + 0.5 * self._capacitance(p)[1]

    @override
    def log_density(self, p: Parameters, points: jax.Array) -> jax.Array:
        along = self.whitened(p, points - p["loc"][None, :]) @ (
            p["factor"] * jnp.exp(-p["log_scale"])[:, None]
        )
        explained = jnp.sum(along * cho_solve((self._capacitance(p)[0], True), along.T).T, axis=-1)
        return super().log_density(p, points) + 0.5 * explained

    def _capacitance(self, p: Parameters) -> tuple[jax.Array, jax.Array]:
        """Cholesky factor and log determinant of I + F^T diag(scale^-2) F."""
        scaled = p["factor"] * jnp.exp(-p["log_scale"])[:, None]
        chol = jnp.linalg.cholesky(jnp.eye(self.rank, dtype=scaled.dtype) + scaled.T @ scaled)
        return chol, 2 * jnp.sum(jnp.log(jnp.diagonal(chol)))


@dataclass(frozen=True)
class PerComponent(GaussianFamily):
    """A full covariance within each component of a block, and one for all that no block moves.

    Parameters `loc` (param,), `lower0` (component, within, within) and more, one a block, and `rest` (within, within):
    Cholesky factors with the log of their diagonal. Of the places (component, within) of every block's components, and
    of those (within,) of the other coordinates; blocks do not overlap.
    """

    word: ClassVar[str] = "block"
    indices: tuple[Int[np.ndarray, "_ _"], ...]
    rest: Int[np.ndarray, " _"]

    @property
    def axes(self) -> Axes:
        """Cholesky factors `scale_tril_rest`, `scale_tril_0`, ..."""
        blocks = {
            f"scale_tril_{k}": (f"lower{k}", (f"part{k}", f"within{k}", f"within{k}_bis"))
            for k in range(len(self.indices))
        }
        return {"scale_tril_rest": ("rest", ("rest", "rest_bis")), **blocks}

    @override
    def initial(self, loc: jax.Array, scale: float) -> Parameters:
        p = {"loc": loc, "rest": jnp.diag(jnp.full(self.rest.size, math.log(scale), loc.dtype))}
        for number, index in enumerate(self.indices):
            one = jnp.diag(jnp.full(index.shape[1], math.log(scale), loc.dtype))
            p[f"lower{number}"] = jnp.broadcast_to(one[None], (len(index), *one.shape))
        return p

    @override
    def scaled(self, p: Parameters, eps: jax.Array) -> jax.Array:
        # Entry k of eps goes with coordinate k.
        rest = eps[:, self.rest] @ lower_triangle(p["rest"]).T
        out = jnp.zeros_like(eps).at[:, self.rest].set(rest)
        for number, index in enumerate(self.indices):
            scale = lower_triangle(p[f"lower{number}"])
            out = out.at[:, index].set(jnp.einsum("hde,she->shd", scale, eps[:, index]))
        return out

    @override
    def whitened(self, p: Parameters, centred: jax.Array) -> jax.Array:
        solve = partial(solve_triangular, lower=True)
        rest = solve(lower_triangle(p["rest"]), centred[:, self.rest].T).T
        eps = jnp.zeros_like(centred).at[:, self.rest].set(rest)
        for number, index in enumerate(self.indices):
            rows = jnp.moveaxis(centred[:, index], 0, 2)
            found = jax.vmap(solve)(lower_triangle(p[f"lower{number}"]), rows)
            eps = eps.at[:, index].set(jnp.moveaxis(found, 2, 0))
        return eps

    @override
    def log_determinant(self, p: Parameters) -> jax.Array:
        lower = [p[f"lower{number}"] for number in range(len(self.indices))]
        diagonals = [jnp.sum(jnp.diagonal(x, axis1=-2, axis2=-1)) for x in (*lower, p["rest"])]
        return sum(diagonals[1:], diagonals[0])

    @override
    def ratios(self, p: Parameters, draws: jax.Array, columns: PartColumns) -> LogRatios:
        index = columns.index
        number = next(i for i, own in enumerate(self.indices) if np.array_equal(own, index))
        flips = None if columns.flips is None else jnp.asarray(columns.flips)
        scale = lower_triangle(p[f"lower{number}"])
        return block(draws[:, index], p["loc"][index], scale, flips=flips)


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
    return PerComponent(layout.density.size, indices, layout.rest())
