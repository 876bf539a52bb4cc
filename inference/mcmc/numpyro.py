"""HMC and NUTS on a NumPyro model, in compiled slices.

The kernels are NumPyro's. A chain advances `SLICE` iterations at a time inside one compiled loop, so that
it can show its progress, be stopped, and write down where it stands: with that, another process goes on
to the same draws, bit for bit.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
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
from .chains import ChainsRequest
from .optimum import BestOptimum
from .places import ChainPlace, Standing
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
        self.settings, self.bars = settings, request.bars
        with precision(settings.dtype):
            density = density_of(request.target)
            points = jax.vmap(density.unravel)(chain_starts(density, settings, seed))
            kernel = _kernel(density, settings)
            start = jax.jit(jax.vmap(lambda key, z: kernel.init(key, settings.warmup, z, (), {})))
            self._states = start(keys_for(Purpose.CHAIN, seed, settings.chains), points)
            advance = jax.jit(partial(_advance, kernel, partial(_bounded, settings)))
            lowered = advance.lower(self.start(0), 0, 1)
            self._advance = lowered.compile()
            # Compiled here, not while a chain's sampling is timed.
            constrain = jax.jit(jax.vmap(density.quantities))
            self._constrain = constrain.lower(lowered.out_info[1]["z"]).compile()

    def start(self, number: int) -> HMCState:
        """Where a chain begins."""
        return jax.tree.map(lambda leaf: leaf[number], self._states)

    def advance(
        self, state: HMCState, first: int, last: int, *, keep: bool
    ) -> tuple[HMCState, dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Take the iterations from `first` to `last` of a slice; returns draws (where wanted) and statistics as well.

        A draw may depend on its place in its slice by a last bit, since a slice is computed at once: so a chain that
        goes on takes each iteration at the place that it would have had.
        """
        # JAX hands back before it has computed: without waiting, a warmup would end as soon as it is queued, and
        # its time be counted as sampling.
        state, ended = jax.block_until_ready(self._advance(state, first, last))
        z = ended.pop("z")
        draws, stats = (
            {name: np.asarray(rows)[first:last] for name, rows in part.items()}
            for part in (self._constrain(z) if keep else {}, ended)
        )
        if isinstance(self.settings, NutsSettings):
            # A tree of depth d takes 2^d - 1 leapfrog steps, plus those of a last subtree that is thrown away.
            stats["tree_depth"] = np.floor(np.log2(stats["n_steps"] + 1)).astype(np.int64)
        return state, draws, stats

    def __call__(self, place: ChainPlace, cancel: threading.Event) -> None:
        """Run one chain; see `chains.RunChain`."""
        with precision(self.settings.dtype):
            s = self.settings
            found = place.standing
            done = 0 if found is None else int(found.state["warmed"]) + found.draws
            bar = self.bars.chain(place.number, warmup=s.warmup, draws=s.draws, done=done)
            _Walk(self, place, bar).run(cancel)


class _Walk:
    """A chain on its way: where it is, and what it took to come there.

    Parameters
    ----------
    runner : ChainRunner
        Takes its steps.
    place : ChainPlace
        Where it goes on from, and where its draws go.
    bar : ChainBar
        Where it shows how far it is.
    """

    def __init__(self, runner: ChainRunner, place: ChainPlace, bar: ChainBar) -> None:
        self._runner, self._place, self._bar = runner, place, bar
        found, start = place.standing, runner.start(place.number)
        self.state = jax.block_until_ready(start if found is None else _unpack(found.state, start))
        self.warmed = 0 if found is None else int(found.state["warmed"])
        self.divergences = 0 if found is None else int(found.state["divergences"])
        self.accepted = 0.0 if found is None else float(found.state["accepted"])
        self.drawn = 0 if found is None else found.draws
        self.seconds = [0.0, 0.0]
        if found is not None:
            self.seconds = [found.warmup_seconds, found.sampling_seconds]
        self._read_at = time.perf_counter()

    def run(self, cancel: threading.Event) -> None:
        """Go to the end."""
        s, step_size = self._runner.settings, float("nan")
        before = sum(self.seconds)
        while self.warmed < s.warmup:
            num, stats = self._step(self.warmed, s.warmup, cancel, keep=False)
            self.warmed += num
            self._show(self.warmed, stats)
            self._save()
        self._lap(0)
        while self.drawn < s.draws:
            num, stats = self._step(self.drawn, s.draws, cancel, keep=True)
            self.drawn += num
            self.divergences += int(stats["diverging"].sum())
            self.accepted += float(stats["acceptance_rate"].sum())
            step_size = float(stats["step_size"][-1])
            self._show(s.warmup + self.drawn, stats)
            self._save()
        self._lap(1)
        self._place.finish(self._standing())
        seconds = sum(self.seconds) - before
        self._bar.end(seconds, step_size=step_size, **self._so_far())

    def _step(
        self, done: int, total: int, cancel: threading.Event, *, keep: bool
    ) -> tuple[int, dict[str, np.ndarray]]:
        """Take the rest of a slice: how many iterations that was, and their statistics."""
        if cancel.is_set():
            self._save(now=True)
            raise RunCancelled("The chain was stopped.")
        first = done % SLICE
        last = min(SLICE, first + total - done)
        self.state, draws, stats = self._runner.advance(self.state, first, last, keep=keep)
        if keep:
            self._place.put(done, draws, stats)
        return last - first, stats

    def _save(self, *, now: bool = False) -> None:
        def make() -> Standing:
            self._lap(0 if self.warmed < self._runner.settings.warmup else 1)
            return self._standing()

        self._place.save(make, now=now)

    def _standing(self) -> Standing:
        names = ("warmed", "divergences", "accepted")
        counted = {name: np.array(getattr(self, name)) for name in names}
        return Standing(self.drawn, *self.seconds, state={**counted, **_pack(self.state)})

    def _lap(self, phase: int) -> None:
        """Add the time since the last look at the clock to a phase."""
        now = time.perf_counter()
        self.seconds[phase] += now - self._read_at
        self._read_at = now

    def _show(self, done: int, stats: dict[str, np.ndarray]) -> None:
        self._bar.show(done, step_size=float(stats["step_size"][-1]), **self._so_far())

    def _so_far(self) -> dict[str, Any]:
        """What the bar says of the draws; what the warmup was like says nothing of them."""
        acceptance = self.accepted / self.drawn if self.drawn else None
        return {"acceptance": acceptance, "divergences": self.divergences if self.drawn else None}


def _pack(state: HMCState) -> dict[str, np.ndarray]:
    """The whole state in arrays: position, momentum, step size, metric, what adapts them, and the key."""
    leaves = jax.tree.leaves(state)
    return {f"hmc-{i}": np.asarray(_raw(leaf)) for i, leaf in enumerate(leaves)}


def _unpack(arrays: Mapping[str, np.ndarray], like: HMCState) -> HMCState:
    """The state that `_pack` has put into arrays, bit for bit."""
    leaves, tree = jax.tree.flatten(like)

    def restored(array: np.ndarray, leaf: jax.Array) -> jax.Array:
        values = jnp.asarray(array, _raw(leaf).dtype)
        return jax.random.wrap_key_data(values) if _is_key(leaf) else values

    found = [restored(arrays[f"hmc-{i}"], leaf) for i, leaf in enumerate(leaves)]
    return jax.tree.unflatten(tree, found)


def _is_key(leaf: jax.Array) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _raw(leaf: jax.Array) -> jax.Array:
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf


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
    first: jax.Array | int,
    last: jax.Array | int,
) -> tuple[HMCState, dict[str, Any]]:
    """Take iterations `first` to `last` of a slice; returns what each of them ended in, in buffers of SLICE rows."""

    def body(i: jax.Array, carry: tuple) -> tuple:
        state, buffers = carry
        state = kernel.sample(bounded(state), (), {})
        return state, jax.tree.map(lambda b, new: b.at[i].set(new), buffers, _keep(state))

    empty = jax.tree.map(
        lambda v: jnp.zeros((SLICE, *jnp.shape(v)), jnp.asarray(v).dtype), _keep(state)
    )
    return jax.lax.fori_loop(first, last, body, (state, empty))


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
