"""Gradient of the mutual information of Gaussian parts, averaged over relabellings in closed form.

Score terms cancel, and every relabelling of a draw is as good a draw of q^G as itself. What is left needs only the
marginals P, of the exact permanent or of an estimator:

    grad I = E_w sum_ij P_ij (g_ij - gbar_j) . d u_j^(i),   g_ij = d/du log q_i(u_j),   gbar_j = sum_i P_ij g_ij,

where u_j^(i) = loc_i + scale_i eps_ij with eps_ij = (u_j - loc_i) / scale_i held fixed. With exact P it has no bias and
a fraction of the noise of differentiating l(w). Where P is 0 or 1 it vanishes, draw by draw: do not take Bethe's
marginals of parts that are near twins.

Sign flips: the group takes u_j to s u_j on the flipped parameters, s = +-1, and P^s_ij is P_ij times the probability
of the sign. The sum runs over both signs, with g^s_ij = s (d/du log q_i)(s u_j) and
u_j^(i,s) = s (loc_i + scale_i eps^s_ij): sums of P with an odd power of u become sums of P^+ - P^-.

For normals all sums over pairs are products of P with arrays (part, param), six a draw. Squares are expanded, relative
to the mean of loc (zero where signs flip), and what a part gives itself comes from its residuals, so that single
precision keeps the gradient of parts that are far apart, which vanishes.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from .ratios import Matrices, PartDraws, PartParameters

BY_DISTRIBUTION, BY_PART = "sij,sjd->sid", "sij,id->sjd"
"""Sums over the parts j of a draw, with values (draw, part, param); and over distributions i, with (part, param)."""


def path_gradient(
    draws: PartDraws,
    loc: PartParameters,
    scale: PartParameters,
    marginals: Matrices,
    *,
    flips: Bool[Array, " param"] | None = None,
    flip_probability: Matrices | None = None,
) -> tuple[PartDraws, PartDraws]:
    """Gradients of I by `loc` and by `scale`, draw by draw; their means over draws from q estimate it.

    `marginals` are P, of `Estimate` or `training_marginals`: columns sum to one. `flips` is True where a part's sign
    flip changes the sign; it goes with the `flip_probability` of `LogRatios`. Memory is that of a few arrays
    (draw, part, param).
    """
    centre = jax.lax.stop_gradient(jnp.mean(loc, axis=0))
    if flips is not None:
        centre = jnp.where(flips, 0.0, centre)
    # The weights of pairs without a part's own, for even and for odd powers of what a sign flip changes.
    own = jnp.diagonal(marginals, axis1=1, axis2=2)[:, :, None]
    same = jnp.eye(marginals.shape[1], dtype=bool)[None]
    even = odd = jnp.where(same, 0.0, marginals)
    mixed = None
    if flip_probability is not None:
        minus = marginals * flip_probability
        own = own - jnp.diagonal(minus, axis1=1, axis2=2)[:, :, None]
        even = jnp.where(same, minus, marginals)
        odd = jnp.where(same, -minus, marginals - 2.0 * minus)
        # Where all parameters are known to be flipped when this is compiled, three products are saved.
        all_flip = not isinstance(flips, jax.core.Tracer) and bool(np.all(np.asarray(flips)))
        mixed = None if all_flip else flips

    def of_odd(product: str, values: jax.Array) -> jax.Array:
        if mixed is None:
            return jnp.einsum(product, odd, values)
        mask = jnp.expand_dims(mixed, tuple(range(values.ndim - 1)))
        kept, turned = jnp.where(mask, 0.0, values), jnp.where(mask, values, 0.0)
        return jnp.einsum(product, even, kept) + jnp.einsum(product, odd, turned)

    draws = draws - centre[None, None, :]
    loc = loc - centre[None, :]
    precision, eps = 1.0 / scale**2, (draws - loc[None]) / scale[None]
    score = -eps / scale[None]
    others = of_odd(BY_PART, precision * loc) - draws * jnp.einsum(BY_PART, even, precision)
    mean_score = own * score + others
    direct = own * (score - mean_score)
    share = jnp.sum(even, axis=2, keepdims=True)
    first, pull = of_odd(BY_DISTRIBUTION, draws), of_odd(BY_DISTRIBUTION, mean_score)
    by_loc = direct - precision[None] * (first - loc[None] * share) - pull
    squares = jnp.einsum(BY_DISTRIBUTION, even, draws**2)
    squares = squares - loc[None] * (2.0 * first - loc[None] * share)
    along = jnp.einsum(BY_DISTRIBUTION, even, draws * mean_score)
    spread = precision[None] * squares + along - loc[None] * pull
    return by_loc, direct * eps - spread / scale[None]
