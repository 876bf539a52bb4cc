"""Estimators of l(w) = log perm(e^A) - tr A, each with the side of the truth on which its mutual information lies.

I = log |G| - E_q[l] (see `ratios`), so that a bound of l from above is one of I from below. `exact` is exact, draw by
draw, for few parts; `infonce` is a lower bound in expectation over w from q, and never above log K (K 2^H with flips).

Why InfoNCE counts the identity: with w from q, the identity is itself an exact draw from the posterior over
permutations, which turns Jensen's inequality round. Theorem 4.3 of Gelberg et al. 2024; one departure: signs are summed
in closed form, not drawn, which can only tighten it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .permanent import log_permanent, log_permanent_and_marginals
from .ratios import LogRatios, by_draw


class Estimate(NamedTuple):
    """The numbers that an estimator gives for every draw.

    - `log_sum` (draw,): estimates of l(w), in nats.
    - `control` (draw,): <P, A> - tr A, of mean zero over w from q: added to I, it takes away most of the spread over
      draws.
    - `marginals` (draw, part, part_bis): P, how probable it is that a part's distribution is that of another part of
      the draw; also the derivative of `log_sum`.
    """

    log_sum: jax.Array
    control: jax.Array
    marginals: jax.Array


Estimator = Callable[[jax.Array, LogRatios], Estimate]
"""An estimator of l(w), from a key (which those without randomness ignore)."""


def information(
    ratios: LogRatios, estimate: Estimate, *, control_variate: bool = True
) -> Float[Array, " draw"]:
    """Mutual information draw by draw, in nats: log |G| - l(w), plus the control variate. Its mean estimates I."""
    plain = ratios.log_group_order - estimate.log_sum
    return plain + estimate.control if control_variate else plain


def exact(rng_key: jax.Array, ratios: LogRatios) -> Estimate:
    """The permanent by recursion over subsets, for at most `permanent.MAX_PARTS` parts.

    Draws are taken a few at a time: memory hardly grows with their number.
    """

    def one(matrix: jax.Array) -> tuple[jax.Array, jax.Array]:
        return log_permanent(matrix), log_permanent_and_marginals(matrix)[1]

    size = ratios.num_parts
    together = max(1, 2**20 // (size**2 * math.comb(size, size // 2)))
    log_sum, marginals = jax.lax.map(one, ratios.total, batch_size=together)
    return _estimate(log_sum, marginals, ratios)


def infonce(rng_key: jax.Array, ratios: LogRatios, *, num_permutations: int) -> Estimate:
    """The paper's bound: the identity and K - 1 uniform permutations, K at least 2: with one, the bound is zero.

    The log mean of exp(M(s)) over the permutations s, in units of the group's order.
    """
    size = ratios.num_parts
    rows = jnp.arange(size)

    def one(rng_key: jax.Array, matrix: jax.Array) -> tuple[jax.Array, jax.Array]:
        keys = jax.random.split(rng_key, num_permutations - 1)
        others = jax.vmap(lambda key: jax.random.permutation(key, size))(keys)
        permutations = jnp.concatenate([rows[None], others])
        weights = jnp.sum(matrix[rows[None, :], permutations], axis=1)
        log_mean = jax.nn.logsumexp(weights) - math.log(num_permutations)
        where = jnp.broadcast_to(rows[None, :], permutations.shape)
        shares = jnp.broadcast_to(jax.nn.softmax(weights)[:, None], permutations.shape)
        mean = jnp.zeros_like(matrix).at[where, permutations].add(shares)
        return log_mean + math.lgamma(size + 1), mean

    keys = jax.random.split(rng_key, ratios.total.shape[0])
    return _estimate(*by_draw(one, keys, ratios.total), ratios)


def _estimate(log_sum: jax.Array, marginals: jax.Array, ratios: LogRatios) -> Estimate:
    """Add the control variate: P is a posterior mean given a set that holds the identity."""
    return Estimate(log_sum, jnp.sum(marginals * ratios.mean, axis=(1, 2)), marginals)
