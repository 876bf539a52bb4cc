"""Many simulations by one compiled program: chains of NUTS, static HMC and MCLMC.

The data are an argument of the program, so that it is compiled once. Chains advance side by side, and so do
simulations, unless a gradient takes so long that waiting for the longest tree costs more than it saves.
Kernels, starts, adaptation and keys are those of `nuts`, `hmc` and `mclmc`: a simulation has the draws that the method
would have for its data and seed, up to rounding.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from onebasin.base.errors import ArgumentError, InferenceError
from onebasin.base.precision import precision
from onebasin.base.seeds import Purpose, keys_for
from onebasin.models.target import Target

from ..contracts.density import Values
from ..contracts.method import Method, weighs
from ..density.network import NetworkDensity, numpyro_density_of
from ..density.numpyro import NumpyroDensity
from ..mcmc.numpyro import bounded, chain_starts, kernel_of, points_to_climb_from
from ..mcmc.nuts import Hmc, Nuts
from ..mcmc.optimum import BestOptimum
from ..microcanonical.mclmc import Mclmc
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


def traced(family: Family, like: Target, data: Data) -> NumpyroDensity:
    """The log density of data that JAX traces; `like` is the target of other data."""
    assert family.model is not None, "asked before"
    density = numpyro_density_of(replace(like, numpyro_model=family.model(data)))
    if isinstance(density, NetworkDensity):
        return replace(density, observed=(jnp.asarray(density.target.x), jnp.asarray(data["y"])))
    return density


Stacked = Mapping[str, np.ndarray]  # Data of simulations along a leading axis.
Points = Float[Array, "simulation chain param"] | Float[np.ndarray, "simulation chain param"]


AT_ONCE = 25  # Simulations per call.
SIDE_BY_SIDE = 50_000
"""Operations of a gradient up to which trees of simulations grow side by side.

There each simulation waits for the longest tree among all, some four times the mean. What that costs is small next to
what 25 gradients save that are evaluated together, as long as each is short: they take 2.6 times as long as one
simulation's of a network with ten weights (1,200 operations), 7.6 times of a mixture (23,000), and 17.8 times of a
hidden Markov model (92,000; processor time of one busy core), where one simulation after the other costs less.
"""


class CompiledChains:
    """A compiled program that draws chains of many simulations; made for the first of them."""

    def __init__(self, family: Family, settings: Nuts | Hmc | Mclmc) -> None:
        self.family, self.settings = family, settings
        self._prepared = False

    def __call__(self, simulations: Sequence[Simulation]) -> list[SimulationDraws]:
        """Draw chains of each simulation."""
        data = stacked([simulation.data for simulation in simulations])
        seeds = np.array([simulation.seed for simulation in simulations], np.int64)
        with precision(self.settings.dtype):
            if not self._prepared:
                like = target_of(self.family, simulations[0])
                self._prepare(like, {name: values[0] for name, values in data.items()})
                self._prepared = True
            return self._infer(data, seeds)

    def _prepare(self, like: Target, data: Mapping[str, np.ndarray]) -> None:
        s, family = self.settings, self.family
        if isinstance(s, Mclmc):
            together: Callable[..., tuple[Values, jax.Array]] = partial(_mclmc, family, like, s)
        else:
            together = partial(_hmc, family, like, s)
        self._draw = jax.jit(
            jax.vmap(together)
            if self._side_by_side(like, data)
            else lambda *given: jax.lax.map(lambda each: together(*each), given)
        )
        if not isinstance(s, Mclmc):
            points = points_to_climb_from if s.init == "optimum" else chain_starts
            self._points = jax.jit(
                jax.vmap(lambda data, seed: points(traced(family, like, data), s, seed))
            )
            self._search = BestOptimum(lambda v, data: traced(family, like, data).log_density(v))

    def _infer(self, data: Stacked, seeds: np.ndarray) -> list[SimulationDraws]:
        failures = [""] * len(seeds)
        given: tuple[Any, ...] = (data, seeds)
        if not isinstance(self.settings, Mclmc):
            points, failures = self._starts(self.settings, data, seeds)
            given = (*given, points)
        draws, diverging = self._draw(*given)
        draws = {name: np.asarray(values, np.float64) for name, values in draws.items()}
        diverging = np.asarray(diverging)
        return [
            SimulationDraws(failure=failure)
            if failure
            else SimulationDraws(
                {n: v[i] for n, v in draws.items()}, divergences=int(diverging[i].sum())
            )
            for i, failure in enumerate(failures)
        ]

    def _starts(
        self, settings: Nuts | Hmc, data: Stacked, seeds: np.ndarray
    ) -> tuple[Points, list[str]]:
        """Starting points (simulation, chain, param), and why a simulation has none; empty if it has."""
        points = self._points(data, seeds)
        failures = [""] * len(seeds)
        if settings.init != "optimum":
            return points, failures
        tops = np.array(points[:, :, 0])  # where none is found, the first point stands in
        for number in range(len(seeds)):
            its = {name: values[number] for name, values in data.items()}
            try:
                tops[number] = [self._search(several, its) for several in points[number]]
            except InferenceError as error:
                failures[number] = str(error)
        return tops, failures

    def _side_by_side(self, like: Target, data: Mapping[str, np.ndarray]) -> bool:
        """Check whether simulations advance side by side; all but trees have one length."""
        if not isinstance(self.settings, Nuts):
            return True

        def gradient(data: Mapping[str, jax.Array], vector: jax.Array) -> jax.Array:
            return jax.grad(traced(self.family, like, data).log_density)(vector)

        size = traced(self.family, like, data).size
        cost = jax.jit(gradient).lower(data, jnp.zeros(size)).cost_analysis()
        return float((cost or {}).get("flops", 0.0)) <= SIDE_BY_SIDE


def stacked(data: Sequence[Data]) -> dict[str, np.ndarray]:
    """Data of simulations along a leading axis."""
    first = {name: np.shape(value) for name, value in data[0].items()}
    for each in data:
        shapes = {name: np.shape(value) for name, value in each.items()}
        if shapes != first:
            raise ArgumentError(
                f"`simulate` gave data of shapes {first} and then {shapes}; with `model` they must not change: leave "
                "it out, or simulate one size."
            )
    return {name: np.stack([np.asarray(each[name]) for each in data]) for name in first}


def _hmc(
    family: Family,
    like: Target,
    settings: Nuts | Hmc,
    data: Mapping[str, jax.Array],
    seed: jax.Array,
    points: Float[Array, "chain param"],
) -> tuple[Values, jax.Array]:
    """Draws (chain, draw, ...) of one simulation, and which transitions diverged."""
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

    starts = jax.vmap(density.unravel)(points)
    return jax.vmap(chain)(keys_for(Purpose.CHAIN, seed, settings.chains), starts)


def _mclmc(
    family: Family, like: Target, settings: Mclmc, data: Mapping[str, jax.Array], seed: jax.Array
) -> tuple[Values, jax.Array]:
    """The same of microcanonical chains."""
    from ..microcanonical.dynamics import Microcanonical, resolved

    density = traced(family, like, data)
    moves = Microcanonical(density, resolved(settings, like))
    warm, draw = moves.advance(1), moves.advance(settings.draws)

    def chain(key: jax.Array, point: jax.Array) -> tuple[Float[Array, "draw param"], jax.Array]:
        state, _ = warm(moves.begin(key, point), 0, 1, settings.warmup)
        _, kept = draw(state, 0, settings.draws, settings.thin)
        return kept["z"], kept["diverging"]

    z, diverging = jax.vmap(chain)(*moves.inputs(seed))
    values = jax.vmap(jax.vmap(lambda vector: density.quantities(density.unravel(vector))))(z)
    return values, diverging


class CompiledDensities:
    """Log densities of many simulations' points, by one program a shape of the points."""

    def __init__(self, family: Family):
        self._family, self._compiled = family, jax.jit(jax.vmap(self._at))

    def __call__(
        self, simulations: Sequence[Simulation], points: Sequence[Mapping[str, Any]]
    ) -> list[LogDensities]:
        """Log densities at points (point, ...) of each simulation."""
        data = stacked([simulation.data for simulation in simulations])
        values = {n: np.stack([p[n] for p in points]) for n in simulations[0].parameters}
        with precision("float64"):
            likelihood, prior = self._compiled(data, values)
            both = np.asarray(likelihood), np.asarray(likelihood + prior)
        return [{LOG_LIKELIHOOD: a, LP: b} for a, b in zip(*both, strict=True)]

    def _at(
        self, data: Mapping[str, jax.Array], values: Mapping[str, jax.Array]
    ) -> tuple[jax.Array, jax.Array]:
        from ..density.numpyro import site_terms

        assert self._family.model is not None, "asked before"
        model = self._family.model(data)

        def one(point: Values) -> tuple[jax.Array, jax.Array]:
            zero = jnp.zeros(())
            return (
                sum(site_terms(model, point, observed=True), zero),
                sum(site_terms(model, point, observed=False), zero),
            )

        return jax.vmap(one)(dict(values))


def together(family: Family, method: Method) -> CompiledChains | None:
    """One compiled program for all simulations, where there is one for the method."""
    if family.model is None:
        return None
    if (
        weighs(method, is_network=hasattr(family.model, "network"))
        or getattr(method, "init", None) == "fit"
    ):
        return None  # weights take a loop of their own
    return CompiledChains(family, method) if isinstance(method, Nuts | Hmc | Mclmc) else None
