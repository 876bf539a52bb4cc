"""The gradient of the mutual information for Gaussian parts, averaged over relabellings in closed form.

Score terms cancel, and every relabelling of a draw is as good a draw of q^G as itself. What is left needs only the
marginals P, of the exact permanent or of an estimator:

    grad I = E_w sum_ij P_ij (g_ij - gbar_j) . d u_j^(i),   g_ij = d/du log q_i(u_j),   gbar_j = sum_i P_ij g_ij,

where u_j^(i) = loc_i + scale_i eps_ij with eps_ij = (u_j - loc_i) / scale_i held fixed. With exact P it has no bias and
a fraction of the noise of differentiating l(w). Where P is 0 or 1 it vanishes, draw by draw: do not take Bethe's
marginals of parts that are near twins. Permutations only, no sign flips.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def path_gradient(
    draws: Float[Array, "draw part_bis param"],
    loc: Float[Array, "part param"],
    scale: Float[Array, "part param"],
    marginals: Float[Array, "draw part part_bis"],
) -> tuple[Float[Array, "draw part param"], Float[Array, "draw part param"]]:
    """Gradients of I draw by draw; their means over draws from q estimate it.

    Parameters
    ----------
    draws : array (draw, part, param)
        u_j, from q.
    loc, scale : array (part, param)
        Of the independent normals q_i.
    marginals : array (draw, part, part_bis)
        P, of `Estimate`: columns sum to one.

    Returns
    -------
    by_loc, by_scale : array (draw, part, param)
        With respect to `loc` and to `scale`. Memory is that of a few arrays (draw, part, param): one row of P
        is taken at a time.
    """
    rows = (jnp.moveaxis(marginals, 1, 0), loc, scale)

    def standardised(loc: jax.Array, scale: jax.Array) -> jax.Array:
        return (draws - loc[None, None, :]) / scale[None, None, :]

    def add(mean: jax.Array, row: tuple[jax.Array, ...]) -> tuple[jax.Array, None]:
        weight, loc, scale = row
        score = -standardised(loc, scale) / scale[None, None, :]
        return mean + weight[:, :, None] * score, None

    mean_score = jax.lax.scan(add, jnp.zeros_like(draws), rows)[0]

    def of_part(row: tuple[jax.Array, ...]) -> tuple[jax.Array, jax.Array]:
        weight, loc, scale = row
        eps = standardised(loc, scale)
        pull = weight[:, :, None] * (-eps / scale[None, None, :] - mean_score)
        return jnp.sum(pull, axis=1), jnp.sum(pull * eps, axis=1)

    by_loc, by_scale = jax.lax.map(of_part, rows)
    return jnp.moveaxis(by_loc, 0, 1), jnp.moveaxis(by_scale, 0, 1)
