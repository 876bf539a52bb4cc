"""An interval for the mutual information of a symmetrised approximation: both sides.

Few parts: exact. More: `importance` below; above, the smaller of `bethe` and `proposals_only`. The control variate of
the lower side, of mean zero, is added to the upper ones too. Both sides are means over draws from q and carry
their Monte Carlo errors: the truth is between them up to these. (Taking the smaller of two means favours the one that
fell low by chance, by a fraction of its error.)

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

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .estimators import bethe, exact, importance, information, proposals_only
from .ratios import LogRatios

PerDraw = Float[Array, " draw"]
PerLayer = Float[Array, "layer draw"]


class Interval(NamedTuple):
    """Both sides of I, in nats; equal where it is exact.

    They are clipped to [0, log |G|], between which I lies for certain. Monte Carlo standard errors are over draws,
    before clipping; NaN with one draw. `effective` is the mean effective number of permutations of the lower side; 1
    where it is exact.
    """

    lower: jax.Array
    upper: jax.Array
    lower_mcse: jax.Array
    upper_mcse: jax.Array
    effective: jax.Array


def sides(
    rng_key: jax.Array, ratios: LogRatios, *, num_permutations: int, max_exact: int
) -> tuple[PerDraw, PerDraw, PerDraw]:
    """Values of both sides of every draw, and effective numbers of permutations; arguments as of `layer_sides`."""
    key_lower, key_upper = jax.random.split(rng_key)
    if ratios.num_parts <= max_exact:
        estimate = exact(key_lower, ratios)
        values = information(ratios, estimate)
        return values, values, estimate.effective
    estimate = importance(key_lower, ratios, num_permutations=num_permutations)
    lower = information(ratios, estimate)
    uppers = [
        information(ratios, above(key_upper, ratios)) + estimate.control
        for above in (bethe, partial(proposals_only, num_permutations=num_permutations))
    ]
    smaller = jnp.where(jnp.mean(uppers[0]) < jnp.mean(uppers[1]), uppers[0], uppers[1])
    return lower, smaller, estimate.effective


def from_values(
    lower: PerDraw, upper: PerDraw, log_group_order: float, effective: PerDraw
) -> Interval:
    """Means over draws, clipped to [0, log |G|], and their errors."""
    low, high = (jnp.clip(jnp.mean(side), 0.0, log_group_order) for side in (lower, upper))
    return Interval(low, high, _mcse(lower), _mcse(upper), jnp.mean(effective))


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
) -> tuple[PerLayer, PerLayer, PerDraw]:
    """Lower and upper values of every layer's term, and the effective numbers of permutations, of every draw.

    `full` has the ratios of each layer, all of the same draws from q, with all weights that move with a part. `chains`
    are one or more orders in which the layers are revealed; lower values are those of the chain with the largest sum.
    (The largest of several means favours the one that came out high by chance, by a fraction of its error.) Effective
    numbers are those of the layer with the fewest in that chain.

    200 draws or more make the errors over draws small; more permutations of each bring the two sides together. Up to
    `max_exact` parts, at most `permanent.MAX_PARTS`, the permanent is exact.
    """
    bound = partial(sides, num_permutations=num_permutations, max_exact=max_exact)
    if len(full) == 1:
        lower, upper, number = bound(rng_key, full[0])
        return lower[None], upper[None], number
    key_upper, key_lower = jax.random.split(rng_key)
    keys = jax.random.split(key_upper, len(full))
    upper = jnp.stack([bound(key, ratios)[1] for key, ratios in zip(keys, full, strict=True)])
    each = iter(jax.random.split(key_lower, sum(len(chain) for chain in chains)))
    found, numbers = [], []
    for chain in chains:
        terms = {layer: bound(next(each), ratios) for layer, ratios in chain.items()}
        nothing = jnp.zeros_like(upper[0])
        found.append(jnp.stack([terms[n][0] if n in terms else nothing for n in range(len(full))]))
        effective = jnp.stack([number for _, _, number in terms.values()])
        numbers.append(effective[jnp.argmin(jnp.mean(effective, axis=1))])
    best = jnp.argmax(jnp.stack([jnp.mean(jnp.sum(lower, axis=0)) for lower in found]))
    return jnp.stack(found)[best], upper, jnp.stack(numbers)[best]


def layered_interval(
    rng_key: jax.Array, full: Sequence[LogRatios], chains: Sequence[Chain], **how: int
) -> Interval:
    """Both sides of the mutual information of all layers; arguments as of `layer_sides`."""
    lower, upper, effective = layer_sides(rng_key, full, chains, **how)
    order = sum(ratios.log_group_order for ratios in full)
    return from_values(jnp.sum(lower, axis=0), jnp.sum(upper, axis=0), order, effective)
