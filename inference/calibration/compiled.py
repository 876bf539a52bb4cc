"""Programs that infer many simulations at once, and evaluate their log densities, compiled once for all of them.

The data are an argument of a program; chains and simulations advance in parallel. Kernels, starting values, adaptation
and random keys are those of `nuts` and `hmc`. Up to rounding, a simulation therefore has the same draws as a separate
run of the method with its data and seed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from onebasin.base.errors import ArgumentError
from onebasin.base.precision import precision
from onebasin.base.seeds import Purpose, keys_for
from onebasin.models.target import Target

from ..contracts.density import Values
from ..contracts.method import Method
from ..density.network import NetworkDensity, numpyro_density_of
from ..density.numpyro import NumpyroDensity, site_terms
from ..mcmc.numpyro import bounded, kernel_of
from ..mcmc.nuts import Hmc, Nuts
from ..mcmc.starts import chain_starts
from .family import (
    LOG_LIKELIHOOD,
    LP,
    Data,
    Family,
    LogDensities,
    Simulation,
    SimulationDraws,
    target_of,
)

Infer = Callable[[Sequence[Simulation]], list[SimulationDraws]]
Densities = Callable[[Sequence[Simulation], Sequence[Mapping[str, Any]]], list[LogDensities]]
AT_ONCE = 25  # Number of simulations per call.


def traced(family: Family, like: Target, data: Data) -> NumpyroDensity:
    """Return the log density for data traced by JAX; `like` is the target of another simulation's data."""
    assert family.model is not None, "asked before"
    density = numpyro_density_of(replace(like, numpyro_model=family.model(data)))
    if isinstance(density, NetworkDensity):
        return replace(density, observed=(jnp.asarray(density.target.x), jnp.asarray(data["y"])))
    return density


def compiled_chains(family: Family, settings: Nuts | Hmc) -> Infer:
    """Return a function that draws the chains of simulations, compiled for the first simulation."""
    draw: Any = None

    def infer(simulations: Sequence[Simulation]) -> list[SimulationDraws]:
        nonlocal draw
        data = stacked([simulation.data for simulation in simulations])
        seeds = np.array([simulation.seed for simulation in simulations], np.int64)
        with precision(settings.dtype):
            if draw is None:
                like = target_of(family, simulations[0])
                draw = jax.jit(jax.vmap(partial(_hmc, family, like, settings)))
            draws, diverging = draw(data, seeds)
        counts = np.asarray(diverging).sum(axis=(1, 2))
        values = {name: np.asarray(each, np.float64) for name, each in draws.items()}
        return [
            SimulationDraws({n: v[i] for n, v in values.items()}, divergences=int(count))
            for i, count in enumerate(counts)
        ]

    return infer


def stacked(data: Sequence[Data]) -> dict[str, np.ndarray]:
    """Stack the data of simulations along a leading axis."""
    first = {name: np.shape(value) for name, value in data[0].items()}
    for each in data:
        shapes = {name: np.shape(value) for name, value in each.items()}
        if shapes != first:
            raise ArgumentError(
                "A family with a `model` must always simulate data with the same shapes, but `simulate` returned "
                f"data with the shapes {first} and then {shapes}. Omit `model`, or always simulate data with the "
                "same shapes."
            )
    return {name: np.stack([np.asarray(each[name]) for each in data]) for name in first}


def _hmc(
    family: Family,
    like: Target,
    settings: Nuts | Hmc,
    data: Mapping[str, jax.Array],
    seed: jax.Array,
) -> tuple[Values, jax.Array]:
    """Return the draws (chain, draw, ...) of one simulation and a mask of its divergent transitions (chain, draw)."""
    density = traced(family, like, data)
    kernel = kernel_of(density, settings)

    def moved(state: Any) -> Any:
        return kernel.sample(bounded(settings, state), (), {})

    def chain(key: jax.Array, start: Values) -> tuple[Values, jax.Array]:
        state = kernel.init(key, settings.warmup, start, (), {})
        state = jax.lax.fori_loop(0, settings.warmup, lambda _, s: moved(s), state)

        def draw(state: Any, _: None) -> tuple[Any, tuple]:
            state = moved(state)
            return state, (state.z, state.diverging)

        z, diverging = jax.lax.scan(draw, state, None, settings.draws)[1]
        return jax.vmap(density.quantities)(z), diverging

    starts = jax.vmap(density.unravel)(chain_starts(density, settings, seed))
    return jax.vmap(chain)(keys_for(Purpose.CHAIN, seed, settings.chains), starts)


def compiled_densities(family: Family) -> Densities:
    """Return a function of simulations and points (point, ...) of each, compiled once per shape of the points."""

    def at(data: Mapping[str, jax.Array], values: Mapping[str, jax.Array]) -> Any:
        assert family.model is not None, "asked before"
        model = family.model(data)

        def one(point: Values) -> tuple[jax.Array, ...]:
            terms = (site_terms(model, point, observed=which) for which in (True, False))
            return tuple(sum(own, jnp.zeros(())) for own in terms)

        return jax.vmap(one)(dict(values))

    compiled = jax.jit(jax.vmap(at))

    def densities(
        simulations: Sequence[Simulation], points: Sequence[Mapping[str, Any]]
    ) -> list[LogDensities]:
        data = stacked([simulation.data for simulation in simulations])
        values = {n: np.stack([p[n] for p in points]) for n in simulations[0].parameters}
        with precision("float64"):
            likelihood, prior = compiled(data, values)
            both = np.asarray(likelihood), np.asarray(likelihood + prior)
        return [{LOG_LIKELIHOOD: a, LP: b} for a, b in zip(*both, strict=True)]

    return densities


def together(family: Family, method: Method) -> Infer | None:
    """Return a compiled program for all simulations, or None if the family or the method does not support one."""
    if not isinstance(method, Nuts | Hmc) or method.init != "random" or method.thin != 1:
        return None
    return None if family.model is None else compiled_chains(family, method)
