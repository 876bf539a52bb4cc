"""Where the means of a network's fits start, as a trained network would."""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from onebasin.models.networks.bayesian import NetworkTarget

from ..density.numpyro import NumpyroDensity
from ..training.ensemble import Ensemble
from ..training.members import first_values


def he_starts(
    target: NetworkTarget,
    density: NumpyroDensity,
    *,
    fits: int,
    dtype: Literal["float64", "float32"],
    seed: int,
) -> Float[Array, "fit param"]:
    """Unconstrained points: weights as He et al. 2015 have it, the rest as `Ensemble.init` says."""
    made = Ensemble(members=fits, init="he", dtype=dtype)
    values = {n: jnp.asarray(v) for n, v in first_values(target, made, seed).items()}
    return jax.vmap(density.unconstrain)(values)
