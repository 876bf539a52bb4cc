"""Names of a NumPyro model's axes, from its plates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp

from onebasin.posteriors.schema import SAMPLE_DIMS

Site = Mapping[str, Any]


def plate_dims(
    sites: Mapping[str, Site], given: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """Axes of sites: those that are given, else the plates that a site stands in, the outermost furthest right.

    An axis of no plate has ArviZ's name, or the one that `infer={"event_dims": [...]}` gives it. A plate's name that is
    one of a site too, or that has another size elsewhere, names no axis.

    Parameters
    ----------
    sites : mapping
        A model's trace.
    given : mapping
        Axes that are named already.
    """
    taken = {name for name, site in sites.items() if site["type"] != "plate"} | set(SAMPLE_DIMS)
    sizes: dict[str, int] = {}
    for name, axes in given.items():
        if name in sites:
            shape = jnp.shape(sites[name]["value"])
            sizes |= dict(zip(axes, shape, strict=False))
    found = dict(given)
    for name, site in sites.items():
        if name in given or site["type"] not in ("sample", "deterministic"):
            continue
        shape = jnp.shape(site["value"])
        named = {
            place: axis
            for place, axis in _named(site, shape).items()
            if axis not in taken and sizes.setdefault(axis, shape[place]) == shape[place]
        }
        if named:
            found[name] = tuple(named.get(i, f"{name}_dim_{i}") for i in range(len(shape)))
    return found


def _named(site: Site, shape: tuple[int, ...]) -> dict[int, str]:
    """Places of a site's axes that have a name."""
    frames = site["cond_indep_stack"]
    if site["type"] == "deterministic":  # which does not tell batch from event
        events = range(len(shape) + 1)
    else:
        events = range(site["fn"].event_dim, site["fn"].event_dim + 1)
    for event_dim in events:
        batch = len(shape) - event_dim
        places = {batch + frame.dim: frame for frame in frames}
        if all(p >= 0 and shape[p] == frame.size for p, frame in places.items()):
            last = list(site.get("infer", {}).get("event_dims", []))
            names = dict(zip(range(len(shape) - len(last), len(shape)), last, strict=True))
            return names | {place: frame.name for place, frame in places.items()}
    return {}
