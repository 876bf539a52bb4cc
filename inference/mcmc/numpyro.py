"""HMC and NUTS in JAX, in compiled slices of iterations.

The kernels are NumPyro's. A chain runs `SLICE` iterations at a time in one compiled loop. After every slice it can
show its progress, be stopped, and save the sampler's whole state. Another process can continue from that state, and
gets the same draws bit for bit.

Chains are assigned in turn to JAX's devices, or all to the device set by `jax.default_device`. Draws do not depend on
the number of devices of the same kind.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from threading import Event
from typing import Any, override

import jax
import jax.numpy as jnp
import numpy as np
import numpyro  # noqa: F401 - import all of NumPyro before a part of it
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float
from numpyro.infer import HMC, NUTS
from numpyro.infer.hmc import HMCState
from numpyro.infer.hmc_util import dual_averaging

from onebasin.base.errors import RunCancelled
from onebasin.base.precision import precision
from onebasin.base.progress import ProgressBars
from onebasin.base.seeds import Purpose, keys_for

from ..contracts.density import Values
from ..contracts.method import Job
from ..density.network import density_of
from ..density.stan_vectors import Density, StanVectors
from ..runs.checkpoint import pack, unpack
from .chains import ChainPlace, Standing
from .nuts import Hmc, Nuts
from .starts import chain_starts, kernel_places, reordered, stan_places

Arrays = dict[str, np.ndarray]
State = Any  # A pytree of arrays and random keys.


# Compile once for all leaves.
_of_chain = jax.jit(lambda states, number: jax.tree.map(lambda leaf: leaf[number], states))


class Runner(ABC):
    """Iterations of the chains of one target, compiled once and called from several threads."""

    settings: Any  # Settings that include the numbers of iterations `warmup` and `draws`.
    slices: tuple[int, int]  # Iterations per slice, in the warmup and in sampling.
    bars: ProgressBars
    like: State  # A state with the right shapes and types.
    states: State  # Initial states (chain, ...).

    def start(self, number: int) -> State:
        """Return the first state of a chain."""
        state: State = _of_chain(self.states, number)
        return state

    def adapted(self, state: State) -> Arrays:
        """Return the step size and inverse metric of a state, if another run can use them."""
        return {}

    @abstractmethod
    def advance(
        self, state: State, first: int, last: int, *, keep: bool
    ) -> tuple[State, Arrays, Arrays]:
        """Run the iterations from `first` to `last` of a slice; return the state, draws if kept, and statistics.

        The last bit of a draw may depend on its position in the slice, so a resumed chain keeps the positions.
        """


class Walk:
    """A running chain: its state, its counts and its times."""

    def __init__(self, runner: Runner, place: ChainPlace) -> None:
        self._runner, self._place = runner, place
        found = place.standing
        state = runner.start(place.number) if found is None else unpack(found.state, runner.like)
        self.state = jax.block_until_ready(state)
        found = found or Standing(0)
        self.warmed, self.drawn = found.warmed, found.draws
        self.divergences = int(found.state.get("divergences", 0))
        self.accepted = float(found.state.get("accepted", 0.0))
        self.warmup_steps = int(found.state.get("warmup_steps", 0))
        self.seconds = (found.warmup_seconds, found.sampling_seconds)
        s, done = runner.settings, self.warmed + self.drawn
        self._bar = runner.bars.chain(place.number, warmup=s.warmup, draws=s.draws, done=done)
        self._saves_warmup = getattr(s, "save_warmup", False)
        self._read_at = time.perf_counter()

    def run(self, cancel: Event) -> None:
        """Run to the end."""
        s, step_size = self._runner.settings, float("nan")
        before = sum(self.seconds)
        while self.warmed < s.warmup:
            num, stats = self._step(self.warmed, s.warmup, cancel, phase=0)
            self.warmed += num
            self.warmup_steps += int(np.sum(stats.get("n_steps", 0)))
            self._show(self.warmed, stats)
            self._save(0)
        self._lap(0)
        while self.drawn < s.draws:
            num, stats = self._step(self.drawn, s.draws, cancel, phase=1)
            self.drawn += num
            self.divergences += int(stats["diverging"].sum())
            # A method that rejects nothing has NaN.
            self.accepted += float(np.sum(stats.get("acceptance_rate", np.nan)))
            step_size = float(stats["step_size"][-1])
            self._show(s.warmup + self.drawn, stats)
            self._save(1)
        self._lap(1)
        self._place.finish(self._standing())
        seconds = sum(self.seconds) - before
        self._bar.end(seconds, step_size=step_size, **self._so_far())

    def _step(self, done: int, total: int, cancel: Event, *, phase: int) -> tuple[int, Arrays]:
        """Run the rest of a slice; return the number of iterations and their statistics."""
        if cancel.is_set():
            self._save(phase, now=True)
            raise RunCancelled("The chain was stopped.")
        size = self._runner.slices[phase]
        first = done % size
        last = min(size, first + total - done)
        keep = phase == 1 or self._saves_warmup
        self.state, draws, stats = self._runner.advance(self.state, first, last, keep=keep)
        if keep:
            before = self._runner.settings.warmup if phase and self._saves_warmup else 0
            self._place.put(before + done, draws, stats)
        return last - first, stats

    def _save(self, phase: int, *, now: bool = False) -> None:
        def make() -> Standing:
            self._lap(phase)
            return self._standing()

        self._place.save(make, now=now)

    def _standing(self) -> Standing:
        names = ("divergences", "accepted", "warmup_steps")
        counted = {name: np.array(getattr(self, name)) for name in names}
        state = {**counted, **pack(self.state), **self._runner.adapted(self.state)}
        return Standing(self.drawn, *self.seconds, state=state, warmed=self.warmed)

    def _lap(self, phase: int) -> None:
        """Add the time since the last call to this phase."""
        now = time.perf_counter()
        warmup, sampling = self.seconds
        took = now - self._read_at
        self.seconds = (warmup, sampling + took) if phase else (warmup + took, sampling)
        self._read_at = now

    def _show(self, done: int, stats: Arrays) -> None:
        self._bar.show(done, step_size=float(stats["step_size"][-1]), **self._so_far())

    def _so_far(self) -> dict[str, Any]:
        """Return the numbers shown on the bar, which cover only draws after the warmup."""
        known = self.drawn and not np.isnan(self.accepted)
        acceptance = self.accepted / self.drawn if known else None
        return {"acceptance": acceptance, "divergences": self.divergences if self.drawn else None}


def rows(buffers: Mapping[str, Any], first: int, last: int) -> Arrays:
    """Return the rows in use of a slice's buffers (row, ...)."""
    return {name: np.asarray(buffer)[first:last] for name, buffer in buffers.items()}


def num_devices() -> int:
    """Return the number of devices for chains."""
    return 1 if jax.config.jax_default_device is not None else len(jax.local_devices())


def on_device(number: int) -> AbstractContextManager:
    """Compute on this chain's device, in the current thread."""
    count = num_devices()
    return nullcontext() if count == 1 else jax.default_device(jax.local_devices()[number % count])


def device_of(tree: Any) -> jax.Device:
    """Return the device that all arrays share."""
    (device,) = jax.tree.leaves(tree)[0].devices()
    return device


def here(tree: Any) -> Any:
    """Move arrays to the current device."""
    chosen = jax.config.jax_default_device
    return jax.device_put(tree, chosen) if isinstance(chosen, jax.Device) else tree


SLICE = 50  # Iterations per slice; about a millisecond for the smallest models.


@dataclass(frozen=True, eq=False)
class Course:
    """The density, the starting points and the kind of draws of chains."""

    density: Density  # From a NumPyro model, or from a Stan program's library in this process.
    starts: Float[Array, "chain param"]
    keep: Callable[[Values], Values]  # Maps named coordinates to a stored draw.
    purpose: Purpose = Purpose.CHAIN  # Purpose of the chains' random keys.
    variances: jax.Array | None = None
    """First inverse metric, (chain, param) or (chain, param, param)."""
    adapts: bool = True  # Whether the metric is adapted.
    step_size: Float[Array, " chain"] | None = None  # First step size.


class NumpyroChains(Runner):
    """Chains of HMC and NUTS."""

    slices = (SLICE, SLICE)

    def __init__(self, job: Job[Nuts | Hmc], course: Course | None = None) -> None:
        settings, seed = job.method, job.seed
        self.settings, self.bars = settings, job.bars
        with precision(settings.dtype):
            course = course or _course_of(job)
            density = self._density = course.density  # Keeps a Stan program open.
            self._starts = course.starts
            kernel = kernel_of(density, settings, adapt_metric=course.adapts)
            points = jax.vmap(density.unravel)(course.starts)
            start = jax.jit(jax.vmap(lambda key, z: kernel.init(key, settings.warmup, z, (), {})))
            self.states = start(keys_for(course.purpose, seed, settings.chains), points)
            if course.variances is not None:
                self.states = jax.vmap(with_metric)(self.states, course.variances)
            if course.step_size is not None:
                begun = jax.vmap(dual_averaging()[0])(jnp.log(10 * course.step_size))
                adapted = self.states.adapt_state
                adapted = adapted._replace(step_size=course.step_size, ss_state=begun)
                self.states = self.states._replace(adapt_state=adapted)
            self.like = self.start(0)
            advance = jax.jit(partial(_advance, kernel, partial(bounded, settings)))
            constrain = jax.jit(jax.vmap(course.keep))
            # Compile here, so that this does not count as sampling time.
            self._compiled: dict[jax.Device, tuple[Any, Any]] = {}
            for number in range(min(settings.chains, num_devices())):
                with on_device(number):
                    like = here(self.like)
                    lowered = advance.lower(like, 0, 1)
                    draws = constrain.lower(lowered.out_info[1]["z"])
                    self._compiled[device_of(like)] = (lowered.compile(), draws.compile())

    @override
    def adapted(self, state: HMCState) -> Arrays:
        # The order is that of the definition's vector.
        found = {"step_size": np.asarray(state.adapt_state.step_size)}
        if self.settings.metric == "unit":
            return found
        order = np.argsort(kernel_places(self._density))
        if isinstance(self._density, StanVectors):
            order = order[np.argsort(stan_places(self._density))]
        metric = np.asarray(state.adapt_state.inverse_mass_matrix)
        return {**found, "inverse_metric": reordered(metric[None], order)[0]}

    @override
    def start(self, number: int) -> HMCState:
        return here(super().start(number))

    @override
    def advance(
        self, state: HMCState, first: int, last: int, *, keep: bool
    ) -> tuple[HMCState, Arrays, Arrays]:
        # JAX dispatches asynchronously; wait, because the times would be wrong otherwise.
        advance, constrain = self._compiled[device_of(state)]
        state, ended = jax.block_until_ready(advance(state, first, last))
        z = ended.pop("z")
        draws, stats = (rows(part, first, last) for part in (constrain(z) if keep else {}, ended))
        if isinstance(self.settings, Nuts):
            # A tree of depth d takes 2^d - 1 leapfrog steps, plus those of a rejected last subtree.
            stats["tree_depth"] = np.floor(np.log2(stats["n_steps"] + 1)).astype(np.int64)
        return state, draws, stats

    def __call__(self, place: ChainPlace, cancel: Event) -> None:
        """Run one chain; see `chains.RunChain`."""
        with precision(self.settings.dtype), on_device(place.number):
            if self.settings.init != "random":
                where = self._density.constrain(self._starts[place.number])
                place.start = {name: np.asarray(value) for name, value in where.items()}
            Walk(self, place).run(cancel)


def _course_of(job: Job[Nuts | Hmc]) -> Course:
    density = density_of(job.target, job.bars.say)
    if (given := job.given) is None:
        return Course(density, chain_starts(density, job.method, job.seed), density.quantities)
    metric, step_size = given.inverse_metric, given.step_size
    return Course(
        density,
        jnp.asarray(given.positions, float),
        density.quantities,
        variances=None
        if metric is None
        else jnp.asarray(reordered(metric, kernel_places(density)), float),
        adapts=metric is None,
        step_size=None if step_size is None else jnp.asarray(step_size, float),
    )


def kernel_of(density: Density, settings: Nuts | Hmc, *, adapt_metric: bool = True) -> HMC:
    """Return NumPyro's kernel for a density, with the adaptation of the settings."""
    common: dict[str, Any] = {
        "potential_fn": lambda z: -density.log_density_at(z),
        "target_accept_prob": settings.target_acceptance,
        "dense_mass": settings.metric == "dense",
        "adapt_step_size": settings.adapt,
        "adapt_mass_matrix": settings.adapt and adapt_metric and settings.metric != "unit",
    }
    if isinstance(settings, Nuts):
        return NUTS(**common, max_tree_depth=settings.max_tree_depth)
    return HMC(**common, trajectory_length=settings.trajectory_length)


def with_metric(state: HMCState, variances: jax.Array) -> HMCState:
    """Return the state with a given inverse metric."""
    if variances.ndim == 1:
        inverse_root = jnp.sqrt(variances)
        root = 1 / inverse_root
    else:  # NumPyro's factor inverse_root is upper triangular, and inverse_root' inverse_root is the matrix
        inverse_root = jnp.linalg.cholesky(variances[::-1, ::-1])[::-1, ::-1].T
        root = solve_triangular(inverse_root, jnp.eye(len(variances)), lower=True)
    metric = {
        "inverse_mass_matrix": variances,
        "mass_matrix_sqrt": root,
        "mass_matrix_sqrt_inv": inverse_root,
    }
    return state._replace(adapt_state=state.adapt_state._replace(**metric))


def bounded(settings: Nuts | Hmc, state: HMCState) -> HMCState:
    """Shorten the next trajectory of static HMC to at most `max_steps` steps of the current size."""
    if isinstance(settings, Nuts):
        return state
    # Use slightly less than max_steps steps, because NumPyro rounds the number of steps up.
    longest = (settings.max_steps - 0.01) * state.adapt_state.step_size
    return state._replace(trajectory_length=jnp.minimum(settings.trajectory_length, longest))


def _advance(
    kernel: HMC,
    bounded: Callable[[HMCState], HMCState],
    state: HMCState,
    first: jax.Array | int,
    last: jax.Array | int,
) -> tuple[HMCState, dict[str, Any]]:
    """Run iterations `first` to `last` of a slice; return the kept values of each, in buffers of SLICE rows."""

    def body(i: jax.Array, carry: tuple) -> tuple:
        state, buffers = carry
        state = kernel.sample(bounded(state), (), {})
        return state, jax.tree.map(lambda b, new: b.at[i].set(new), buffers, _keep(state))

    kept = jax.tree.map(jnp.asarray, _keep(state))
    empty = jax.tree.map(lambda v: jnp.zeros((SLICE, *v.shape), v.dtype), kept)
    return jax.lax.fori_loop(first, last, body, (state, empty))


def _keep(state: HMCState) -> dict[str, Any]:
    """Return the kept values of an iteration under ArviZ's names."""
    return {
        "z": state.z,
        "diverging": state.diverging,
        "n_steps": state.num_steps,
        "acceptance_rate": state.accept_prob,
        "energy": state.energy,
        "step_size": state.adapt_state.step_size,
        "lp": -state.potential_energy,
    }
