"""A full covariance within each component of a block."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float, Int

from ...mutual_information import LogRatios
from ...mutual_information.pairwise import block
from ..layout import Columns
from .base import LOG_2PI, Parameters, log_diagonal, lower_triangle, standard_normal


@dataclass(frozen=True)
class PerComponent:
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

    indices: tuple[Int[np.ndarray, "_ _"], ...]
    rest: Int[np.ndarray, " _"]
    factorises: bool = True

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
        self, p: Parameters, draws: Float[Array, "draw param"], columns: Columns
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
