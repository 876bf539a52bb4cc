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

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from onebasin.base.errors import ArgumentError


def path_gradient(
    draws: Float[Array, "draw part param"],
    loc: Float[Array, "part param"],
    scale: Float[Array, "part param"],
    marginals: Float[Array, "draw part part_bis"],
    *,
    flips: Bool[Array, " param"] | None = None,
    flip_probability: Float[Array, "draw part part_bis"] | None = None,
) -> tuple[Float[Array, "draw part param"], Float[Array, "draw part param"]]:
    """Gradients of I draw by draw; their means over draws from q estimate it.

    Parameters
    ----------
    draws : array (draw, part, param)
        u_j, from q.
    loc, scale : array (part, param)
        Of the independent normals q_i.
    marginals : array (draw, part, part_bis)
        P, of `Estimate` or `training_marginals`: columns sum to one.
    flips : array (param,), optional
        True where a part's sign flip changes the sign; with `flip_probability`, or neither.
    flip_probability : array (draw, part, part_bis), optional
        Of `LogRatios`: how probable the minus sign is where part j takes distribution i.

    Returns
    -------
    by_loc, by_scale : array (draw, part, param)
        With respect to `loc` and to `scale`. Memory is that of a few arrays (draw, part, param).
    """
    if (flips is None) != (flip_probability is None):
        given, missing = "flips", "flip_probability"
        if flips is None:
            given, missing = missing, given
        raise ArgumentError(
            f"`{given}` came without `{missing}`; give both, `flip_probability` from `LogRatios`, or neither "
            "where sign flips are no symmetry."
        )
    centre = jax.lax.stop_gradient(jnp.mean(loc, axis=0))
    if flips is not None:
        centre = jnp.where(flips, 0.0, centre)
    pairs = _Pairs.of(marginals, flips, flip_probability)
    draws = draws - centre[None, None, :]
    loc = loc - centre[None, :]
    precision, eps = 1.0 / scale**2, (draws - loc[None]) / scale[None]
    score = -eps / scale[None]
    others = pairs.odd_share(precision * loc) - draws * pairs.even_share(precision)
    mean_score = pairs.own * score + others
    own = pairs.own * (score - mean_score)
    share = jnp.sum(pairs.even, axis=2, keepdims=True)
    first, pull = pairs.odd_sum(draws), pairs.odd_sum(mean_score)
    by_loc = own - precision[None] * (first - loc[None] * share) - pull
    squares = pairs.even_sum(draws**2) - loc[None] * (2.0 * first - loc[None] * share)
    spread = precision[None] * squares + pairs.even_sum(draws * mean_score) - loc[None] * pull
    return by_loc, own * eps - spread / scale[None]


@dataclass(frozen=True)
class _Pairs:
    """Weights of pairs: what a part gives itself, and the others by whether a sign flip changes what they multiply.

    Attributes
    ----------
    own : array (draw, part, 1)
        P^+_ii.
    even, odd : array (draw, part, part_bis)
        P^+ + P^- and P^+ - P^-, both without P^+_ii; one array without flips.
    flips : array (param,) or None
        Where odd powers take `odd`; None where all do.
    """

    own: jax.Array
    even: jax.Array
    odd: jax.Array
    flips: jax.Array | None

    @classmethod
    def of(
        cls, marginals: jax.Array, flips: jax.Array | None, flip_probability: jax.Array | None
    ) -> _Pairs:
        own = jnp.diagonal(marginals, axis1=1, axis2=2)
        same = jnp.eye(marginals.shape[1], dtype=bool)[None]
        if flip_probability is None:
            even = jnp.where(same, 0.0, marginals)
            return cls(own[:, :, None], even, even, None)
        minus = marginals * flip_probability
        own = own - jnp.diagonal(minus, axis1=1, axis2=2)
        even = jnp.where(same, minus, marginals)
        odd = jnp.where(same, -minus, marginals - 2.0 * minus)
        # Where all parameters are known to be flipped when this is compiled, three products are saved.
        all_flip = not isinstance(flips, jax.core.Tracer) and bool(np.all(np.asarray(flips)))
        return cls(own[:, :, None], even, odd, None if all_flip else flips)

    def even_sum(self, values: jax.Array) -> jax.Array:
        """Sums over j with values (draw, part, param) of even powers."""
        return jnp.einsum("sij,sjd->sid", self.even, values)

    def odd_sum(self, values: jax.Array) -> jax.Array:
        """The same, of odd powers."""
        return self._odd("sij,sjd->sid", values)

    def even_share(self, values: jax.Array) -> jax.Array:
        """Sums over i with values (part, param) of distributions, for even powers."""
        return jnp.einsum("sij,id->sjd", self.even, values)

    def odd_share(self, values: jax.Array) -> jax.Array:
        """The same, for odd powers."""
        return self._odd("sij,id->sjd", values)

    def _odd(self, product: str, values: jax.Array) -> jax.Array:
        if self.flips is None:
            return jnp.einsum(product, self.odd, values)
        mask = jnp.expand_dims(self.flips, tuple(range(values.ndim - 1)))
        kept, turned = jnp.where(mask, 0.0, values), jnp.where(mask, values, 0.0)
        return jnp.einsum(product, self.even, kept) + jnp.einsum(product, self.odd, turned)
