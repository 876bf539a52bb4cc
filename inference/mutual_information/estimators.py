"""Estimators of l(w) = log perm(e^A) - tr A, each with the side of the truth on which its mutual information lies.

I = log |G| - E_q[l] (see `ratios`), so that a bound of l from above is one of I from below.

| estimator        | side     | holds                                                                        |
| ---------------- | -------- | ---------------------------------------------------------------------------- |
| `exact`          | exact    | draw by draw; few parts                                                      |
| `infonce`        | lower    | in expectation over w from q; never above log K (K 2^H with flips)           |
| `barber_agakov`  | lower    | in expectation; `importance` with one permutation, without noise of its own  |
| `importance`     | lower    | in expectation, for any K; rises to the truth with K                         |
| `proposals_only` | upper    | in expectation, for any K; falls to the truth with K                         |
| `bethe`          | upper    | draw by draw: no bound of the evidence                                       |

Why the identity counts: with w from q, the identity is itself an exact draw from the posterior over permutations.
Taken into the average with its weight 1 / r(e), it turns Jensen's inequality round, whatever the
proposal r, as long as r is equivariant (Sobolev and Vetrov 2019). A uniform r gives InfoNCE, Theorem 4.3 of Gelberg et
al. 2024; one departure: signs are summed in closed form, not drawn, which can only tighten it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from .messages import (
    ChoosingOrder,
    converged_marginals,
    doubly_stochastic,
    free_energy,
    log_probability,
    propose,
    sample,
)
from .permanent import log_permanent, log_permanent_and_marginals
from .ratios import LogRatios, by_draw

Proposed = tuple[Int[Array, "sample part"], Float[Array, " sample"]]
"""Permutations, and the log probabilities with which they were proposed."""


class Estimate(NamedTuple):
    """The numbers that an estimator gives for every draw.

    - `log_sum` (draw,): estimates of l(w), in nats.
    - `control` (draw,): <P, A> - tr A, of mean zero over w from q (zero where an estimator has none): added to I, it
      takes away most of the spread over draws.
    - `marginals` (draw, part, part_bis): P, how probable it is that a part's distribution is that of another part of
      the draw; also the derivative of `log_sum`, except for `barber_agakov`.
    - `effective` (draw,): effective number of permutations, (sum of weights)^2 / sum of squares; 1 where none are
      drawn. A few out of many mean a loose bound.
    """

    log_sum: jax.Array
    control: jax.Array
    marginals: jax.Array
    effective: jax.Array


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
    return _estimate(log_sum, marginals, ratios, centred=True)


def infonce(rng_key: jax.Array, ratios: LogRatios, *, num_permutations: int) -> Estimate:
    """The paper's bound: the identity and K - 1 uniform permutations, K at least 2: with one, the bound is zero."""

    def one(rng_key: jax.Array, matrix: jax.Array) -> Proposed:
        keys = jax.random.split(rng_key, num_permutations - 1)
        size = matrix.shape[0]
        others = jax.vmap(lambda key: jax.random.permutation(key, size))(keys)
        permutations = jnp.concatenate([jnp.arange(size)[None], others])
        return permutations, jnp.full(num_permutations, -math.lgamma(size + 1), dtype=matrix.dtype)

    return _weighted(one, rng_key, ratios, centred=True)


def importance(
    rng_key: jax.Array, ratios: LogRatios, *, num_permutations: int, sweeps: int = 25
) -> Estimate:
    """Importance sampling from `proposal`, the identity among the permutations: a lower bound for any K.

    The derivative holds the proposal fixed and is P, the mean over the weighted permutations. `sweeps` are those of the
    messages behind the proposal. Time is O(sweeps H^2 + K H^2), memory O(draw K H).
    """

    def one(rng_key: jax.Array, matrix: jax.Array) -> Proposed:
        identity = jnp.arange(matrix.shape[0])
        proposal = propose(jax.lax.stop_gradient(matrix), sweeps=sweeps)
        own = log_probability(proposal, identity)
        others, log_prob = _draw(rng_key, proposal, num_permutations - 1)
        permutations = jnp.concatenate([identity[None], others.astype(identity.dtype)])
        return permutations, jnp.concatenate([own[None], log_prob])

    return _weighted(one, rng_key, ratios, centred=True)


def proposals_only(
    rng_key: jax.Array, ratios: LogRatios, *, num_permutations: int, sweeps: int = 25
) -> Estimate:
    """Importance sampling without the identity: an upper bound of I, and so none of the evidence."""

    def one(rng_key: jax.Array, matrix: jax.Array) -> Proposed:
        proposal = propose(jax.lax.stop_gradient(matrix), sweeps=sweeps)
        return _draw(rng_key, proposal, num_permutations)

    return _weighted(one, rng_key, ratios, centred=False)


def barber_agakov(rng_key: jax.Array, ratios: LogRatios, *, sweeps: int = 10) -> Estimate:
    """The bound of Barber and Agakov 2003 with r of `proposal`: I >= log |G| + E log r(e); nothing is drawn.

    The derivative is that of the bound itself, through the sweeps.
    """

    def one(matrix: jax.Array) -> jax.Array:
        identity = jnp.arange(matrix.shape[0])
        return jnp.trace(matrix) - log_probability(propose(matrix, sweeps=sweeps), identity)

    same = jnp.eye(ratios.num_parts, dtype=ratios.total.dtype)
    marginals = jnp.broadcast_to(same[None], ratios.total.shape)
    return _estimate(by_draw(one, ratios.total), marginals, ratios, centred=True)


def bethe(rng_key: jax.Array, ratios: LogRatios, *, max_sweeps: int = 1000) -> Estimate:
    """Bethe's free energy at marginals rounded to be doubly stochastic, converged or not: I is never too small.

    Where the identity alone gives more than Bethe, it is taken.
    """

    def one(matrix: jax.Array) -> tuple[jax.Array, jax.Array]:
        beliefs = doubly_stochastic(converged_marginals(matrix, max_sweeps=max_sweeps))
        value, identity = free_energy(matrix, beliefs), jnp.trace(matrix)
        same = jnp.eye(matrix.shape[0], dtype=matrix.dtype)
        low = value < identity
        return jnp.where(low, identity, value), jnp.where(low, same, beliefs)

    return _estimate(*by_draw(one, ratios.total), ratios, centred=False)


def _weighted(
    draw: Callable[[jax.Array, jax.Array], tuple[jax.Array, jax.Array]],
    rng_key: jax.Array,
    ratios: LogRatios,
    *,
    centred: bool,
) -> Estimate:
    """The log mean of exp(M(s)) / r(s) over the permutations s (sample, part) and log r (sample,) of `draw`."""

    def one(rng_key: jax.Array, matrix: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        permutations, log_prob = draw(rng_key, matrix)
        rows = jnp.arange(matrix.shape[0])
        terms = matrix[rows[None, :], permutations]
        log_weights = jnp.sum(terms, axis=1) - jax.lax.stop_gradient(log_prob)
        log_mean = jax.nn.logsumexp(log_weights) - math.log(log_weights.shape[0])
        share = jax.nn.softmax(log_weights)
        where = jnp.broadcast_to(rows[None, :], permutations.shape)
        shares = jnp.broadcast_to(share[:, None], permutations.shape)
        mean = jnp.zeros_like(matrix).at[where, permutations].add(shares)
        return log_mean, mean, 1.0 / jnp.sum(share**2)

    keys = jax.random.split(rng_key, ratios.total.shape[0])
    log_sum, mean, effective = by_draw(one, keys, ratios.total)
    return _estimate(log_sum, mean, ratios, centred=centred, effective=effective)


def _estimate(
    log_sum: jax.Array,
    marginals: jax.Array,
    ratios: LogRatios,
    *,
    centred: bool,
    effective: jax.Array | None = None,
) -> Estimate:
    """Add the control variate where P is a posterior mean given a set that holds the identity."""
    zero = jnp.zeros_like(log_sum)
    control = jnp.sum(marginals * ratios.mean, axis=(1, 2)) if centred else zero
    return Estimate(log_sum, control, marginals, zero + 1.0 if effective is None else effective)


def _draw(rng_key: jax.Array, proposal: ChoosingOrder, num: int) -> Proposed:
    """Permutations from a proposal, with their log probabilities."""
    return jax.vmap(lambda key: sample(key, proposal))(jax.random.split(rng_key, num))
