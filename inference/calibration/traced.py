"""The log density of a family given data that JAX traces, so that one program serves many simulations."""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp

from onebasin.models.target import Target

from ..density.network import NetworkDensity, numpyro_density_of
from ..density.numpyro import NumpyroDensity
from .family import Data, Family


def traced(family: Family, like: Target, data: Data) -> NumpyroDensity:
    """The log density of data that JAX traces; `like` is the target of other data."""
    assert family.model is not None, "asked before"
    density = numpyro_density_of(replace(like, numpyro_model=family.model(data)))
    if isinstance(density, NetworkDensity):
        return replace(density, observed=(jnp.asarray(density.target.x), jnp.asarray(data["y"])))
    return density
