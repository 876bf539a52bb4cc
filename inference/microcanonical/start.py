"""Where chains start: at members of a young ensemble, a few of Adam's steps from random points.

A long training would be worse: it ends in narrow modes, which a chain with the short steps that they need is slow to
leave.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import optax
from jaxtyping import Array, Float

from onebasin.base.seeds import Purpose, keys_for

from ..density.network import NetworkDensity
from ..density.numpyro import NumpyroDensity
from ..density.stan_vectors import StanVectors
from .mclmc import Mclmc

Vector = Float[Array, " param"]


def first_points(
    density: NumpyroDensity | StanVectors, settings: Mclmc, seed: int | jax.Array
) -> tuple[jax.Array, Callable[[jax.Array], Vector]]:
    """What each chain's start is made of, (chain, ...), and how: traced, so that all is compiled at once.

    Raises
    ------
    InferenceError
        If no point with a finite log density is found.
    """
    if isinstance(density, NetworkDensity):
        keys = keys_for(Purpose.MEMBER_START, seed, settings.chains)
        return keys, lambda key: density.unconstrain(density.he_values(key))
    keys = keys_for(Purpose.CHAIN_START, seed, settings.chains)
    return density.random_starts(keys, settings.init_radius), lambda point: point


def climbed(density: NumpyroDensity | StanVectors, settings: Mclmc, point: Vector) -> Vector:
    """Where Adam comes to, from a point, on the log density of all data."""
    if not settings.start_steps:
        return point
    adam = optax.adam(optax.cosine_decay_schedule(settings.learning_rate, settings.start_steps))

    def step(_: jax.Array, carry: tuple) -> tuple:
        point, memory = carry
        slope = jax.grad(lambda v: -density.log_density(v))(point)
        updates, memory = adam.update(slope, memory)
        return optax.apply_updates(point, updates), memory

    start = (point, adam.init(point))
    end: Vector = jax.lax.fori_loop(0, settings.start_steps, step, start)[0]
    return end
