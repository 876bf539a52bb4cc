"""Marginals of permutations by fractional messages, for the training gradient where parts are many.

Convention: messages R (to columns) and C (to rows) of the fractional free energy

    <b, M> - sum b log b + c sum (1 - b) log(1 - b)

over doubly stochastic b, with c = 3/4, which bounds nothing (Chertkov and Yedidia 2013). They start with a column
half-step from R = 0: what they give then does not change with a column's scale, at any sweep.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from .permanent import Matrix
from .ratios import LogRatios, Matrices, by_draw

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


def training_marginals(ratios: LogRatios, *, sweeps: int = 15) -> Matrices:
    """Marginals P of every draw for the training gradient: those of `marginals`, balanced, with no derivative.

    Rows and columns are scaled in turn (Sinkhorn and Knopp 1967), columns last, so that a pair that is next to
    impossible stays so: its derivative grows with a precision, which nothing but its probability holds down.
    """

    def one(matrix: jax.Array) -> jax.Array:
        return balanced(marginals(matrix, sweeps=sweeps))

    return by_draw(one, jax.lax.stop_gradient(ratios.total))


def balanced(log_marginals: Matrix) -> Matrix:
    """Scale rows and columns to sums of one in turn, columns last; pairs keep the order of their probabilities."""

    def step(logs: jax.Array, _: None) -> tuple[jax.Array, None]:
        return jax.nn.log_softmax(jax.nn.log_softmax(logs, axis=1), axis=0), None

    return jnp.exp(jax.lax.scan(step, log_marginals, None, length=BALANCING)[0])


def _turned(entries: jax.Array, axis: int) -> jax.Array:
    """The next messages, as numbers: (1 - P)^-3/4 over the sum, of the entries' marginals P along an axis."""
    total = jnp.sum(entries, axis=axis, keepdims=True)
    # A sum that lost all of its entries has no marginals; one is as good as any other number then.
    over = 1.0 / jnp.where(total < float(jnp.finfo(entries.dtype).tiny) ** 0.4, 1.0, total)
    # The rounding of P keeps 1 - P no smaller than its unit.
    rest = 1.0 - entries * over
    root = jax.lax.rsqrt(jnp.maximum(rest, jnp.finfo(rest.dtype).eps))
    return over * (root * jnp.sqrt(root))
