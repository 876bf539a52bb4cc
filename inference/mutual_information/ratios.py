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
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from onebasin.base.errors import ArgumentError

from .pytree import pytree


@pytree("flips")
@dataclass(frozen=True)
class LogRatios:
    """Scaled log densities of draws from q; made by `log_ratios`.

    Attributes
    ----------
    total : array (draw, part, part_bis)
        M_ij = log(sum over signs of q_i(+-u_j)) - log q_j(u_j). Without flips its diagonal is zero.
    mean : array (draw, part, part_bis)
        The same with the mean of log q_i(+-u_j) over the posterior of the sign; `total` without flips.
    flips : bool
        Whether sign flips are in the group.
    flip_probability : array (draw, part, part_bis) or None
        How probable the minus sign is where part j of the draw takes distribution i; None without flips.
    """

    total: Float[Array, "*batch part part_bis"]
    mean: Float[Array, "*batch part part_bis"]
    flips: bool
    flip_probability: Float[Array, "*batch part part_bis"] | None = None

    @property
    def num_parts(self) -> int:
        """H."""
        return self.total.shape[-1]

    @property
    def log_group_order(self) -> float:
        """Log order of the group: log H!, and log(2^H H!) with flips; the largest value of I."""
        return math.lgamma(self.num_parts + 1) + self.flips * self.num_parts * math.log(2.0)


def log_ratios(
    log_density: Float[Array, "draw part part_bis"],
    flipped: Float[Array, "draw part part_bis"] | None = None,
) -> LogRatios:
    """Scale log densities for the estimators.

    Parameters
    ----------
    log_density : array (draw, part, part_bis)
        Entry (w, i, j) is log q_i(u_j), in nats, of the draw w from q itself; finite.
    flipped : array (draw, part, part_bis), optional
        log q_i(-u_j), where flipping the sign of a part is a symmetry too.

    Returns
    -------
    LogRatios

    Raises
    ------
    ValueError
        If the matrices are not square, or the two shapes differ.
    """
    _check(log_density, flipped)
    own = jnp.diagonal(log_density, axis1=-2, axis2=-1)[:, None, :]
    plus = log_density - own
    if flipped is None:
        return LogRatios(plus, plus, False)
    minus = flipped - own
    total = jnp.logaddexp(plus, minus)
    share = jax.nn.sigmoid(minus - plus)
    mean = jax.nn.sigmoid(plus - minus) * plus + share * minus
    return LogRatios(total, mean, True, share)


def _check(log_density: jax.Array, flipped: jax.Array | None) -> None:
    shape = log_density.shape
    if len(shape) != 3 or shape[1] != shape[2] or shape[1] == 0:
        raise ArgumentError(
            f"`log_density` has the shape {shape}; it must be (draw, part, part), one row a part's distribution and "
            "one column a part of the draw."
        )
    if flipped is not None and flipped.shape != shape:
        raise ArgumentError(
            f"`flipped` has the shape {flipped.shape}; it must be that of `log_density`, {shape}: the same parts with "
            "their signs flipped. Leave it out where flips are no symmetry."
        )
