"""The mutual information between a group element and the draw that it moved: exact, estimated, and bounded.

Log densities of parts. The approximation q(w) = q_0(w_0) prod_i q_i(u_i) is independent over parts. The vector u_j
holds everything that moves with part j, and A_ij = log q_i(u_j), with distributions as rows and parts as columns. The
symmetrised q^G(w) is q_0(w_0) perm(e^A) / |G|, so the mutual information I between a uniform group element and the
moved draw, which the symmetrised ELBO adds to the ELBO, is

    I = log |G| - E_q[l(w)],    l(w) = log perm(e^A) - tr A >= 0.

With sign flips, B_ij = log(q_i(u_j) + q_i(-u_j)) replaces A in the permanent, and |G| = 2^H H!. Only the log ratios
M_ij = B_ij - A_jj are kept: constants of q_i cancel, and l(w) = log perm(e^M). The ELBO is that of Gelberg et al.
2024, who use InfoNCE. The permanent requires parts that are independent given w_0, and q_i that do not depend on w_0.

Log ratios of Gaussian parts. For independent normals the square is expanded, so that all pairs need two matrix
products and no array of size (part, part, param),

    log q_i(u) = -1/2 sum_d p_id u_d^2 + sum_d p_id loc_id u_d - 1/2 sum_d p_id loc_id^2 - sum_d log scale_id,

with p = 1 / scale^2, and u and loc relative to the mean of loc over parts. This loses precision in proportion to the
largest term. In single precision, the ratios of similar parts are accurate to about 1e-3, and those of distant parts
do not matter. A part's own density is computed from its standardised residuals instead, and M_ii is zero.

Exact permanent. The recursion over subsets (Bellman 1962; Held and Karp 1962) sets f(S), the log permanent of the first
|S| rows on the columns S, to the log sum over j in S of exp(M_{|S|-1, j}) f(S - j). All terms are positive and in the
log domain, so entries of any size are safe; Glynn's and Ryser's formulas are faster but cancel. The derivative by M_ij
(reverse mode only) is P_ij, the probability that i goes to j under p(s) ~ exp(sum_i M_{i, s(i)}).

Fractional marginals are the training gradient for many parts. They come from messages R (to columns) and C (to rows)
of the fractional free energy

    <b, M> - sum b log b + c sum (1 - b) log(1 - b)

over doubly stochastic b, with c = 3/4, which is not a bound (Chertkov and Yedidia 2013). The messages start with a
column half-step from R = 0, so the result after any sweep does not depend on the scales of columns.

InfoNCE is a lower bound of I in expectation over w from q. It is at most log K (log(K 2^H) with flips). It counts the
identity because, with w from q, the identity is an exact draw from the posterior over permutations, which reverses
Jensen's inequality (Gelberg et al. 2024, Theorem 4.3). Here signs are summed in closed form, which can only tighten
the bound.

Intervals for many parts. The lower bound is the larger of InfoNCE and the bound from the matrix's capacity. The upper
bound is Gurvits's (`permanent_bounds`). Both are means over draws from q with Monte Carlo errors. Taking the larger of
two means adds a fraction of their error. InfoNCE's control variate, of mean zero, is added to all of them.

Several blocks, such as the layers of a deep network. g = (g_1, ..., g_L) is uniform on G = G_1 x ... x G_L, with the
permutations (and signs) of the parts of each layer, and I = I(g; g w). If neighbouring layers share weights, the sum
over G is not a permanent, but that of one layer given the others is. The ratios of a layer l with the parts' densities
q_i(u_j) are

- full: u_j is everything that moves with part j of layer l, with the other layers at the identity, which gives
  I_l = I(g_l; g w | g_others), and

      max_l I_l <= I <= sum_l I_l;

- in a chain, which reveals the layers in some order: the ratios of a layer are conditional on the layers revealed
  before it, and leave out every weight shared with a layer not yet revealed. The remaining weights have less
  information on g_l, so

      I = sum_l I(g_l; g w | revealed before l) >= sum_l I_l^chain,

  and only the last layer's ratios are full. For two hidden layers, from the output: (b_2, W_3), then (W_1, b_1, W_2);
  from the input: (W_1, b_1), then (W_2, b_2, W_3).

Both follow from the chain rule for independent g_l: revealing more of the other layers never lowers the information on
g_l, and dropping entries of w never raises it. Therefore lower bounds of a chain's terms and upper bounds of the full
terms bound I. Gelberg et al. 2024 sample all layers at once with InfoNCE, which is at most log K.
"""

import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import combinations
from math import comb
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import entr, xlog1py
from jaxtyping import Array, Bool, Float

from onebasin.base.errors import ArgumentError

Matrices = Float[Array, "draw part part_bis"]  # For each draw, one number per pair of parts.
PartDraws = Float[Array, "draw part param"]
PartParameters = Float[Array, "part param"]

ENTRIES = 2**22
"""Maximum array entries at a time: 32 MB in double precision, plus temporary arrays."""


def by_draw[T](function: Callable[..., T], *arrays: jax.Array) -> T:
    """Map over the leading axis of all arrays, in batches that depend on the size of the last array."""
    draws, *shape = arrays[-1].shape
    together = max(1, ENTRIES // math.prod(shape))
    if draws <= together:
        return jax.vmap(function)(*arrays)
    return jax.lax.map(lambda each: function(*each), arrays, batch_size=together)


class LogRatios(NamedTuple):
    """Scaled log densities of draws from q, each (draw, part, part_bis), made by `log_ratios`.

    `total` is M_ij = log(sum over signs of q_i(+-u_j)) - log q_j(u_j); without flips its diagonal is zero. `mean` is
    the mean of log q_i(+-u_j) over the posterior of the sign; without flips it equals `total`. `flip_probability` is
    the probability of the minus sign if part j of the draw takes distribution i; None without flips.
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
        """The log of the group's order, which is the largest value of I: log H!, or log(2^H H!) with flips."""
        signs = 0 if self.flip_probability is None else self.num_parts
        return math.lgamma(self.num_parts + 1) + signs * math.log(2.0)


def log_ratios(log_density: Matrices, flipped: Matrices | None = None) -> LogRatios:
    """Scale log densities for the estimators: finite log q_i(u_j), in nats, of draws from q.

    `flipped` are log q_i(-u_j), needed if flipping the sign of a part is also a symmetry.
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
    """Return the log ratios of parts of independent normals from draws of q; differentiable in all arrays.

    `flips` is True for entries whose sign changes with the part's sign flip, and False for the others. Omit it without
    flips.
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


Matrix = Float[Array, "part part_bis"]  # One number per pair of parts, or per row and column.
MAX_PARTS = 14  # Largest matrix; time and memory grow as 2^H H (padded: H^2 C(H, H/2)).


@jax.custom_vjp
def log_permanent(matrix: Matrix) -> Float[Array, ""]:
    """Compute the log permanent of exp(matrix), for at most `MAX_PARTS` rows."""
    return _recursion(matrix)


def log_permanent_and_marginals(matrix: Matrix) -> tuple[Float[Array, ""], Matrix]:
    """Return the log permanent and the probabilities P (row, column) that a row goes to a column."""
    return jax.value_and_grad(_recursion)(matrix)


log_permanent.defvjp(log_permanent_and_marginals, lambda p, cotangent: (cotangent * p,))


def check_size(num_parts: int) -> None:
    """Reject matrices that are too large."""
    if num_parts > MAX_PARTS:
        raise ArgumentError(
            f"The symmetry has {num_parts} components, but mutual_information='exact' supports at most {MAX_PARTS}. "
            "Use mutual_information='fractional'."
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

    Padding repeats the first subset, so that every log sum is finite.
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


BALANCING = 10  # Number of scalings of the training marginals to row and column sums of one.


def marginals(matrix: Matrix, *, sweeps: int = 25) -> Matrix:
    """Return log marginals for c = 3/4 after undamped sweeps, differentiable and with normalised rows.

    The sweeps use exp(M + R) and exp(M + C) relative to the largest entry of a column, with two square roots per entry
    and no exponential. Underflow counts as zero. This is correct for log ratios of draws from q: E exp(M_ij) = 1, so
    no entry of a column is far above the diagonal entry, which is zero. Other matrices have finite, inaccurate ones.
    """
    scaled = matrix - jax.lax.stop_gradient(jnp.max(matrix, axis=0, keepdims=True))
    weights = jnp.exp(scaled)

    @jax.checkpoint
    def step(entries: jax.Array, _: None) -> tuple[jax.Array, None]:
        return weights * _turned(weights * _turned(entries, 0), 1), None

    entries = jax.lax.scan(step, weights, None, length=sweeps)[0]
    return jax.nn.log_softmax(scaled + jnp.log(_turned(entries, 0)), axis=1)


def training_marginals(ratios: LogRatios, *, sweeps: int = 15) -> Matrices:
    """Return balanced `marginals` P of every draw for the training gradient, without a derivative.

    Rows and columns are scaled in turn (Sinkhorn and Knopp 1967), columns last, so that almost impossible pairs stay
    almost impossible. Only their small probabilities limit the effect of their large derivatives.
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
    """Return the exponentials of the next messages: (1 - P)^-3/4 over the sum, with marginals P along an axis."""
    total = jnp.sum(entries, axis=axis, keepdims=True)
    # If all entries underflow, any value will do.
    over = 1.0 / jnp.where(total < float(jnp.finfo(entries.dtype).tiny) ** 0.4, 1.0, total)
    # 1 - P is at least the rounding error of P.
    rest = 1.0 - entries * over
    root = jax.lax.rsqrt(jnp.maximum(rest, jnp.finfo(rest.dtype).eps))
    return over * (root * jnp.sqrt(root))


PerDraw = Float[Array, " draw"]
PerLayer = Float[Array, "layer draw"]
Sum = Float[Array, ""]


class Interval(NamedTuple):
    """Bounds of I in nats, which are equal if I is exact.

    They are clipped to [0, log |G|], the range of I. Monte Carlo standard errors are computed over draws before
    clipping; they are NaN for one draw.
    """

    lower: jax.Array
    upper: jax.Array
    lower_mcse: jax.Array
    upper_mcse: jax.Array


def permanent_bounds(matrix: Matrix, *, sweeps: int = 100) -> tuple[Sum, Sum]:
    """Return lower and upper bounds of log perm(e^M).

    For any x > 0 the permanent is at most prod_i (sum_j e^M_ij x_j) / prod_j x_j. The minimum of this bound, the
    capacity, is at the x whose scaling makes rows and columns sum to one (Sinkhorn and Knopp 1967). At any doubly
    stochastic b, here the scaled matrix, the logarithm is at least <b, M> - sum b log b + sum (1 - b) log(1 - b)
    (Gurvits 2011).
    """

    def step(log_x: jax.Array, _: None) -> tuple[jax.Array, None]:
        rows = jax.nn.logsumexp(matrix + log_x[None, :], axis=1, keepdims=True)
        return -jax.nn.logsumexp(matrix - rows, axis=0), None

    log_x = jax.lax.scan(step, jnp.zeros(len(matrix), matrix.dtype), None, length=sweeps)[0]
    rows = jax.nn.logsumexp(matrix + log_x[None, :], axis=1)
    beliefs = _doubly_stochastic(jnp.exp(matrix + log_x[None, :] - rows[:, None]))
    entropy = jnp.sum(entr(beliefs)) + jnp.sum(xlog1py(1.0 - beliefs, -beliefs))
    lower = jnp.maximum(jnp.sum(beliefs * matrix) + entropy, jnp.trace(matrix))
    return lower, jnp.sum(rows) - jnp.sum(log_x)


def _doubly_stochastic(beliefs: Matrix) -> Matrix:
    """Round a matrix to row and column sums of one (Altschuler, Weed and Rigollet 2017), as the bound requires."""
    for axis in (1, 0):
        beliefs = beliefs / jnp.maximum(jnp.sum(beliefs, axis=axis, keepdims=True), 1.0)
    row, column = 1.0 - jnp.sum(beliefs, axis=1), 1.0 - jnp.sum(beliefs, axis=0)
    missing = jnp.sum(row)
    fill = row[:, None] * column[None, :] / jnp.where(missing > 0, missing, 1.0)
    return jnp.clip(beliefs + fill, 0.0, 1.0)


def sides(
    rng_key: jax.Array, ratios: LogRatios, *, num_permutations: int, max_exact: int
) -> tuple[PerDraw, PerDraw]:
    """Return both bounds at every draw; `layer_sides` describes the arguments."""
    if ratios.num_parts <= max_exact:
        values = information(ratios, exact(rng_key, ratios))
        return values, values
    estimate = infonce(rng_key, ratios, num_permutations=num_permutations)
    sampled = information(ratios, estimate)
    below, above = by_draw(permanent_bounds, ratios.total)
    enclosed, upper = (ratios.log_group_order - each + estimate.control for each in (above, below))
    return jnp.where(jnp.mean(enclosed) > jnp.mean(sampled), enclosed, sampled), upper


def from_values(lower: PerDraw, upper: PerDraw, log_group_order: float) -> Interval:
    """Average bounds over draws, clip them to [0, log |G|], and compute their errors."""
    low, high = (jnp.clip(jnp.mean(side), 0.0, log_group_order) for side in (lower, upper))
    return Interval(low, high, _mcse(lower), _mcse(upper))


def _mcse(values: jax.Array) -> jax.Array:
    if values.shape[0] < 2:
        return jnp.full((), jnp.nan, values.dtype)
    return jnp.std(values, ddof=1) / jnp.sqrt(values.shape[0])


Chain = OrderedDict[int, LogRatios]
"""The ratios of the remaining coordinates of each layer, in the order in which layers are revealed."""


@partial(jax.jit, static_argnames=("num_permutations", "max_exact"))
def layer_sides(
    rng_key: jax.Array,
    full: Sequence[LogRatios],
    chains: Sequence[Chain],
    *,
    num_permutations: int = 50,
    max_exact: int = 10,
) -> tuple[PerLayer, PerLayer]:
    """Return lower and upper bounds of every layer's term at every draw.

    `full` are the ratios of each layer at the same draws from q, with all weights that move with a part. `chains` are
    one or more orders of revealing the layers. Lower bounds are those of the chain with the largest sum, which adds a
    small bias.

    At least 200 draws make the errors over draws small; more permutations per draw bring the bounds closer. Up to
    `max_exact` parts, at most `permanent.MAX_PARTS`, the permanent is exact.
    """
    bound = partial(sides, num_permutations=num_permutations, max_exact=max_exact)
    if len(full) == 1:
        lower, upper = bound(rng_key, full[0])
        return lower[None], upper[None]
    key_upper, key_lower = jax.random.split(rng_key)
    keys = jax.random.split(key_upper, len(full))
    upper = jnp.stack([bound(key, ratios)[1] for key, ratios in zip(keys, full, strict=True)])
    each = iter(jax.random.split(key_lower, sum(len(chain) for chain in chains)))
    nothing = jnp.zeros_like(upper[0])
    found = []
    for chain in chains:
        terms = {layer: bound(next(each), ratios)[0] for layer, ratios in chain.items()}
        found.append(jnp.stack([terms.get(layer, nothing) for layer in range(len(full))]))
    best = jnp.argmax(jnp.stack([jnp.mean(jnp.sum(lower, axis=0)) for lower in found]))
    return jnp.stack(found)[best], upper


def layered_interval(
    rng_key: jax.Array, full: Sequence[LogRatios], chains: Sequence[Chain], **how: int
) -> Interval:
    """Bound the mutual information of all layers; `layer_sides` describes the arguments."""
    lower, upper = layer_sides(rng_key, full, chains, **how)
    order = sum(ratios.log_group_order for ratios in full)
    return from_values(jnp.sum(lower, axis=0), jnp.sum(upper, axis=0), order)


class Estimate(NamedTuple):
    """The results of an estimator at every draw.

    - `log_sum` (draw,): estimates of l(w), in nats.
    - `control` (draw,): <P, A> - tr A, a control variate of mean zero over w from q.
    - `marginals` (draw, part, part_bis): P, the probability that a part's distribution belongs to another part of the
      draw; also the derivative of `log_sum`.
    """

    log_sum: jax.Array
    control: jax.Array
    marginals: jax.Array


def information(ratios: LogRatios, estimate: Estimate, *, control_variate: bool = True) -> PerDraw:
    """Return estimates of I at each draw in nats: log |G| - l(w), plus the control variate."""
    plain = ratios.log_group_order - estimate.log_sum
    return plain + estimate.control if control_variate else plain


def exact(rng_key: jax.Array, ratios: LogRatios) -> Estimate:
    """Compute the permanent by recursion over subsets, for at most `MAX_PARTS` parts and a few draws at a time."""

    def one(matrix: jax.Array) -> tuple[jax.Array, jax.Array]:
        return log_permanent(matrix), log_permanent_and_marginals(matrix)[1]

    size = ratios.num_parts
    together = max(1, 2**20 // (size**2 * math.comb(size, size // 2)))
    log_sum, marginals = jax.lax.map(one, ratios.total, batch_size=together)
    return _estimate(log_sum, marginals, ratios)


def infonce(rng_key: jax.Array, ratios: LogRatios, *, num_permutations: int) -> Estimate:
    """Compute the paper's bound: the log mean of exp(M(s)) over the identity and K - 1 >= 1 random permutations s."""
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
    """Add the control variate; its mean is zero because P is a posterior mean given a set with the identity."""
    return Estimate(log_sum, jnp.sum(marginals * ratios.mean, axis=(1, 2)), marginals)
