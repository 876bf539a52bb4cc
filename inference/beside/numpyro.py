"""A NumPyro model's log likelihoods, predictions and log priors, draw by draw, from its own sites."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.handlers import seed as seeded
from numpyro.handlers import substitute, trace, uncondition

from onebasin.models.pointwise import DrawGroup, every_which, why_left_out
from onebasin.models.schema import LOG_LIKELIHOOD, LOG_PRIOR, POSTERIOR_PREDICTIVE
from onebasin.models.target import Target

from ..density.numpyro import is_observation, require_numpyro, sites_of
from ..keys import Purpose, keys_for

BLOCK = 2**24
"""Bytes that are computed at once."""

Arrays = dict[str, jax.Array]
Groups = dict[str, Arrays]


@dataclass(frozen=True)
class Sites:
    """What of a model's sites takes part.

    Attributes
    ----------
    model : callable
        The model, with what is neither a variable nor data as it was in the run.
    latent, observed : tuple of str
        Names of its variables and of its data.
    """

    model: Callable[[], None]
    latent: tuple[str, ...]
    observed: tuple[str, ...]

    @classmethod
    def of(cls, target: Target) -> Sites:
        """Those of a target."""
        sites = sites_of(target)
        latent = [n for n, s in sites.items() if s["type"] == "sample" and not s["is_observed"]]
        fixed = {
            n: s["value"] for n, s in sites.items() if s["type"] in ("param", "mutable", "plate")
        }
        model = require_numpyro(target)
        return cls(
            substitute(model, data=fixed) if fixed else model,
            tuple(latent),
            tuple(name for name, site in sites.items() if is_observation(site)),
        )

    def at(self, values: Mapping[str, Any], key: jax.Array) -> Groups:
        """All groups at one draw."""
        run = substitute(seeded(self.model, jax.random.key(0)), data=dict(values))
        sites = trace(run).get_trace()
        terms = {n: sites[n]["fn"].log_prob(sites[n]["value"]) for n in self.observed}
        prior = {n: jnp.sum(sites[n]["fn"].log_prob(sites[n]["value"])) for n in self.latent}
        return {
            LOG_LIKELIHOOD: terms,
            POSTERIOR_PREDICTIVE: self._predicted(values, key),
            LOG_PRIOR: prior,
        }

    def _predicted(self, values: Mapping[str, Any], key: jax.Array) -> Arrays:
        """Data drawn anew; none where the model cannot draw them, as of `scan`."""
        run = uncondition(seeded(substitute(self.model, data=dict(values)), key))
        try:
            sites = trace(run).get_trace()
        except NotImplementedError:  # a distribution without `sample`
            return {}
        drawn = {n: sites[n]["value"] for n in self.observed if not sites[n]["is_observed"]}
        return {n: v.astype(jnp.float32) if v.dtype == jnp.float64 else v for n, v in drawn.items()}


def numpyro_groups(
    target: Target,
    draws: Mapping[str, np.ndarray],
    dims: Mapping[str, tuple[str, ...]],
    *,
    seed: int,
    limit_mb: float,
) -> tuple[dict[str, DrawGroup], str]:
    """Groups of a model's draws.

    Parameters
    ----------
    target : Target
        With a NumPyro model.
    draws : mapping of str to array (chain, draw, ...)
        Its variables; others are passed over.
    dims : mapping
        Names of the axes of its sites.
    seed : int
        Of the run.
    limit_mb : float
        Megabytes that the groups may take together.

    Returns
    -------
    dict, str
        The groups by name; and why there are none, where there are none.
    """
    sites = Sites.of(target)
    values = {name: np.asarray(draws[name]) for name in sites.latent}
    chains, num_draws = next(iter(values.values())).shape[:2]
    like = {n: jax.ShapeDtypeStruct(v.shape[2:], v.dtype) for n, v in values.items()}
    shapes = jax.eval_shape(sites.at, like, jax.random.key(0))
    size = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(shapes))
    every = every_which(chains, num_draws, size, limit_mb)
    if every is None:
        return {}, why_left_out(size, limit_mb)
    kept = {name: value[:, ::every] for name, value in values.items()}
    filled = _filled(sites, kept, keys_for(Purpose.PREDICTIVE, seed, chains), shapes, size, every)
    return {
        group: DrawGroup(
            arrays, {n: dims[n][: arrays[n].ndim - 2] for n in arrays if n in dims}, every
        )
        for group, arrays in filled.items()
        if arrays
    }, ""


def _filled(
    sites: Sites,
    values: Mapping[str, np.ndarray],
    keys: jax.Array,
    shapes: Groups,
    size: int,
    every: int,
) -> dict[str, dict[str, np.ndarray]]:
    """Compute all draws, a block of them at a time; a draw's random numbers are its own, whatever is kept."""
    chains, kept = next(iter(values.values())).shape[:2]
    step = min(kept, max(1, BLOCK // max(size, 1)))
    out = jax.tree.map(lambda leaf: np.empty((chains, kept, *leaf.shape), leaf.dtype), shapes)

    @jax.jit
    def block(part: Arrays, key: jax.Array, numbers: jax.Array) -> Groups:
        def one(both: tuple[Arrays, jax.Array]) -> Groups:
            return sites.at(both[0], jax.random.fold_in(key, both[1]))

        return jax.lax.map(one, (part, numbers))

    for chain in range(chains):
        for first in range(0, kept, step):
            # The last one begins earlier rather than to be shorter: another length would be compiled anew.
            rows = slice(first := min(first, kept - step), first + step)
            part = {name: jnp.asarray(value[chain, rows]) for name, value in values.items()}
            found = block(part, keys[chain], jnp.arange(first, first + step) * every)
            jax.tree.map(lambda to, leaf: to.__setitem__((chain, rows), leaf), out, found)  # noqa: B023
    return out
