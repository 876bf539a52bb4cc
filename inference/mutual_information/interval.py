"""An interval for the mutual information of a symmetrised approximation: both sides, and how they were clipped.

Few parts: exact. More: `importance` below; above, the smaller of `bethe` and `proposals_only`. The control variate of
the lower side, of mean zero, is added to the upper ones too. Both sides are means over draws from q and carry
their Monte Carlo errors: the truth is between them up to these. (Taking the smaller of two means favours the one that
fell low by chance, by a fraction of its error.)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from onebasin.base.errors import ArgumentError

from .estimators import bethe, exact, importance, information, proposals_only
from .permanent import MAX_PARTS
from .pytree import pytree
from .ratios import LogRatios


@pytree("log_group_order")
@dataclass(frozen=True)
class Interval:
    """Both sides of I, in nats; equal where it is exact.

    Attributes
    ----------
    lower, upper : array ()
        Clipped to [0, log |G|], between which I lies for certain.
    lower_mcse, upper_mcse : array ()
        Monte Carlo standard errors over draws, before clipping; NaN with one draw.
    lower_clipped, upper_clipped : array ()
        Whether clipping changed the value.
    effective : array ()
        Mean effective number of permutations of the lower side; 1 where it is exact.
    log_group_order : float
        log |G|.
    """

    lower: Float[Array, "*batch"]
    upper: Float[Array, "*batch"]
    lower_mcse: Float[Array, "*batch"]
    upper_mcse: Float[Array, "*batch"]
    lower_clipped: Bool[Array, "*batch"]
    upper_clipped: Bool[Array, "*batch"]
    effective: Float[Array, "*batch"]
    log_group_order: float


@partial(jax.jit, static_argnames=("num_permutations", "max_exact"))
def interval(
    rng_key: jax.Array,
    ratios: LogRatios,
    *,
    num_permutations: int = 50,
    max_exact: int = 10,
) -> Interval:
    """Both sides of the mutual information from draws of q; compiled once a shape.

    Parameters
    ----------
    rng_key : key
        For the permutations.
    ratios : LogRatios
        Of draws from q; 200 or more make the errors over draws small.
    num_permutations : int
        Of a draw, at least 1; more bring the two sides together.
    max_exact : int
        Up to so many parts the permanent is exact; at most `permanent.MAX_PARTS`.

    Returns
    -------
    Interval

    Raises
    ------
    ValueError
        If `num_permutations` is below 1 or `max_exact` above `permanent.MAX_PARTS`.
    """
    lower, upper, effective = sides(
        rng_key, ratios, num_permutations=num_permutations, max_exact=max_exact
    )
    return from_values(lower, upper, ratios.log_group_order, effective)


def sides(
    rng_key: jax.Array, ratios: LogRatios, *, num_permutations: int, max_exact: int
) -> tuple[Float[Array, " draw"], Float[Array, " draw"], Float[Array, " draw"]]:
    """Values of both sides of every draw, and effective numbers of permutations; arguments as of `interval`."""
    if max_exact > MAX_PARTS:
        raise ArgumentError(
            f"`max_exact` is {max_exact}; the exact permanent allows at most {MAX_PARTS} parts. Lower it: more parts "
            "than that get a lower and an upper bound."
        )
    key_lower, key_upper = jax.random.split(rng_key)
    if ratios.num_parts <= max_exact:
        estimate = exact()(key_lower, ratios)
        values = information(ratios, estimate)
        return values, values, estimate.effective
    estimate = importance(num_permutations)(key_lower, ratios)
    lower = information(ratios, estimate)
    uppers = [
        information(ratios, above(key_upper, ratios)) + estimate.control
        for above in (bethe(), proposals_only(num_permutations))
    ]
    smaller = jnp.where(jnp.mean(uppers[0]) < jnp.mean(uppers[1]), uppers[0], uppers[1])
    return lower, smaller, estimate.effective


def from_values(
    lower: Float[Array, " draw"],
    upper: Float[Array, " draw"],
    log_group_order: float,
    effective: Float[Array, " draw"],
) -> Interval:
    """Means over draws, clipped to [0, log |G|], and their errors."""
    low, high = jnp.mean(lower), jnp.mean(upper)
    clipped_low, clipped_high = (jnp.clip(mean, 0.0, log_group_order) for mean in (low, high))
    return Interval(
        lower=clipped_low,
        upper=clipped_high,
        lower_mcse=_mcse(lower),
        upper_mcse=_mcse(upper),
        lower_clipped=low != clipped_low,
        upper_clipped=high != clipped_high,
        effective=jnp.mean(effective),
        log_group_order=log_group_order,
    )


def _mcse(values: jax.Array) -> jax.Array:
    if values.shape[0] < 2:
        return jnp.full((), jnp.nan, values.dtype)
    return jnp.std(values, ddof=1) / jnp.sqrt(values.shape[0])
