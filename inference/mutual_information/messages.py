"""Fractional belief propagation for the permanent: marginals, free energies and the Sinkhorn bound.

Convention: F_c(b) = <b, M> - sum b log b + c sum (1 - b) log(1 - b) over doubly stochastic b. c = 1 is Bethe: at any
such b, F_1(b) <= log perm(e^M) (Gurvits 2011; Vontobel 2013). c = 0 is the entropy of Sinkhorn's scaling, whose dual
lies above log perm at any potentials. 1/2 and 3/4 lie between (Chertkov and Yedidia 2013) and bound nothing for sure.

Messages R (to columns) and C (to rows), with sums over all others for c = 1. They start with a column half-step from
R = 0: what they give then does not change with a column's scale, at any sweep, and moves along with the columns when
these are permuted. A proposal for permutations needs that. R is damped, since undamped sum-product can lock into
a cycle of two.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.scipy.special import entr, xlog1py
from jaxtyping import Array, Float

from .ratios import LogRatios

CONVERGED = {"float32": 1e-5, "float64": 1e-9}
"""Largest difference of row and column marginals at which messages count as converged."""


def marginals(
    matrix: Float[Array, "part part_bis"],
    *,
    fraction: float,
    sweeps: int = 25,
    damping: float = 0.1,
) -> Float[Array, "part part_bis"]:
    """Log marginals after a fixed number of sweeps, rows normalised; differentiable through the sweeps."""

    def step(rows: jax.Array, _: None) -> tuple[jax.Array, None]:
        return _sweep(matrix, rows, fraction, damping)[0], None

    rows = jax.lax.scan(step, jnp.zeros_like(matrix), None, length=sweeps)[0]
    return _row_marginals(matrix, rows, fraction)


def converged_marginals(
    matrix: Float[Array, "part part_bis"],
    *,
    fraction: float,
    max_sweeps: int = 1000,
    damping: float = 0.2,
) -> Float[Array, "part part_bis"]:
    """Log marginals when those of rows and columns agree, or after `max_sweeps`; no derivative."""
    matrix = jax.lax.stop_gradient(matrix)
    enough = CONVERGED[matrix.dtype.name]

    def unfinished(state: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
        return (state[1] > enough) & (state[2] < max_sweeps)

    def step(
        state: tuple[jax.Array, jax.Array, jax.Array],
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        rows, gap = _sweep(matrix, state[0], fraction, damping)
        return rows, gap, state[2] + 1

    start = (jnp.zeros_like(matrix), jnp.asarray(jnp.inf, matrix.dtype), jnp.asarray(0))
    rows = jax.lax.while_loop(unfinished, step, start)[0]
    return _row_marginals(matrix, rows, fraction)


def training_marginals(
    ratios: LogRatios, *, fraction: float = 0.75, sweeps: int = 15
) -> Float[Array, "draw part part_bis"]:
    """Marginals P of every draw for `path_gradient`: doubly stochastic, after a fixed number of sweeps; no derivative.

    The same messages as those of `marginals`, without damping and as numbers instead of their logarithms: a sweep takes
    two square roots an entry (for c = 3/4) and no exponential. What is below the range of numbers relative to the
    largest entry of a column counts as zero. For draws from q it is: E exp(M_ij) = 1, so that no entry is far above
    the column's own, zero. Matrices that are not log ratios of draws from q get finite weights, but poor ones.

    Parameters
    ----------
    ratios : LogRatios
        Of draws from q.
    fraction : float
        c, from 0 to 1. Near 1 messages can cycle, and P of near twins is 0 or 1.
    sweeps : int
        Of the messages.

    Raises
    ------
    ValueError
        If c is not between 0 and 1.
    """
    check_fraction(fraction)

    def one(matrix: jax.Array) -> jax.Array:
        return rounded(_scaled_sweeps(matrix, fraction, sweeps))

    return jax.vmap(one)(jax.lax.stop_gradient(ratios.total))


def check_fraction(fraction: float) -> None:
    """Refuse what is no c."""
    if not 0.0 <= fraction <= 1.0:
        raise ValueError(
            f"`fraction` is {fraction}; it must be between 0 and 1. Use 0.75 for a point estimate, `bethe` for c = 1."
        )


def doubly_stochastic(
    log_marginals: Float[Array, "part part_bis"],
) -> Float[Array, "part part_bis"]:
    """Round log marginals, so that bounds hold unconverged."""
    return rounded(jnp.exp(log_marginals))


def rounded(beliefs: Float[Array, "part part_bis"]) -> Float[Array, "part part_bis"]:
    """Round to row and column sums of one (Altschuler, Weed and Rigollet 2017)."""
    for axis in (1, 0):
        beliefs = beliefs / jnp.maximum(jnp.sum(beliefs, axis=axis, keepdims=True), 1.0)
    row, column = 1.0 - jnp.sum(beliefs, axis=1), 1.0 - jnp.sum(beliefs, axis=0)
    missing = jnp.sum(row)
    fill = row[:, None] * column[None, :] / jnp.where(missing > 0, missing, 1.0)
    return jnp.clip(beliefs + fill, 0.0, 1.0)


def free_energy(
    matrix: Float[Array, "part part_bis"],
    beliefs: Float[Array, "part part_bis"],
    *,
    fraction: float,
) -> Float[Array, ""]:
    """F_c; its derivative at converged beliefs, held fixed, is the beliefs (envelope theorem)."""
    fixed = jax.lax.stop_gradient(beliefs)
    exclusion = jnp.sum(xlog1py(1.0 - fixed, -fixed))
    return jnp.sum(fixed * matrix) + jnp.sum(entr(fixed)) + fraction * exclusion


def sinkhorn_bound(
    matrix: Float[Array, "part part_bis"], *, sweeps: int = 200
) -> tuple[Float[Array, ""], Float[Array, "part part_bis"]]:
    """An upper bound of the log permanent, sum_j m_j + sum_i log sum_j exp(M_ij - m_j), and its row marginals.

    It holds for any potentials m, since the product of row sums contains every permutation; those of so many
    Sinkhorn sweeps are held fixed in the derivative.
    """

    def step(potential: jax.Array, _: None) -> tuple[jax.Array, None]:
        scaled = matrix - jax.nn.logsumexp(matrix - potential[None, :], axis=1)[:, None]
        return jax.nn.logsumexp(scaled, axis=0), None

    potential = jax.nn.logsumexp(matrix, axis=0)
    potential = jax.lax.stop_gradient(jax.lax.scan(step, potential, None, length=sweeps)[0])
    shifted = matrix - potential[None, :]
    value = jnp.sum(potential) + jnp.sum(jax.nn.logsumexp(shifted, axis=1))
    return value, jax.nn.softmax(shifted, axis=1)


def _scaled_sweeps(matrix: jax.Array, fraction: float, sweeps: int) -> jax.Array:
    """Row marginals after undamped sweeps on exp(M + R) and exp(M + C) themselves."""
    least = float(jnp.finfo(matrix.dtype).tiny) ** 0.5
    weights = jnp.exp(matrix - jnp.max(matrix, axis=0, keepdims=True))

    def share(entries: jax.Array, axis: int) -> tuple[jax.Array, jax.Array]:
        """What a sum is divided by, and the marginals along an axis. The floor is of sums that lost all entries."""
        over = 1.0 / jnp.maximum(jnp.sum(entries, axis=axis, keepdims=True), least)
        return over, entries * over

    def turn(entries: jax.Array, axis: int) -> jax.Array:
        over, beliefs = share(entries, axis)
        return weights * (over * _inverse_power(1.0 - beliefs, fraction))

    def step(entries: jax.Array, _: None) -> tuple[jax.Array, None]:
        return turn(turn(entries, 0), 1), None

    entries = jax.lax.scan(step, weights, None, length=sweeps)[0]
    return share(turn(entries, 0), 1)[1]


def _inverse_power(rest: jax.Array, fraction: float) -> jax.Array:
    """Powers -c of 1 - P, which the rounding of P keeps no smaller than its unit."""
    rest = jnp.maximum(rest, jnp.finfo(rest.dtype).eps)
    if fraction == 0.75:
        root = jax.lax.rsqrt(rest)
        return root * jnp.sqrt(root)
    return rest**-fraction


def _sweep(
    matrix: jax.Array, rows: jax.Array, fraction: float, damping: float
) -> tuple[jax.Array, jax.Array]:
    """The next messages to the columns, and how far marginals of rows and columns are apart."""
    columns = _answer(matrix + rows, fraction, 0)
    fresh = _answer(matrix + columns, fraction, 1)
    by_row = jax.nn.softmax(matrix + columns, axis=1)
    by_column = jax.nn.softmax(matrix + fresh, axis=0)
    return (1.0 - damping) * fresh + damping * rows, jnp.max(jnp.abs(by_row - by_column))


def _row_marginals(matrix: jax.Array, rows: jax.Array, fraction: float) -> jax.Array:
    return jax.nn.log_softmax(matrix + _answer(matrix + rows, fraction, 0), axis=1)


def _answer(scores: jax.Array, fraction: float, axis: int) -> jax.Array:
    """-(1 - c) log sum over all - c log sum over the others, along an axis."""
    total = jax.nn.logsumexp(scores, axis=axis, keepdims=True)
    if scores.shape[axis] == 1:  # No others: the only marginal is one whatever is answered.
        return -total
    return -(1.0 - fraction) * total - fraction * _others(scores, total, axis)


def _others(scores: jax.Array, total: jax.Array, axis: int) -> jax.Array:
    """Log sum of all entries but one; subtracted in the log domain, where none but the largest can cancel."""
    place = jax.lax.broadcasted_iota(jnp.int32, scores.shape, axis)
    largest = place == jnp.argmax(scores, axis=axis, keepdims=True)
    rest = jax.nn.logsumexp(jnp.where(largest, -jnp.inf, scores), axis=axis, keepdims=True)
    # At most half of the sum: the guard keeps the unused branch, and its derivative, finite.
    share = jnp.where(largest, -1.0, scores - total)
    return jnp.where(largest, rest, total + jnp.log1p(-jnp.exp(share)))
