"""The log permanent of a matrix of exponentials, exactly, and the marginals of its permutations.

Convention: log perm(e^M) = log sum over permutations s of exp(sum_i M_{i, s(i)}). Recursion over subsets (Bellman
1962; Held and Karp 1962): f(S), the log permanent of the first |S| rows on the columns S, is the log sum over j in S
of exp(M_{|S|-1, j}) f(S - j). All terms are positive and in the log domain, so that entries of any size do no harm;
Glynn's and Ryser's formulas are quicker but lose all digits by cancellation at large ranges. The subsets of a size
stand in one padded table, so that a loop over rows compiles once.

The derivative with respect to M_ij is P_ij, the probability that i goes to j under p(s) ~ exp(sum_i M_{i, s(i)}).
It is found with the value, and reverse mode takes it from there (forward mode is not available).

For training, `exact_marginals` runs the same recursion on numbers instead of their logarithms, from both ends:

    P_ij ~ K_ij sum over S of |S| = i without j of f(S) b(S + j),    b(S) = sum over j not in S of K_{|S|, j} b(S + j).
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations, pairwise
from math import comb

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from onebasin.base.errors import ArgumentError

from .messages import doubly_stochastic
from .ratios import LogRatios

MAX_PARTS = 14
"""Largest matrix: time and memory grow as 2^H H (padded: H^2 C(H, H/2))."""


@jax.custom_vjp
def log_permanent(matrix: Float[Array, "part part_bis"]) -> Float[Array, ""]:
    """Log permanent of exp(matrix), of at most `MAX_PARTS` rows.

    Raises
    ------
    ValueError
        If the matrix is larger.
    """
    return _recursion(matrix)


def log_permanent_and_marginals(
    matrix: Float[Array, "part part_bis"],
) -> tuple[Float[Array, ""], Float[Array, "part part_bis"]]:
    """The log permanent, and P (row, column): how probable it is that the row goes to the column."""
    return jax.value_and_grad(_recursion)(matrix)


def exact_marginals(ratios: LogRatios) -> Float[Array, "draw part part_bis"]:
    """Exact marginals P of every draw for `path_gradient`, quickly; no derivative.

    Ten times as fast as `exact` for twelve parts. What underflows relative to the largest term of its size is left out.
    For draws from q that is nothing: their identity has the weight one, and E exp(M_ij) = 1. Of matrices that are no
    log ratios of draws from q, the marginals are finite, but poor.

    Raises
    ------
    ValueError
        If there are more than `MAX_PARTS` parts.
    """
    check_size(ratios.num_parts)
    return jax.lax.map(_scaled_marginals, jax.lax.stop_gradient(ratios.total))


def _forward(matrix: jax.Array) -> tuple[jax.Array, jax.Array]:
    return log_permanent_and_marginals(matrix)


def _backward(marginals: jax.Array, cotangent: jax.Array) -> tuple[jax.Array]:
    return (cotangent * marginals,)


log_permanent.defvjp(_forward, _backward)


def check_size(num_parts: int) -> None:
    """Refuse matrices that are too large."""
    if num_parts > MAX_PARTS:
        raise ArgumentError(
            f"The exact permanent was asked for {num_parts} components; its cost doubles with each, and at most "
            f"{MAX_PARTS} are allowed. Use `importance` for a lower bound and `bethe` for an upper one."
        )


def _recursion(matrix: jax.Array) -> jax.Array:
    num_parts = matrix.shape[-1]
    check_size(num_parts)
    before, last = (jnp.asarray(table) for table in _tables(num_parts))

    def row(level: jax.Array, entries: tuple[jax.Array, ...]) -> tuple[jax.Array, None]:
        values, previous, column = entries
        terms = jnp.where(previous >= 0, level[previous] + values[column], -jnp.inf)
        return jax.nn.logsumexp(terms, axis=-1), None

    empty = jnp.zeros(before.shape[1], matrix.dtype)
    return jax.lax.scan(row, empty, (matrix, before, last))[0][0]


def _scaled_marginals(matrix: jax.Array) -> jax.Array:
    weights = jnp.exp(matrix - jnp.max(matrix, axis=0, keepdims=True))
    before, after = _neighbours(matrix.shape[0])
    first = [jnp.ones(1, matrix.dtype)]
    for row, table in zip(weights, before, strict=True):
        first.append(_scaled(_at(first[-1], table) @ row))
    last, beliefs = jnp.ones(1, matrix.dtype), []
    for row, table, values in list(zip(weights, after, first[:-1], strict=True))[::-1]:
        found = _at(last, table)
        beliefs.append(row * (values @ found))
        last = _scaled(found @ row)
    each = jnp.stack(beliefs[::-1])
    return doubly_stochastic(jnp.log(each / _positive(jnp.sum(each, axis=1, keepdims=True))))


def _at(values: jax.Array, table: np.ndarray) -> jax.Array:
    """Values of the subsets of a table, with zero for none."""
    return jnp.concatenate([values, jnp.zeros(1, values.dtype)])[jnp.asarray(table)]


def _scaled(values: jax.Array) -> jax.Array:
    return values / _positive(jnp.max(values))


def _positive(scale: jax.Array) -> jax.Array:
    """One for a scale of zero, where all terms are lost."""
    return jnp.where(scale == 0.0, 1.0, scale)


@lru_cache(maxsize=MAX_PARTS)
def _neighbours(num_parts: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Places (subset, member) of subsets of the next size without the member, and of this size with it.

    The first has an entry for every size from 1, the second for every size from 0; where there is no such subset, the
    place is one after the last.
    """
    subsets = [list(combinations(range(num_parts), size)) for size in range(num_parts + 1)]
    pairs = list(pairwise(subsets))
    before = [np.full((len(large), num_parts), len(small), np.int32) for small, large in pairs]
    after = [np.full((len(small), num_parts), len(large), np.int32) for small, large in pairs]
    for size in range(num_parts):
        place = {subset: at for at, subset in enumerate(subsets[size])}
        for at, subset in enumerate(subsets[size + 1]):
            for member in subset:
                without = place[tuple(j for j in subset if j != member)]
                before[size][at, member] = without
                after[size][without, member] = at
    return before, after


@lru_cache(maxsize=MAX_PARTS)
def _tables(num_parts: int) -> tuple[np.ndarray, np.ndarray]:
    """Return, by row, subset and member, the place of the subset without the member (-1: padding), and the member.

    Rows of padding repeat the first subset, so that none is empty and every log sum is finite.
    """
    width = comb(num_parts, num_parts // 2)
    before = np.full((num_parts, width, num_parts), -1, np.int32)
    last = np.zeros((num_parts, width, num_parts), np.int32)
    place: dict[tuple[int, ...], int] = {(): 0}
    for row in range(num_parts):
        subsets = list(combinations(range(num_parts), row + 1))
        for at, subset in enumerate(subsets):
            for member, column in enumerate(subset):
                before[row, at, member] = place[subset[:member] + subset[member + 1 :]]
                last[row, at, member] = column
        before[row, len(subsets) :] = before[row, 0]
        last[row, len(subsets) :] = last[row, 0]
        place = {subset: at for at, subset in enumerate(subsets)}
    return before, last
