"""Fractional belief propagation for the permanent: marginals and the Bethe free energy.

Convention: F_c(b) = <b, M> - sum b log b + c sum (1 - b) log(1 - b) over doubly stochastic b. c = 1 is Bethe: at any
such b, F_1(b) <= log perm(e^M) (Gurvits 2011; Vontobel 2013). c = 0 is the entropy of Sinkhorn's scaling; c = 3/4 lies
between (Chertkov and Yedidia 2013) and bounds nothing for sure.

Messages R (to columns) and C (to rows), with sums over all others for c = 1. They start with a column half-step from
R = 0: what they give then does not change with a column's scale, at any sweep, and moves along with the columns when
these are permuted. A proposal for permutations needs that. Where they shall converge R is damped, since undamped
sum-product can lock into a cycle of two.

A distribution over permutations that is near p(s) ~ exp(sum_i M_{i, s(i)}), normalised and quick to draw from.

Marginals from fractional messages (c = 3/4, fixed sweeps: at c = 1 they can be 0 or 1 where the truth is neither); rows
in order of their entropy, the most certain first; then each row takes a free column with weight gamma_ij / sum over the
rows still to come of gamma_kj, the hazard of column j. Uniform where all parts are equal, a single permutation where
they are far apart. Any column can be drawn at any row, so that no permutation has probability zero.

It is equivariant: with the columns permuted, so are the permutations drawn. The lower bounds of `estimators` rest on
that; nothing here may know which permutation is the identity.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import entr, xlog1py
from jaxtyping import Array, Float, Int

from .permanent import Matrix
from .ratios import LogRatios, Matrices, by_draw

CONVERGED = {"float32": 1e-5, "float64": 1e-9}
"""Largest difference of row and column marginals at which messages count as converged."""

DAMPING = 0.2
"""Share of the old messages in the new ones, where they shall converge."""

BALANCING = 10
"""Times that the marginals that train are scaled to row and column sums of one."""


def marginals(matrix: Matrix, *, sweeps: int = 25) -> Matrix:
    """Log marginals of c = 3/4 after so many undamped sweeps, rows normalised; differentiable through the sweeps.

    The sweeps run on exp(M + R) and exp(M + C) themselves, relative to the largest entry of a column: two square
    roots an entry and no exponential. What underflows counts as zero in them. For log ratios of draws from q it is:
    E exp(M_ij) = 1, so that no entry of a column is far above its own, zero. The marginals of matrices that are nothing
    of the kind are finite, but poor.
    """
    scaled = matrix - jax.lax.stop_gradient(jnp.max(matrix, axis=0, keepdims=True))
    weights = jnp.exp(scaled)

    @jax.checkpoint
    def step(entries: jax.Array, _: None) -> tuple[jax.Array, None]:
        return weights * _turned(weights * _turned(entries, 0), 1), None

    entries = jax.lax.scan(step, weights, None, length=sweeps)[0]
    return jax.nn.log_softmax(scaled + jnp.log(_turned(entries, 0)), axis=1)


def converged_marginals(matrix: Matrix, *, max_sweeps: int = 1000) -> Matrix:
    """Log marginals of c = 1 when those of rows and columns agree, or after `max_sweeps`; no derivative."""
    matrix = jax.lax.stop_gradient(matrix)
    enough = CONVERGED[matrix.dtype.name]

    def unfinished(state: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
        return (state[1] > enough) & (state[2] < max_sweeps)

    def step(
        state: tuple[jax.Array, jax.Array, jax.Array],
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        rows, _, done = state
        columns = _answer(matrix + rows, 0)
        fresh = _answer(matrix + columns, 1)
        by_row = jax.nn.softmax(matrix + columns, axis=1)
        by_column = jax.nn.softmax(matrix + fresh, axis=0)
        gap = jnp.max(jnp.abs(by_row - by_column))
        return (1.0 - DAMPING) * fresh + DAMPING * rows, gap, done + 1

    start = (jnp.zeros_like(matrix), jnp.asarray(jnp.inf, matrix.dtype), jnp.asarray(0))
    rows = jax.lax.while_loop(unfinished, step, start)[0]
    return jax.nn.log_softmax(matrix + _answer(matrix + rows, 0), axis=1)


def training_marginals(ratios: LogRatios, *, sweeps: int = 15) -> Matrices:
    """Marginals P of every draw for `path_gradient`: those of `marginals`, balanced, with no derivative.

    Rows and columns are scaled in turn (Sinkhorn and Knopp 1967), columns last, so that a pair that is next to
    impossible stays so: `path_gradient` multiplies it by the square of a precision, which nothing but its probability
    holds down. `doubly_stochastic` hands out what is missing to all pairs equally.
    """

    def one(matrix: jax.Array) -> jax.Array:
        return balanced(marginals(matrix, sweeps=sweeps))

    return by_draw(one, jax.lax.stop_gradient(ratios.total))


def balanced(log_marginals: Matrix) -> Matrix:
    """Scale rows and columns to sums of one in turn, columns last; pairs keep the order of their probabilities."""

    def step(logs: jax.Array, _: None) -> tuple[jax.Array, None]:
        return jax.nn.log_softmax(jax.nn.log_softmax(logs, axis=1), axis=0), None

    return jnp.exp(jax.lax.scan(step, log_marginals, None, length=BALANCING)[0])


def doubly_stochastic(log_marginals: Matrix) -> Matrix:
    """Round to row and column sums of one (Altschuler, Weed and Rigollet 2017), so that bounds hold unconverged."""
    beliefs = jnp.exp(log_marginals)
    for axis in (1, 0):
        beliefs = beliefs / jnp.maximum(jnp.sum(beliefs, axis=axis, keepdims=True), 1.0)
    row, column = 1.0 - jnp.sum(beliefs, axis=1), 1.0 - jnp.sum(beliefs, axis=0)
    missing = jnp.sum(row)
    fill = row[:, None] * column[None, :] / jnp.where(missing > 0, missing, 1.0)
    return jnp.clip(beliefs + fill, 0.0, 1.0)


def free_energy(matrix: Matrix, beliefs: Matrix) -> Float[Array, ""]:
    """F_1; its derivative at converged beliefs, held fixed, is the beliefs (envelope theorem)."""
    fixed = jax.lax.stop_gradient(beliefs)
    exclusion = jnp.sum(xlog1py(1.0 - fixed, -fixed))
    return jnp.sum(fixed * matrix) + jnp.sum(entr(fixed)) + exclusion


def _turned(entries: jax.Array, axis: int) -> jax.Array:
    """The next messages, as numbers: (1 - P)^-3/4 over the sum, of the entries' marginals P along an axis."""
    total = jnp.sum(entries, axis=axis, keepdims=True)
    # A sum that lost all of its entries has no marginals; one is as good as any other number then.
    over = 1.0 / jnp.where(total < float(jnp.finfo(entries.dtype).tiny) ** 0.4, 1.0, total)
    # The rounding of P keeps 1 - P no smaller than its unit.
    rest = 1.0 - entries * over
    root = jax.lax.rsqrt(jnp.maximum(rest, jnp.finfo(rest.dtype).eps))
    return over * (root * jnp.sqrt(root))


def _answer(scores: jax.Array, axis: int) -> jax.Array:
    """Minus the log sum over the others along an axis: one exponential and logarithm an entry.

    The others of a single largest entry are summed by themselves; those of the rest are all less at most half of it.
    """
    if scores.shape[axis] == 1:  # No others: the only marginal is one whatever is answered.
        return -scores
    top = jnp.max(scores, axis=axis, keepdims=True)
    largest = scores == top
    largest &= jnp.sum(largest, axis=axis, keepdims=True) == 1
    below = jnp.where(largest, -jnp.inf, scores)
    second = jnp.max(below, axis=axis, keepdims=True)
    relative = jnp.exp(below - second)
    rest = second + jnp.log(jnp.sum(relative, axis=axis, keepdims=True))
    total = jnp.where(second == top, rest, jnp.logaddexp(top, rest))
    others = jnp.where(largest, rest - total, jnp.log1p(-relative * jnp.exp(second - total)))
    return -total - others


STRETCH = 32
"""Columns that are taken together at first when one is drawn."""


class ChoosingOrder(NamedTuple):
    """Rows in the order in which they choose, and the log weights with which they do.

    `order` (part,) is the row that chooses first, second, ...; `log_weights` (part, part_bis) are in that order.
    """

    order: jax.Array
    log_weights: jax.Array


def propose(matrix: Matrix, *, sweeps: int = 25) -> ChoosingOrder:
    """The proposal for one matrix M, differentiable in it."""
    log_gamma = marginals(matrix, sweeps=sweeps)
    order = jnp.argsort(jnp.sum(entr(jnp.exp(log_gamma)), axis=1))
    log_gamma = log_gamma[order]
    unused = jax.lax.cumsum(jnp.exp(log_gamma), axis=0, reverse=True)
    # A column that is used up for sure; by how much only says how improbable rows still are that take it all the same.
    least = float(jnp.finfo(matrix.dtype).tiny) ** 0.4
    return ChoosingOrder(order, log_gamma - jnp.log(jnp.maximum(unused, least)))


def log_probability(proposal: ChoosingOrder, permutation: Int[Array, " part"]) -> Float[Array, ""]:
    """Log probability of a permutation, given as the column of each row."""
    weights = proposal.log_weights[:, permutation[proposal.order]]
    free = jnp.triu(jnp.ones(weights.shape, bool))
    total = jax.nn.logsumexp(jnp.where(free, weights, -jnp.inf), axis=1)
    return jnp.sum(jnp.diagonal(weights) - total)


def sample(
    rng_key: jax.Array, proposal: ChoosingOrder
) -> tuple[Int[Array, " part"], Float[Array, ""]]:
    """One permutation, as the column of each row, and its log probability."""

    def choose(free: jax.Array, entries: tuple[jax.Array, ...]) -> tuple[jax.Array, tuple]:
        weights, uniform = entries
        open_weights = jnp.where(free, weights, -jnp.inf)
        top = jnp.max(open_weights)
        share = jnp.exp(open_weights - top)
        # First a stretch of columns, then a column in it: running sums of all would be most of the work.
        stretches = jnp.pad(share, (0, -len(share) % STRETCH)).reshape(-1, STRETCH)
        sums = jnp.sum(stretches, axis=1)
        total = jnp.sum(sums)
        stretch, rest = _first_above(sums, uniform * total)
        column = stretch * STRETCH + _first_above(stretches[stretch], rest)[0]
        log_chosen = weights[column] - top - jnp.log(total)
        return free.at[column].set(False), (column, log_chosen)

    size = proposal.order.shape[0]
    uniforms = jax.random.uniform(rng_key, (size,), proposal.log_weights.dtype)
    entries = (proposal.log_weights, uniforms)
    columns, log_chosen = jax.lax.scan(choose, jnp.ones(size, bool), entries)[1]
    permutation = jnp.zeros(size, columns.dtype).at[proposal.order].set(columns)
    return permutation, jnp.sum(log_chosen)


def _first_above(share: jax.Array, target: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The first place with a share at which the running sum is above a target, and what the target goes into it.

    Where rounding leaves none above, it is the last place with a share: one without is never taken.
    """
    place = jnp.arange(share.shape[0])
    running = jnp.cumsum(share)
    last = jnp.max(jnp.where(share > 0, place, 0))
    first = jnp.min(jnp.where((share > 0) & (running > target), place, last))
    return first, target - (running[first] - share[first])
