"""Chains of microcanonical Langevin Monte Carlo, one a thread, in compiled slices.

A chain a thread and a core, each advancing by itself, costs no more than several in one vectorised program: at the
sizes of tables a single network's matrix products keep a core busy, several at once fall out of its cache.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import override

import jax
import jax.numpy as jnp
import numpy as np
import optax

from onebasin.base.errors import ArgumentError, InferenceError
from onebasin.base.precision import precision
from onebasin.base.seeds import Purpose, keys_for
from onebasin.models.target import Target

from ..contracts.method import Job
from ..density.network import NetworkDensity, density_of
from ..density.stan_vectors import Density
from ..mcmc.chain_files import ChainPlace
from ..mcmc.sliced import Runner, Walk, rows
from .dynamics import Adjusted, Advance, ChainState, Tuner, Unadjusted
from .mclmc import NETWORKS_VARIANCE, OTHERS_VARIANCE, Mclmc

ROWS = 50
"""Draws of a slice."""
WARMUP_ROW = 500
"""Iterations of the warmup between looks at the clock."""
BEGINS = 2**31
"""Number of the iteration, above all others, whose key the first momentum has."""


class Microcanonical:
    """The starts and the steps of chains on a density; the settings leave nothing to the target's kind."""

    def __init__(self, density: Density, settings: Mclmc) -> None:
        if density.size < 2:
            raise ArgumentError(
                f"`target` {density.target.name!r} has a single parameter, and microcanonical dynamics needs at least "
                "2; use `nuts`."
            )
        self.density, self.settings = density, settings
        self.tuner = Tuner(settings, density.size)
        kind = Adjusted if settings.adjusted else Unadjusted
        self.dynamics = kind(density.log_density, self.tuner)

    def inputs(self, seed: int | jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return the arguments of `begin`, (chain, ...): keys, and points or, of a network, keys of theirs."""
        s, keys = self.settings, keys_for(Purpose.CHAIN, seed, self.settings.chains)
        if isinstance(self.density, NetworkDensity):
            return keys, keys_for(Purpose.MEMBER_START, seed, s.chains)
        starts = keys_for(Purpose.CHAIN_START, seed, s.chains)
        return keys, self.density.random_starts(starts, s.init_radius)

    def begin(self, key: jax.Array, point: jax.Array) -> ChainState:
        """Return the state that a chain begins from, after Adam's steps on the log density of all data."""
        density, s = self.density, self.settings
        if isinstance(density, NetworkDensity):
            point = density.unconstrain(density.he_values(point))
        adam = optax.adam(optax.cosine_decay_schedule(s.learning_rate, max(1, s.start_steps)))

        def step(_: jax.Array, carry: tuple) -> tuple:
            point, memory = carry
            slope = jax.grad(lambda v: -density.log_density(v))(point)
            updates, memory = adam.update(slope, memory)
            return optax.apply_updates(point, updates), memory

        if s.start_steps:
            point = jax.lax.fori_loop(0, s.start_steps, step, (point, adam.init(point)))[0]
        place = self.dynamics.init(point, jax.random.fold_in(key, BEGINS))
        return ChainState(key, jnp.zeros((), jnp.int32), place, self.tuner.first())

    def advance(self, rows: int) -> Advance:
        """Return the program that takes iterations of one chain."""
        return Advance(self.dynamics, self.tuner, rows)


class MclmcRunner(Runner):
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
            self._density = density  # a Stan program stays open as long as what calls it
            moves = Microcanonical(density, settings)
            begin = jax.jit(lambda each: jax.lax.map(lambda both: moves.begin(*both), each))
            self.states = begin(moves.inputs(job.seed))
            first = self.states.place
            if not (
                np.isfinite(first.logdensity).all() and np.isfinite(first.logdensity_grad).all()
            ):
                raise InferenceError(
                    f"Adam left the finite log densities of {job.target.name!r} on its way to a chain's start; lower "
                    "`learning_rate`, or set `start_steps` to 0."
                )
            self.like = jax.eval_shape(lambda: self.start(0))
            lowered = jax.jit(moves.advance(ROWS)).lower(self.like, 0, 1, 1)
            self._advance = lowered.compile()
            constrain = jax.jit(jax.vmap(lambda z: density.quantities(density.unravel(z))))
            self._constrain = constrain.lower(lowered.out_info[1]["z"]).compile()

    @override
    def advance(
        self, state: ChainState, first: int, last: int, *, keep: bool
    ) -> tuple[ChainState, dict[str, np.ndarray], dict[str, np.ndarray]]:
        # A row is a draw with the iterations before it; of the warmup, where no draws are kept, the iterations from
        # `first` to `last` are one row.
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
            Walk(self, place).run(cancel)


def resolved(settings: Mclmc, target: Target) -> Mclmc:
    """The settings with nothing left to the target's kind."""
    network = target.is_network
    metric, variance = settings.metric, settings.energy_variance
    return replace(
        settings,
        metric=("unit" if network else "diag") if metric == "auto" else metric,
        energy_variance=variance or (NETWORKS_VARIANCE if network else OTHERS_VARIANCE),
    )
