"""Estimators of l(w) = log perm(e^A) - tr A, each with the side of the truth on which its mutual information lies.

I = log |G| - E_q[l] (see `ratios`), so that a bound of l from above is one of I from below. `exact` is exact, draw by
draw, for few parts; `infonce` is a lower bound in expectation over w from q, and never above log K (K 2^H with flips).

Why InfoNCE counts the identity: with w from q, the identity is itself an exact draw from the posterior over
permutations, which turns Jensen's inequality round. Theorem 4.3 of Gelberg et al. 2024; one departure: signs are summed
in closed form, not drawn, which can only tighten it.

An interval for the mutual information of a symmetrised approximation: both sides.

Few parts: exact. More: below, the larger of InfoNCE and of the bound by the matrix's capacity; above, Gurvits's bound
(`permanent_bounds`). Both sides are means over draws from q and carry their Monte Carlo errors: the truth is between
them up to these. (Taking the larger of two means favours the one that came out high by chance, by a fraction of its
error.) InfoNCE's control variate, of mean zero, is added to all of them.

Bounds of the mutual information where several blocks of parts are symmetric at once, as the layers of a deep net.

Convention: g = (g_1, ..., g_L) is uniform on G = G_1 x ... x G_L, layer l's own permutations (and signs) of its parts,
and I = I(g; g w). Where neighbouring layers share weights the sum over G is no permanent, but a layer's is, as soon as
the others are held. With `ratios` of a layer l and the parts' densities q_i(u_j),

- the full ones, u_j all that moves with part j of layer l, the other layers at the identity, give
  I_l = I(g_l; g w | g_others), and

      max_l I_l <= I <= sum_l I_l;

- a chain reveals the layers in an order: the ratios of a layer take those revealed before it as known, and leave out
  every weight shared with one not yet revealed. What is left of w knows less of g_l, so that

      I = sum_l I(g_l; g w | revealed before l) >= sum_l I_l^chain,

  and only the last layer's ratios are full ones. Of two hidden layers, from the output: (b_2, W_3), then
  (W_1, b_1, W_2); from the input: (W_1, b_1), then (W_2, b_2, W_3).

Both follow from the chain rule for independent g_l: revealing more of the others never lowers what is learnt of g_l,
and dropping entries of w never raises it. Lower bounds of a chain's terms and upper bounds of the full ones keep the
sides.
Gelberg et al. 2024 sample all layers at once by InfoNCE, which is below log K.
"""

import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import entr, xlog1py
from jaxtyping import Array, Float

from .permanent import Matrix, log_permanent, log_permanent_and_marginals
from .ratios import LogRatios, by_draw

PerDraw = Float[Array, " draw"]
PerLayer = Float[Array, "layer draw"]
Sum = Float[Array, ""]


class Interval(NamedTuple):
    """Both sides of I, in nats; equal where it is exact.

    They are clipped to [0, log |G|], between which I lies for certain. Monte Carlo standard errors are over draws,
    before clipping; NaN with one draw.
    """

    lower: jax.Array
    upper: jax.Array
    lower_mcse: jax.Array
    upper_mcse: jax.Array


def permanent_bounds(matrix: Matrix, *, sweeps: int = 100) -> tuple[Sum, Sum]:
    """Bounds of log perm(e^M) from below and from above.

    For any x > 0 the permanent is at most prod_i (sum_j e^M_ij x_j) / prod_j x_j, which is smallest, the capacity,
    where scaling by x makes rows and columns sum to one (Sinkhorn and Knopp 1967). At any doubly stochastic b its
    logarithm is at least <b, M> - sum b log b + sum (1 - b) log(1 - b) (Gurvits 2011); taken at the scaled matrix.
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
    """Round to row and column sums of one (Altschuler, Weed and Rigollet 2017), so that the bound holds unconverged."""
    for axis in (1, 0):
        beliefs = beliefs / jnp.maximum(jnp.sum(beliefs, axis=axis, keepdims=True), 1.0)
    row, column = 1.0 - jnp.sum(beliefs, axis=1), 1.0 - jnp.sum(beliefs, axis=0)
    missing = jnp.sum(row)
    fill = row[:, None] * column[None, :] / jnp.where(missing > 0, missing, 1.0)
    return jnp.clip(beliefs + fill, 0.0, 1.0)


def sides(
    rng_key: jax.Array, ratios: LogRatios, *, num_permutations: int, max_exact: int
) -> tuple[PerDraw, PerDraw]:
    """Values of both sides of every draw; arguments as of `layer_sides`."""
    if ratios.num_parts <= max_exact:
        values = information(ratios, exact(rng_key, ratios))
        return values, values
    estimate = infonce(rng_key, ratios, num_permutations=num_permutations)
    sampled = information(ratios, estimate)
    below, above = by_draw(permanent_bounds, ratios.total)
    enclosed, upper = (ratios.log_group_order - each + estimate.control for each in (above, below))
    return jnp.where(jnp.mean(enclosed) > jnp.mean(sampled), enclosed, sampled), upper


def from_values(lower: PerDraw, upper: PerDraw, log_group_order: float) -> Interval:
    """Means over draws, clipped to [0, log |G|], and their errors."""
    low, high = (jnp.clip(jnp.mean(side), 0.0, log_group_order) for side in (lower, upper))
    return Interval(low, high, _mcse(lower), _mcse(upper))


def _mcse(values: jax.Array) -> jax.Array:
    if values.shape[0] < 2:
        return jnp.full((), jnp.nan, values.dtype)
    return jnp.std(values, ddof=1) / jnp.sqrt(values.shape[0])


Chain = OrderedDict[int, LogRatios]
"""The ratios of what is left of each layer that has anything left, in the order in which layers are revealed."""


@partial(jax.jit, static_argnames=("num_permutations", "max_exact"))
def layer_sides(
    rng_key: jax.Array,
    full: Sequence[LogRatios],
    chains: Sequence[Chain],
    *,
    num_permutations: int = 50,
    max_exact: int = 10,
) -> tuple[PerLayer, PerLayer]:
    """Lower and upper values of every layer's term, of every draw.

    `full` has the ratios of each layer, all of the same draws from q, with all weights that move with a part. `chains`
    are one or more orders in which the layers are revealed; lower values are those of the chain with the largest sum.
    (The largest of several means favours the one that came out high by chance, by a fraction of its error.)

    200 draws or more make the errors over draws small; more permutations of each bring the two sides together. Up to
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
    """Both sides of the mutual information of all layers; arguments as of `layer_sides`."""
    lower, upper = layer_sides(rng_key, full, chains, **how)
    order = sum(ratios.log_group_order for ratios in full)
    return from_values(jnp.sum(lower, axis=0), jnp.sum(upper, axis=0), order)


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
