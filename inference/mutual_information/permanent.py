"""The log permanent of a matrix of exponentials, exactly, and the marginals of its permutations.

Convention: log perm(e^M) = log sum over permutations s of exp(sum_i M_{i, s(i)}). Recursion over subsets (Bellman
1962; Held and Karp 1962): f(S), the log permanent of the first |S| rows on the columns S, is the log sum over j in S
of exp(M_{|S|-1, j}) f(S - j). All terms are positive and in the log domain, so that entries of any size do no harm;
Glynn's and Ryser's formulas are quicker but lose all digits by cancellation at large ranges. The subsets of a size
stand in one padded table, so that a loop over rows compiles once.

The derivative with respect to M_ij is P_ij, the probability that i goes to j under p(s) ~ exp(sum_i M_{i, s(i)}).
It is found with the value, and reverse mode takes it from there (forward mode is not available).

Marginals of permutations by fractional messages, for the training gradient where parts are many.

Convention: messages R (to columns) and C (to rows) of the fractional free energy

    <b, M> - sum b log b + c sum (1 - b) log(1 - b)

over doubly stochastic b, with c = 3/4, which bounds nothing (Chertkov and Yedidia 2013). They start with a column
half-step from R = 0: what they give then does not change with a column's scale, at any sweep.
"""

from functools import lru_cache
from itertools import combinations
from math import comb

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from onebasin.base.errors import ArgumentError

from .ratios import LogRatios, Matrices, by_draw

Matrix = Float[Array, "part part_bis"]  # A number of every pair of parts, or of rows and columns.
MAX_PARTS = 14  # Largest matrix: time and memory grow as 2^H H (padded: H^2 C(H, H/2)).


@jax.custom_vjp
def log_permanent(matrix: Matrix) -> Float[Array, ""]:
    """Log permanent of exp(matrix), of at most `MAX_PARTS` rows."""
    return _recursion(matrix)


def log_permanent_and_marginals(matrix: Matrix) -> tuple[Float[Array, ""], Matrix]:
    """The log permanent, and P (row, column): how probable it is that the row goes to the column."""
    return jax.value_and_grad(_recursion)(matrix)


log_permanent.defvjp(
    log_permanent_and_marginals, lambda marginals, cotangent: (cotangent * marginals,)
)


def check_size(num_parts: int) -> None:
    """Reject matrices that are too large."""
    if num_parts > MAX_PARTS:
        raise ArgumentError(
            f"The exact permanent was asked for {num_parts} components; its cost doubles with each, and at most "
            f"{MAX_PARTS} are allowed. Use 'fractional'."
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


BALANCING = 10  # Times that the marginals that train are scaled to row and column sums of one.


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
