"""HMC and NUTS on a NumPyro model, in compiled slices.

The kernels are NumPyro's. A chain advances `SLICE` iterations at a time inside one compiled loop, so that
it can show its progress and be stopped; where the slices end has no effect on the draws.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpyro.infer import HMC, NUTS
from numpyro.infer.hmc import HMCState

from onebasin.models.errors import RunCancelled

from ..density.network import density_of
from ..density.numpyro import NumpyroDensity
from ..density.start import random_starts
from ..keys import Purpose, keys_for
from ..precision import precision
from ..progress import ChainBar
from .chains import Chain, ChainsRequest, how_it_went
from .optimum import BestOptimum
from .settings import HmcSettings, NutsSettings

SLICE = 50
"""Iterations between looks at the clock; about a millisecond's work for the smallest models."""

STATS = ("diverging", "n_steps", "acceptance_rate", "energy", "step_size", "lp")


def chain_starts(
    density: NumpyroDensity, settings: NutsSettings | HmcSettings, seed: int
) -> Float[Array, "chain param"]:
    """A starting point a chain, as the settings want it.

    Raises
    ------
    InferenceError
        If no point with a finite log density is found, or no optimum.
    """
    keys = keys_for(Purpose.CHAIN_START, seed, settings.chains)
    if settings.init == "random":
        return random_starts(density, keys, settings.init_radius)
    several = jax.vmap(partial(jax.random.split, num=settings.init_starts))(keys)
    points = random_starts(density, several.reshape(-1), settings.init_radius)
    search = BestOptimum(density.log_density)
    return jnp.stack([search(group) for group in jnp.split(points, settings.chains)])


class ChainRunner:
    """Runs chains of one target; compiled once, called from several threads.

    Parameters
    ----------
    request : ChainsRequest
        Its target has a NumPyro model; no files are written.
    """

    def __init__(self, request: ChainsRequest) -> None:
        settings, seed = request.settings, request.seed
        self.settings, self.bars, self._room = settings, request.bars, request.gathered.room
        with precision(settings.dtype):
            density = density_of(request.target)
            points = jax.vmap(density.unravel)(chain_starts(density, settings, seed))
            kernel = _kernel(density, settings)
            start = jax.jit(jax.vmap(lambda key, z: kernel.init(key, settings.warmup, z, (), {})))
            self._states = start(keys_for(Purpose.CHAIN, seed, settings.chains), points)
            advance = jax.jit(partial(_advance, kernel, partial(_bounded, settings)))
            lowered = advance.lower(self._state(0), 1)
            self._advance = lowered.compile()
            # Compiled here, not while a chain's sampling is timed.
            constrain = jax.jit(jax.vmap(density.quantities))
            self._constrain = constrain.lower(lowered.out_info[1]["z"]).compile()

    def _state(self, number: int) -> HMCState:
        return jax.tree.map(lambda leaf: leaf[number], self._states)

    def __call__(self, number: int, cancel: threading.Event) -> Chain:
        """Run one chain; see `chains.RunChain`."""
        with precision(self.settings.dtype):
            s = self.settings
            bar = self.bars.chain(number, warmup=s.warmup, draws=s.draws)
            state = jax.block_until_ready(self._state(number))
            started = time.perf_counter()
            state = self._iterate(state, s.warmup, cancel, _Shown(bar, 0), None)
            warm = time.perf_counter()
            kept = _Kept(s.draws, partial(self._room, number))
            self._iterate(state, s.draws, cancel, _Shown(bar, s.warmup), kept)
            ended = time.perf_counter()
            chain = self._finish(kept, warm - started, ended - warm)
            bar.end(ended - started, **how_it_went(chain.stats))
            return chain

    def _iterate(
        self,
        state: HMCState,
        total: int,
        cancel: threading.Event,
        shown: _Shown,
        kept: _Kept | None,
    ) -> HMCState:
        for start in range(0, total, SLICE):
            if cancel.is_set():
                raise RunCancelled("The chain was stopped.")
            num = min(SLICE, total - start)
            # JAX hands back before it has computed: without waiting, a warmup would end as soon as it is queued, and
            # its time be counted as sampling.
            state, ended = jax.block_until_ready(self._advance(state, num))
            shown(start + num, num, ended)
            if kept is not None:
                kept.put(start, num, {"draws": self._constrain(ended.pop("z")), "stats": ended})
        return state

    def _finish(self, kept: _Kept, warmup: float, sampling: float) -> Chain:
        stats = kept.parts["stats"]
        if isinstance(self.settings, NutsSettings):
            # A tree of depth d takes 2^d - 1 leapfrog steps, plus those of a last subtree that is thrown away.
            stats["tree_depth"] = np.floor(np.log2(stats["n_steps"] + 1)).astype(np.int64)
        return Chain(kept.parts["draws"], stats, warmup, sampling)


class _Shown:
    """Shows how far a chain is, after each slice of a phase.

    Parameters
    ----------
    bar : ChainBar
        Where.
    before : int
        Iterations of the phases before.
    """

    def __init__(self, bar: ChainBar, before: int) -> None:
        self._bar, self._before, self._divergences = bar, before, 0

    def __call__(self, done: int, num: int, ended: dict[str, Any]) -> None:
        """Take in a slice; what the warmup's divergences were says nothing of the draws."""
        if not self._bar.moving:
            return
        self._divergences += int(np.asarray(ended["diverging"])[:num].sum())
        self._bar.show(
            self._before + done,
            step_size=float(np.asarray(ended["step_size"])[num - 1]),
            divergences=self._divergences,
        )


class _Kept:
    """What is kept of a chain, in arrays of its full length: a net's draws would not fit into memory twice.

    Parameters
    ----------
    draws : int
        How many there will be.
    room : callable
        Gives the array for a variable's draws, from its name, shape and type.
    """

    def __init__(
        self, draws: int, room: Callable[[str, tuple[int, ...], np.dtype], np.ndarray]
    ) -> None:
        self.draws, self._room = draws, room
        self.parts: dict[str, dict[str, np.ndarray]] = {}

    def put(self, start: int, num: int, ended: dict[str, dict[str, Any]]) -> None:
        """Store the first `num` rows of every buffer (draw, ...) from row `start` on."""
        for part, buffers in ended.items():
            arrays = self.parts.setdefault(part, {})
            for name, buffer in buffers.items():
                values = np.asarray(buffer)
                if name not in arrays:
                    shape = (self.draws, *values.shape[1:])
                    arrays[name] = (
                        self._room(name, shape, values.dtype)
                        if part == "draws"
                        else np.empty(shape, values.dtype)
                    )
                arrays[name][start : start + num] = values[:num]


def _kernel(density: NumpyroDensity, settings: NutsSettings | HmcSettings) -> HMC:
    common: dict[str, Any] = {
        "potential_fn": lambda z: -density.log_density_at(z),
        "target_accept_prob": settings.target_acceptance,
        "dense_mass": settings.metric == "dense",
        "adapt_mass_matrix": settings.metric != "unit",
    }
    if isinstance(settings, NutsSettings):
        return NUTS(**common, max_tree_depth=settings.max_tree_depth)
    return HMC(**common, trajectory_length=settings.trajectory_length)


def _bounded(settings: NutsSettings | HmcSettings, state: HMCState) -> HMCState:
    """Shorten the next trajectory of static HMC to `max_steps` of the present step size, where it would be longer."""
    if isinstance(settings, NutsSettings):
        return state
    # A hair less than max_steps whole steps: NumPyro rounds the number of steps up.
    longest = (settings.max_steps - 0.01) * state.adapt_state.step_size
    return state._replace(trajectory_length=jnp.minimum(settings.trajectory_length, longest))


def _advance(
    kernel: HMC,
    bounded: Callable[[HMCState], HMCState],
    state: HMCState,
    num: jax.Array | int,
) -> tuple[HMCState, dict[str, Any]]:
    """Take `num` (at most SLICE) iterations; returns what each of them ended in, in buffers of SLICE rows."""

    def body(i: jax.Array, carry: tuple) -> tuple:
        state, buffers = carry
        state = kernel.sample(bounded(state), (), {})
        return state, jax.tree.map(lambda b, new: b.at[i].set(new), buffers, _keep(state))

    empty = jax.tree.map(
        lambda v: jnp.zeros((SLICE, *jnp.shape(v)), jnp.asarray(v).dtype), _keep(state)
    )
    return jax.lax.fori_loop(0, num, body, (state, empty))


def _keep(state: HMCState) -> dict[str, Any]:
    """What is kept of an iteration, under ArviZ's names."""
    return {
        "z": state.z,
        "diverging": state.diverging,
        "n_steps": state.num_steps,
        "acceptance_rate": state.accept_prob,
        "energy": state.energy,
        "step_size": state.adapt_state.step_size,
        "lp": -state.potential_energy,
    }
