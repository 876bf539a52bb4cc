"""Log ratios of Gaussian parts under each other's distributions, from their draws and parameters.

Convention: that of `ratios`: row i a distribution, column j a part of the draw, M_ij = log q_i(u_j) - log q_j(u_j) in
nats. For independent normals the square is expanded, so that all pairs cost two products of matrices and nothing of
size (part, part, param) exists,

    log q_i(u) = -1/2 sum_d p_id u_d^2 + sum_d p_id loc_id u_d - 1/2 sum_d p_id loc_id^2 - sum_d log scale_id,

p = 1 / scale^2, with u and loc relative to the mean of loc over parts. Digits are lost in proportion to the largest
term; in single precision that leaves near parts exact to about 1e-3, while far ones do not matter. A part's own
density, which every entry of its column takes off, comes from its standardised residuals instead; M_ii is zero.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Bool, Float

from .ratios import LogRatios, by_draw, log_ratios


def mean_field(
    draws: Float[Array, "draw part param"],
    loc: Float[Array, "part param"],
    scale: Float[Array, "part param"],
    *,
    flips: Bool[Array, " param"] | None = None,
) -> LogRatios:
    """Log ratios of parts of independent normals; differentiable in all of them.

    Parameters
    ----------
    draws : array (draw, part, param)
        u_j, from q.
    loc, scale : array (part, param)
        Of the normals q_i.
    flips : array (param,), optional
        True where a part's sign flip changes the sign, False where it leaves the entry; left out where flips are
        no symmetry.

    Returns
    -------
    LogRatios
    """
    precision = 1.0 / scale**2
    centre = jax.lax.stop_gradient(jnp.mean(loc, axis=0))
    away = loc - centre[None, :]
    log_scale = jnp.sum(jnp.log(scale), axis=1)
    constant = -0.5 * jnp.sum(precision * away**2, axis=1) - log_scale
    same = jnp.eye(loc.shape[0], dtype=bool)

    def of_draw(u: jax.Array) -> jax.Array:
        moved, residual = u - centre[None, :], (u - loc) / scale
        pairs = _products(moved, precision * away) - 0.5 * _products(moved**2, precision)
        own = -0.5 * jnp.sum(residual**2, axis=1) - log_scale
        return jnp.where(same, 0.0, (pairs + constant[:, None]) - own[None, :])

    plus = by_draw(of_draw, draws)
    if flips is None:
        return log_ratios(plus)

    def odd(u: jax.Array) -> jax.Array:
        return _products(jnp.where(flips[None, :], u, 0.0), precision * loc)

    return log_ratios(plus, plus - 2.0 * by_draw(odd, draws))


def block(
    draws: Float[Array, "draw part param"],
    loc: Float[Array, "part param"],
    scale_tril: Float[Array, "part param param"],
    *,
    flips: Bool[Array, " param"] | None = None,
) -> LogRatios:
    """Log ratios of parts with a full covariance each; differentiable in all arguments.

    One distribution at a time, forwards and backwards: memory is that of a few arrays (draw, part, param).

    Parameters
    ----------
    draws, loc, flips
        As of `mean_field`.
    scale_tril : array (part, param, param)
        Lower triangular roots of their covariances, with a positive diagonal.

    Returns
    -------
    LogRatios
    """
    turned = [draws]
    if flips is not None:
        turned.append(jnp.where(flips[None, None, :], -draws, draws))

    @jax.checkpoint
    def row(of_part: tuple[jax.Array, jax.Array]) -> list[jax.Array]:
        return [_log_density(entries, *of_part) for entries in turned]

    pairs = [jnp.moveaxis(each, 0, 1) for each in jax.lax.map(row, (loc, scale_tril))]
    return log_ratios(*pairs)


def _products(draw: jax.Array, weights: jax.Array) -> jax.Array:
    """Inner products of every part's weights with every part of a draw: (part, part_bis)."""
    return weights @ draw.T


def _log_density(draws: jax.Array, loc: jax.Array, scale_tril: jax.Array) -> jax.Array:
    """Log density (draw, part) of one normal, but for a constant that all parts share."""
    residual = (draws - loc[None, None, :]).reshape(-1, loc.shape[0])
    standard = solve_triangular(scale_tril, residual.T, lower=True)
    half_squares = 0.5 * jnp.sum(standard**2, axis=0).reshape(draws.shape[:2])
    return -half_squares - jnp.sum(jnp.log(jnp.diagonal(scale_tril)))
