"""A distribution over permutations that is near p(s) ~ exp(sum_i M_{i, s(i)}), normalised and quick to draw from.

Marginals from fractional messages (c = 3/4, fixed sweeps); rows in order of their entropy, the most certain
first; then each row takes a free column with weight gamma_ij / sum over the rows still to come of gamma_kj, the hazard
of column j. Uniform where all parts are alike, a single permutation where they are far apart. Any column can be drawn
at any row, so that no permutation has probability zero.

It is equivariant: with the columns permuted, so are the permutations drawn. The lower bounds of `estimators` rest on
that; nothing here may know which permutation is the identity.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.scipy.special import entr
from jaxtyping import Array, Float, Int

from .messages import marginals
from .ratios import pytree

FRACTION = 0.75
"""c of the messages. At c = 1 marginals can be 0 or 1 where the truth is neither; at 1/2 they are vaguer."""

STRETCH = 32
"""Columns that are taken together at first when one is drawn."""


@pytree()
@dataclass(frozen=True)
class Proposal:
    """Rows in the order in which they choose, and the log weights with which they do.

    Attributes
    ----------
    order : array (part,)
        Row that chooses first, second, ...
    log_weights : array (part, part_bis)
        Of the rows in that order.
    """

    order: Int[Array, "*batch part"]
    log_weights: Float[Array, "*batch part part_bis"]


def propose(matrix: Float[Array, "part part_bis"], *, sweeps: int = 25) -> Proposal:
    """The proposal for one matrix M, differentiable in it."""
    log_gamma = marginals(matrix, fraction=FRACTION, sweeps=sweeps)
    order = jnp.argsort(jnp.sum(entr(jnp.exp(log_gamma)), axis=1))
    log_gamma = log_gamma[order]
    unused = jax.lax.cumsum(jnp.exp(log_gamma), axis=0, reverse=True)
    # A column that is used up for sure; by how much only says how improbable rows still are that take it all the same.
    least = float(jnp.finfo(matrix.dtype).tiny) ** 0.4
    return Proposal(order, log_gamma - jnp.log(jnp.maximum(unused, least)))


def log_probability(proposal: Proposal, permutation: Int[Array, " part"]) -> Float[Array, ""]:
    """Log probability of a permutation, given as the column of each row."""
    weights = proposal.log_weights[:, permutation[proposal.order]]
    free = jnp.triu(jnp.ones(weights.shape, bool))
    total = jax.nn.logsumexp(jnp.where(free, weights, -jnp.inf), axis=1)
    return jnp.sum(jnp.diagonal(weights) - total)


def sample(rng_key: jax.Array, proposal: Proposal) -> tuple[Int[Array, " part"], Float[Array, ""]]:
    """One permutation, as the column of each row, and its log probability."""

    def choose(free: jax.Array, entries: tuple[jax.Array, ...]) -> tuple[jax.Array, tuple]:
        weights, uniform = entries
        open_weights = jnp.where(free, weights, -jnp.inf)
        top = jnp.max(open_weights)
        share = jnp.exp(open_weights - top)
        column, total = _inverse(share, uniform)
        log_chosen = weights[column] - top - jnp.log(total)
        return free.at[column].set(False), (column, log_chosen)

    size = proposal.order.shape[0]
    uniforms = jax.random.uniform(rng_key, (size,), proposal.log_weights.dtype)
    entries = (proposal.log_weights, uniforms)
    columns, log_chosen = jax.lax.scan(choose, jnp.ones(size, bool), entries)[1]
    permutation = jnp.zeros(size, columns.dtype).at[proposal.order].set(columns)
    return permutation, jnp.sum(log_chosen)


def _inverse(share: jax.Array, uniform: jax.Array) -> tuple[jax.Array, jax.Array]:
    """A place with probability in proportion to its share, by one uniform number; and the sum of the shares.

    First a stretch of places, then a place in it: running sums of all would be most of the work.
    """
    size = share.shape[0]
    stretches = jnp.pad(share, (0, -size % STRETCH)).reshape(-1, STRETCH)
    sums = jnp.sum(stretches, axis=1)
    total = jnp.sum(sums)
    stretch, rest = _first_above(sums, uniform * total)
    return stretch * STRETCH + _first_above(stretches[stretch], rest)[0], total


def _first_above(share: jax.Array, target: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The first place with a share at which the running sum is above a target, and what the target goes into it.

    Where rounding leaves none above, it is the last place with a share: one without is never taken.
    """
    place = jnp.arange(share.shape[0])
    running = jnp.cumsum(share)
    last = jnp.max(jnp.where(share > 0, place, 0))
    first = jnp.min(jnp.where((share > 0) & (running > target), place, last))
    return first, target - (running[first] - share[first])
