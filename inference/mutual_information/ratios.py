"""Log densities of the parts of a draw under each other's distributions, as the estimators take them.

Convention: q(w) = q_0(w_0) prod_i q_i(u_i) factorises over parts, u_j is all that moves with part j, and
A_ij = log q_i(u_j): row a distribution, column a part. The symmetrised q^G(w) is q_0(w_0) perm(e^A) / |G|, and the
mutual information between a uniform group element and the moved draw is

    I = log |G| - E_q[l(w)],    l(w) = log perm(e^A) - tr A >= 0,

so that the symmetrised ELBO is the ELBO plus I. Sign flips: B_ij = log(q_i(u_j) + q_i(-u_j)) stands for A in the
permanent and |G| = 2^H H!. Only M_ij = B_ij - A_jj is kept: it does not change with the parts' own log densities,
which may be large, and l(w) = log perm(e^M). A constant of q_i may be left out; it cancels.

Source: symmetrised ELBO, Gelberg et al. 2024 (there with InfoNCE); the identity with the permanent holds for any q
that factorises over parts, given w_0. It does not hold where a part depends on w_0 without being conditioned on it.

Log ratios of Gaussian parts under each other's distributions, from their draws and parameters.

Convention: that of `ratios`: row i a distribution, column j a part of the draw, M_ij = log q_i(u_j) - log q_j(u_j) in
nats. For independent normals the square is expanded, so that all pairs cost two products of matrices and nothing of
size (part, part, param) exists,

    log q_i(u) = -1/2 sum_d p_id u_d^2 + sum_d p_id loc_id u_d - 1/2 sum_d p_id loc_id^2 - sum_d log scale_id,

p = 1 / scale^2, with u and loc relative to the mean of loc over parts. Digits are lost in proportion to the largest
term; in single precision that leaves near parts exact to about 1e-3, while far ones do not matter. A part's own
density, which every entry of its column takes off, comes from its standardised residuals instead; M_ii is zero.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

Matrices = Float[Array, "draw part part_bis"]  # Of each draw, a number of every pair of parts.
PartDraws = Float[Array, "draw part param"]
PartParameters = Float[Array, "part param"]

ENTRIES = 2**22
"""Numbers of one array that are held at a time: 32 MB in double precision, times some temporaries."""


def by_draw[T](function: Callable[..., T], *arrays: jax.Array) -> T:
    """Map over the leading axis that all arrays share; the last array is the one that counts."""
    draws, *shape = arrays[-1].shape
    together = max(1, ENTRIES // math.prod(shape))
    if draws <= together:
        return jax.vmap(function)(*arrays)
    return jax.lax.map(lambda each: function(*each), arrays, batch_size=together)


class LogRatios(NamedTuple):
    """Scaled log densities of draws from q, each (draw, part, part_bis); made by `log_ratios`.

    `total` is M_ij = log(sum over signs of q_i(+-u_j)) - log q_j(u_j); without flips its diagonal is zero. `mean` has
    the mean of log q_i(+-u_j) over the posterior of the sign; it is `total` without flips. `flip_probability` says how
    probable the minus sign is where part j of the draw takes distribution i; None without flips.
    """

    total: jax.Array
    mean: jax.Array
    flip_probability: jax.Array | None = None

    @property
    def num_parts(self) -> int:
        """H."""
        return self.total.shape[-1]

    @property
    def log_group_order(self) -> float:
        """Log order of the group: log H!, and log(2^H H!) with flips; the largest value of I."""
        signs = 0 if self.flip_probability is None else self.num_parts
        return math.lgamma(self.num_parts + 1) + signs * math.log(2.0)


def log_ratios(log_density: Matrices, flipped: Matrices | None = None) -> LogRatios:
    """Scale log densities for the estimators: log q_i(u_j), in nats, of draws from q itself; finite.

    `flipped` are log q_i(-u_j), where flipping the sign of a part is a symmetry too.
    """
    own = jnp.diagonal(log_density, axis1=-2, axis2=-1)[:, None, :]
    plus = log_density - own
    if flipped is None:
        return LogRatios(plus, plus)
    minus = flipped - own
    total = jnp.logaddexp(plus, minus)
    share = jax.nn.sigmoid(minus - plus)
    mean = jax.nn.sigmoid(plus - minus) * plus + share * minus
    return LogRatios(total, mean, share)


def mean_field(
    draws: PartDraws,
    loc: PartParameters,
    scale: PartParameters,
    *,
    flips: Bool[Array, " param"] | None = None,
) -> LogRatios:
    """Log ratios of parts of independent normals, from draws of q; differentiable in all of them.

    `flips` is True where a part's sign flip changes the sign, False where it leaves the entry; left out where flips are
    no symmetry.
    """
    precision = 1.0 / scale**2
    centre = jax.lax.stop_gradient(jnp.mean(loc, axis=0))
    away = loc - centre[None, :]
    log_scale = jnp.sum(jnp.log(scale), axis=1)
    constant = -0.5 * jnp.sum(precision * away**2, axis=1) - log_scale
    same = jnp.eye(loc.shape[0], dtype=bool)

    def of_draw(u: jax.Array) -> jax.Array:
        moved, residual = u - centre[None, :], (u - loc) / scale
        pairs = (precision * away) @ moved.T - 0.5 * (precision @ (moved**2).T)
        own = -0.5 * jnp.sum(residual**2, axis=1) - log_scale
        return jnp.where(same, 0.0, (pairs + constant[:, None]) - own[None, :])

    plus = by_draw(of_draw, draws)
    if flips is None:
        return log_ratios(plus)

    def odd(u: jax.Array) -> jax.Array:
        return (precision * loc) @ jnp.where(flips[None, :], u, 0.0).T

    return log_ratios(plus, plus - 2.0 * by_draw(odd, draws))
