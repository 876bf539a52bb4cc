"""Values of a target's variables that a user gives, checked and taken to the unconstrained space."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.distributions.transforms import biject_to
from numpyro.handlers import seed as seeded
from numpyro.handlers import trace

from onebasin.models.target import Target

from ..mcmc.numpyro import require_numpyro


def to_unconstrained(target: Target, start: Mapping[str, Any]) -> dict[str, jax.Array]:
    """Take one point of natural values to NumPyro's unconstrained space.

    Parameters
    ----------
    target : Target
        With a NumPyro model.
    start : mapping
        Value of every variable, with its shape; more names than those are refused.

    Returns
    -------
    dict
        Site name to array, in the precision of the caller's context.

    Raises
    ------
    ValueError
        If a name is missing or unknown, a shape differs, or a value is not finite or not allowed for its variable.
    """
    sites = {
        name: site
        for name, site in trace(seeded(require_numpyro(target), jax.random.key(0)))
        .get_trace()
        .items()
        if site["type"] == "sample" and not site["is_observed"]
    }
    check_names(start, tuple(sites))
    return {name: _site(name, site, start[name]) for name, site in sites.items()}


def check_names(start: Mapping[str, Any], expected: tuple[str, ...]) -> None:
    """Refuse a start whose names are not those of the variables."""
    missing = [name for name in expected if name not in start]
    unknown = [name for name in start if name not in expected]
    if missing or unknown:
        said = [f"lacks {', '.join(missing)}"] if missing else []
        said += [f"has {', '.join(unknown)}, which the target does not"] if unknown else []
        raise ValueError(f"`start` {' and '.join(said)}; give {', '.join(expected)}.")


def _site(name: str, site: Mapping[str, Any], given: Any) -> jax.Array:
    shape = jnp.shape(site["value"])
    values = np.asarray(given, np.float64)
    if values.shape != shape:
        raise ValueError(f"`start` gives {name} the shape {values.shape}; the target's is {shape}.")
    support = site["fn"].support
    value = jnp.asarray(values, jnp.result_type(site["value"]))
    allowed = bool(jnp.all(support(value)))
    unconstrained: jax.Array = biject_to(support).inv(value)
    if not (allowed and bool(jnp.all(jnp.isfinite(unconstrained)))):
        raise ValueError(
            f"`start` gives {name} a value that is not finite or outside its support ({support}); a mean of "
            "constrained draws can lie outside, so project it first."
        )
    return unconstrained
