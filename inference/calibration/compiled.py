"""Many simulations by one compiled program: chains of NUTS, static HMC and MCLMC, and fits by ADVI.

The data are an argument of the program, so that it is compiled once. Chains advance side by side, and so do
simulations, unless a gradient takes so long that waiting for the longest tree costs more than it saves.
Kernels, starts, adaptation and keys are those of `nuts`, `hmc` and `mclmc`: a simulation has the draws that the method
would have for its data and seed, up to rounding. So have ADVI and symmetrised variational inference on NumPyro the
objectives, starts, keys, optimiser and stopping rule of `advi` and `symmetrised_vi` with one fit: fits run side by side
until all have settled; of each, what it was when it settled is taken.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, override

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float

from onebasin.base.checks import check_class, choose
from onebasin.base.errors import (
    ArgumentError,
    ArgumentTypeError,
    InferenceError,
    OnebasinError,
    StanRunError,
    UserCodeFailed,
    code_of_user,
)
from onebasin.base.precision import precision
from onebasin.base.seeds import Purpose, keys_for
from onebasin.models.target import Target

from ..contracts.density import Values
from ..contracts.engines import chosen, density_by, engine_for, engine_named
from ..contracts.method import Method, weighs
from ..density.network import NetworkDensity, numpyro_density_of
from ..density.numpyro import NumpyroDensity
from ..mcmc.numpyro import bounded, chain_starts, kernel_of, points_to_climb_from
from ..mcmc.nuts import Hmc, Nuts
from ..mcmc.optimum import BestOptimum
from ..methods import METHODS, WORDS, method_named
from ..microcanonical.mclmc import Mclmc
from ..runs.posterior import build
from ..runs.run import run
from ..variational.advi import Advi
from ..variational.engine import Begun, State, annealed, has_settled, most_steps, planned
from ..variational.result import draw_fit
from ..variational.symmetrised import Symmetrised
from .family import Data, Family, Simulation, SimulationDraws, draws_of, target_of
from .quantities import LOG_LIKELIHOOD, LP, LogDensities


def traced(family: Family, like: Target, data: Data) -> NumpyroDensity:
    """The log density of data that JAX traces; `like` is the target of other data."""
    assert family.model is not None, "asked before"
    density = numpyro_density_of(replace(like, numpyro_model=family.model(data)))
    if isinstance(density, NetworkDensity):
        return replace(density, observed=(jnp.asarray(density.target.x), jnp.asarray(data["y"])))
    return density


Stacked = Mapping[str, np.ndarray]  # Data of simulations along a leading axis.
Points = Float[Array, "simulation chain param"] | Float[np.ndarray, "simulation chain param"]


AT_ONCE = 25  # Simulations that are inferred by a call.
SIDE_BY_SIDE = 50_000
"""Operations of a gradient up to which trees of simulations grow side by side.

There each simulation waits for the longest tree among all, some four times the mean. What that costs is small next to
what 25 gradients save that are evaluated together, as long as each is short: they take 2.6 times as long as one
simulation's of a network with ten weights (1,200 operations), 7.6 times of a mixture (23,000), and 17.8 times of a
hidden Markov model (92,000; processor time of one busy core), where one simulation after the other costs less.
"""


class Compiled:
    """A compiled program that infers many simulations by a method; made for the first of them."""

    def __init__(self, family: Family, settings: Any) -> None:
        self.family, self.settings = family, settings
        self._prepared = False

    def __call__(self, simulations: Sequence[Simulation]) -> list[SimulationDraws]:
        """Infer each simulation."""
        data = stacked([simulation.data for simulation in simulations])
        seeds = np.array([simulation.seed for simulation in simulations], np.int64)
        with precision(self.settings.dtype):
            if not self._prepared:
                like = target_of(self.family, simulations[0])
                self.prepare(like, {name: values[0] for name, values in data.items()})
                self._prepared = True
            return self.infer(data, seeds)

    def prepare(self, like: Target, data: Mapping[str, np.ndarray]) -> None:
        """Compile for targets like this one and its data."""
        raise NotImplementedError

    def infer(self, data: Stacked, seeds: np.ndarray) -> list[SimulationDraws]:
        """Draw from the posterior of each simulation."""
        raise NotImplementedError


class CompiledChains(Compiled):
    """Draws chains of many simulations."""

    @override
    def prepare(self, like: Target, data: Mapping[str, np.ndarray]) -> None:
        s, family = self.settings, self.family
        together = partial(_mclmc if isinstance(s, Mclmc) else _hmc, family, like, s)
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

    @override
    def infer(self, data: Stacked, seeds: np.ndarray) -> list[SimulationDraws]:
        failures = [""] * len(seeds)
        given: tuple[Any, ...] = (data, seeds)
        if not isinstance(self.settings, Mclmc):
            points, failures = self._starts(data, seeds)
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

    def _starts(self, data: Stacked, seeds: np.ndarray) -> tuple[Points, list[str]]:
        """Starting points (simulation, chain, param), and why a simulation has none; empty where it has."""
        points = self._points(data, seeds)
        failures = [""] * len(seeds)
        if self.settings.init != "optimum":
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
        """Tell whether simulations advance side by side; all but trees have one length."""
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


def together(family: Family, method: Method) -> Compiled | None:
    """One compiled program for all simulations, where there is one for the method."""
    if family.model is None:
        return None
    if (
        weighs(method, is_network=hasattr(family.model, "network"))
        or getattr(method, "init", None) == "fit"
    ):
        return None  # weights take a loop of their own
    if isinstance(method, Nuts | Hmc | Mclmc):
        return CompiledChains(family, method)
    if isinstance(method, Advi | Symmetrised) and method.batch_size is None:
        return CompiledFits(family, method)
    return None


class CompiledFits(Compiled):
    """Fits approximations of many simulations."""

    @override
    def infer(self, data: Stacked, seeds: np.ndarray) -> list[SimulationDraws]:
        params, failed = self._trained(data, seeds)
        draws = self._draw(data, seeds, params)
        draws = {name: np.asarray(values, np.float64) for name, values in draws.items()}
        return [
            SimulationDraws(failure="the ELBO is not finite")
            if failed[i]
            else SimulationDraws({n: v[i][None] for n, v in draws.items()}, independent=True)
            for i in range(len(seeds))
        ]

    @override
    def prepare(self, like: Target, data: Mapping[str, np.ndarray]) -> None:
        s = self.settings
        one = replace(s, fits=1) if isinstance(s, Symmetrised) else s
        plan = planned(like, one)

        def began(data: Mapping[str, jax.Array], seed: jax.Array) -> Begun:
            return plan.on(traced(self.family, like, data)).begin(seed)

        def first(data: Any, seed: jax.Array) -> State:
            return began(data, seed).state

        def advance(data: Any, seed: jax.Array, state: State, done: Any, num: Any) -> Any:
            begun = began(data, seed)
            state = begun.elbo.stepped(state, done, num)
            key = begun.evaluations
            if begun.elbo.information is not None:
                key = jax.random.fold_in(key, done)
            both = jax.vmap(lambda p: jnp.stack(begun.elbo.evaluate(key, p)))(state.params)
            return state, both[0]

        def draw(data: Any, seed: jax.Array, params: Any) -> Any:
            elbo, _, _, keys = began(data, seed)
            density, num = elbo.density, self.settings.draws
            return draw_fit(density, elbo.family, params, keys[0], num)[0]

        self._first = jax.jit(jax.vmap(first))
        self._advance = jax.jit(jax.vmap(advance, in_axes=(0, 0, 0, None, None)))
        self._draw = jax.jit(jax.vmap(draw))

    def _trained(self, data: Stacked, seeds: np.ndarray) -> tuple[Any, np.ndarray]:
        """Parameters of every fit as it settled, and which fits failed."""
        steps, every = most_steps(self.settings), self.settings.evaluate_every
        wait = annealed(self.settings.anneal, steps)
        state = self._first(data, seeds)
        trace = np.zeros((0, len(seeds)))
        settled = np.zeros(len(seeds), bool)

        def either(settled: np.ndarray, old: jax.Array, new: jax.Array) -> jax.Array:
            """Return the old values (fit, ...) of fits that had settled, and the new values of others."""
            return jnp.where(settled.reshape(-1, *[1] * (old.ndim - 1)), old, new)

        kept = jax.tree.map(lambda leaf: leaf[:, 0], state.params)
        for done in range(0, steps, every):
            if done >= wait:
                settled |= [
                    has_settled(list(column), self.settings.tolerance) for column in trace.T
                ]
            if settled.all():
                break
            state, both = self._advance(data, seeds, state, done, min(every, steps - done))
            trace = np.vstack([trace, np.asarray(both, np.float64).sum(axis=1)])
            now = jax.tree.map(lambda leaf: leaf[:, 0], state.params)
            kept = jax.tree.map(partial(either, settled), kept, now)
            settled |= ~np.isfinite(trace[-1])
        leaves = [np.asarray(leaf).reshape(len(seeds), -1) for leaf in jax.tree.leaves(kept)]
        return kept, ~np.isfinite(np.concatenate(leaves, axis=1)).all(axis=1)


Infer = Callable[[Sequence[Simulation]], list[SimulationDraws]]
Densities = Callable[[Sequence[Simulation], Sequence[Mapping[str, Any]]], list[LogDensities]]
Own = Callable[[Target, int], xr.DataTree]
"""A method of a user's own: from a target and a seed to a posterior."""
After = Callable[[Target, xr.DataTree, int], xr.DataTree]
"""From a target, a posterior of it and a seed to another posterior that is made of it."""


@dataclass(frozen=True)
class Way:
    """The way in which simulations are inferred; `densities` are those at points (simulation, point, ...)."""

    method: str
    engine: str
    settings: Any
    infer: Infer
    densities: Densities
    at_once: int  # simulations that `infer` is given together
    together: bool = False  # one compiled program infers them


def method_of(word: str) -> Method:
    """Make the method of a word that gives a posterior, with short chains, since there are hundreds."""
    able = [name for name, (method, _) in WORDS.items() if METHODS[method].gives_posterior]
    return method_named(choose("method", word, able), METHODS[WORDS[word][0]].for_calibration)


def way_of(family: Family, method: Method | Own, *, engine: str | None, like: Target) -> Way:
    """Find the way of a method; `like` is the target of some data."""
    if not isinstance(method, Method):
        engine = engine_for(like, engine)
        name = getattr(method, "__name__", type(method).__name__)

        def users(target: Target, seed: int) -> xr.DataTree:
            with code_of_user(f"`method`, which is {name}, at seed {seed},"):
                tree = method(target, seed)
            check_class("method", tree, xr.DataTree, remedy="it must return a posterior")
            return tree

        densities = _densities(family, engine)
        return Way(name, engine, None, _one_by_one(family, users), densities, ONE_BY_ONE)
    engine = chosen(like, type(method), engine)[0]
    densities = _densities(family, engine)
    compiled_infer = together(family, method) if engine == "numpyro" else None
    if compiled_infer is not None:
        at_once = AT_ONCE
        return Way(method.word, engine, method, compiled_infer, densities, at_once, together=True)

    def own(target: Target, seed: int) -> xr.DataTree:
        how: dict[str, Any] = dict.fromkeys(("symmetry", "check_symmetry", "progress"), False)
        how["predictive_mb"] = 0
        return run(target, method, engine=engine, seed=seed, **how)

    alone = _one_by_one(family, own, independent=not method.correlated)
    return Way(method.word, engine, method, alone, densities, ONE_BY_ONE)


ONE_BY_ONE = 5
"""Simulations between which what was found is kept, where each is inferred by itself."""


def _one_by_one(family: Family, method: Own, *, independent: bool = False) -> Infer:
    """Infer each simulation by itself; a method that fails on one has failed there alone."""

    def one(simulation: Simulation) -> SimulationDraws:
        target = target_of(family, simulation)
        try:
            tree = method(target, simulation.seed)
        except (InferenceError, StanRunError) as error:
            return SimulationDraws(failure=str(error))
        return draws_of(simulation, tree, independent=independent)

    return lambda simulations: [one(simulation) for simulation in simulations]


def followed(way: Way, family: Family, after: After) -> Way:
    """Judge what is made of each posterior, instead of the posterior."""

    def made(simulation: Simulation, drawn: SimulationDraws) -> SimulationDraws:
        if drawn.failure:
            return drawn
        target = target_of(family, simulation)
        how = {"engine": way.engine, "method": way.method, "settings": {}, "seed": simulation.seed}
        tree = build(target, drawn.draws, {}, how, predictive_mb=0)
        try:
            with code_of_user(f"`after`, at draw {simulation.number},"):
                found = after(target, tree, simulation.seed)
        except (ArgumentError, ArgumentTypeError, UserCodeFailed):
            raise
        except OnebasinError as error:
            return SimulationDraws(failure=str(error))
        return replace(
            draws_of(simulation, found, independent=False), divergences=drawn.divergences
        )

    def infer(simulations: Sequence[Simulation]) -> list[SimulationDraws]:
        return [made(*each) for each in zip(simulations, way.infer(simulations), strict=True)]

    name = f"{way.method}, {getattr(after, '__name__', type(after).__name__)}"
    return replace(way, method=name, infer=infer, together=False)


def _densities(family: Family, engine: str) -> Densities:
    """Log densities of a family at points: by its model for all simulations at once, else by the engine for each."""
    if family.model is not None:
        return CompiledDensities(family)
    by = engine_named(engine).name

    def one(simulation: Simulation, points: Mapping[str, Any]) -> LogDensities:
        target = target_of(family, simulation)
        with precision("float64"):
            density = density_by(by, target)
            values = {name: points[name] for name in density.names}
            found = {LP: np.asarray(density.log_density(values))}
            likelihood = density.log_likelihood(values)
            if likelihood is None and POINTWISE in density.derived:
                each = density.derived_at(values, simulation.seed)[POINTWISE]
                likelihood = each.reshape(len(each), -1).sum(axis=1)
        return found if likelihood is None else {LOG_LIKELIHOOD: likelihood, **found}

    return lambda simulations, points: [
        one(*each) for each in zip(simulations, points, strict=True)
    ]


POINTWISE = "log_lik"  # A Stan program's name for the log likelihood of each observation.
