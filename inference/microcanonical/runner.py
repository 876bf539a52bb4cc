"""Chains of microcanonical Langevin Monte Carlo, one a thread, in compiled slices.

A chain a thread and a core, each advancing by itself, costs no more than several in one vectorised program: at the
sizes of tables a single network's matrix products keep a core busy, several at once fall out of its cache.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import optax

from onebasin.base.errors import ArgumentError, InferenceError
from onebasin.base.precision import precision
from onebasin.base.seeds import Purpose, keys_for
from onebasin.models.target import Target

from ..contracts.density import Vector
from ..contracts.method import Job
from ..density.network import NetworkDensity, density_of
from ..density.stan_vectors import Density
from ..mcmc.places import ChainPlace
from ..mcmc.walk import Walk, rows
from .dynamics import Adjusted, Advance, ChainState, Tuner, Unadjusted
from .mclmc import NETWORKS_VARIANCE, OTHERS_VARIANCE, Mclmc


def first_points(
    density: Density, settings: Mclmc, seed: int | jax.Array
) -> tuple[jax.Array, Callable[[jax.Array], Vector]]:
    """Return the inputs of each chain's start, (chain, ...), and the traced function that makes it of them."""
    if isinstance(density, NetworkDensity):
        keys = keys_for(Purpose.MEMBER_START, seed, settings.chains)
        return keys, lambda key: density.unconstrain(density.he_values(key))
    keys = keys_for(Purpose.CHAIN_START, seed, settings.chains)
    return density.random_starts(keys, settings.init_radius), lambda point: point


def climbed(density: Density, settings: Mclmc, point: Vector) -> Vector:
    """Return the point that Adam reaches, from a point, on the log density of all data."""
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


ROWS = 50
"""Draws of a slice."""
WARMUP_ROW = 500
"""Iterations of the warmup between looks at the clock."""
BEGINS = 2**31
"""Number of the iteration, above all others, whose key the first momentum has."""


class MclmcRunner:
    """Runs chains of one target; compiled once, called from several threads.

    A target with a single parameter raises ValueError; InferenceError says that no starting point of finite log density
    is found.
    """

    slices = (WARMUP_ROW, ROWS)

    def __init__(self, job: Job[Mclmc]) -> None:
        self.settings = settings = resolved(job.method, job.target)
        self.bars = job.bars
        with precision(settings.dtype):
            density = density_of(job.target, job.bars.say)
            check_size(density.size, job.target.name)
            self._density = density  # a Stan program stays open as long as what calls it
            tuner = Tuner(settings, density.size)
            dynamics = (Adjusted if settings.adjusted else Unadjusted)(density.log_density, tuner)
            keys = keys_for(Purpose.CHAIN, job.seed, settings.chains)
            seeds, point = first_points(density, settings, job.seed)

            def begin(key_and_seed: tuple[jax.Array, jax.Array]) -> ChainState:
                key, seed = key_and_seed
                vector = climbed(density, settings, point(seed))
                place = dynamics.init(vector, jax.random.fold_in(key, BEGINS))
                return ChainState(key, jnp.zeros((), jnp.int32), place, tuner.first())

            self._states = jax.jit(lambda of_all: jax.lax.map(begin, of_all))((keys, seeds))
            first = self._states.place
            if not (
                np.isfinite(first.logdensity).all() and np.isfinite(first.logdensity_grad).all()
            ):
                raise InferenceError(
                    f"Adam left the finite log densities of {job.target.name!r} on its way to a chain's start; lower "
                    "`learning_rate`, or set `start_steps` to 0."
                )
            self.like = jax.eval_shape(lambda: self.start(0))
            lowered = jax.jit(Advance(dynamics, tuner, ROWS)).lower(self.like, 0, 1, 1)
            self._advance = lowered.compile()
            constrain = jax.jit(jax.vmap(lambda z: density.quantities(density.unravel(z))))
            self._constrain = constrain.lower(lowered.out_info[1]["z"]).compile()

    def start(self, number: int) -> ChainState:
        """Return the state that a chain begins from."""
        state: ChainState = jax.tree.map(lambda leaf: leaf[number], self._states)
        return state

    def adapted(self, state: ChainState) -> dict[str, np.ndarray]:
        """Return nothing."""
        return {}

    def advance(
        self, state: ChainState, first: int, last: int, *, keep: bool
    ) -> tuple[ChainState, dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Take the rows from `first` to `last` of a slice; returns their draws and statistics.

        A row is a draw with the iterations before it; of the warmup, where no draws are kept, the iterations from
        `first` to `last` are one row.
        """
        begin, end, thin = (first, last, self.settings.thin) if keep else (0, 1, last - first)
        state, ended = jax.block_until_ready(self._advance(state, begin, end, thin))
        z = ended.pop("z")
        draws, stats = (
            rows(part, begin, end) for part in (self._constrain(z) if keep else {}, ended)
        )
        return state, draws, stats

    def __call__(self, place: ChainPlace, cancel: threading.Event) -> None:
        """Run one chain; see `chains.RunChain`."""
        with precision(self.settings.dtype):
            Walk(self, place, self.bars).run(cancel)


def resolved(settings: Mclmc, target: Target) -> Mclmc:
    """The settings with nothing left to the target's kind."""
    network = target.is_network
    metric, variance = settings.metric, settings.energy_variance
    return replace(
        settings,
        metric=("unit" if network else "diag") if metric == "auto" else metric,
        energy_variance=variance or (NETWORKS_VARIANCE if network else OTHERS_VARIANCE),
    )


def check_size(size: int, name: str) -> None:
    """Refuse a target on whose line a momentum of length one has no direction to turn to."""
    if size < 2:
        raise ArgumentError(
            f"`target` {name!r} has a single parameter, and microcanonical dynamics needs at least 2; use `nuts`."
        )
