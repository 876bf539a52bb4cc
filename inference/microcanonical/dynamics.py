"""Chains of microcanonical Langevin Monte Carlo with blackjax, one per thread, in compiled slices.

Unadjusted chains: each iteration is a step of McLachlan's isokinetic integrator (two gradients), after which the
momentum is partially refreshed. A step to a point without a finite density is rejected, and the momentum is reversed.
Adjusted chains use blackjax's dynamic kernel. Each trajectory has a random number of steps (uniform, with mean length
/ step size) with partial refreshment, and is accepted or rejected.

Tuning sets the unadjusted chain's step size so that the energy error of a step has the desired variance. The error
grows as the third power of the step, so every step gives an estimate (blackjax's `mclmc_find_L_and_step_size`). There
are two differences from blackjax, based on measurements on networks. The desired variance starts at `FIRST_VARIANCE`
and falls, so that the first steps are long and leave the start. The length comes from the number of parameters,
because the variances of draws that have not mixed are too small. The adjusted chain's step size follows dual averaging
of the acceptance rate (Hoffman and Gelman 2014, section 3.2, with their constants).

With a diagonal metric, the warmup has four parts, which end after an eighth, a quarter, a half and all of its
iterations. Each of the first three parts estimates variances in its second half. They are the metric of the next part,
where the step size is tuned again. A single part could not estimate scales that differ by powers of ten.

One chain per thread and core is as fast as several in a vectorised program. With tabular data, the matrix products of
a single network keep a core busy, and those of several networks exceed its cache.

Sources: Robnik, De Luca, Silverstein and Seljak 2023, JMLR 24(311); Robnik and Seljak 2024, AABI (Langevin form,
tuning); Robnik, Cohn-Gordon and Seljak 2025, arXiv:2503.01707 (adjusted, with refreshment at 1.25 lengths).
"""

import math
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, override

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Float

from onebasin.base.errors import ArgumentError, InferenceError
from onebasin.base.machine import lacks
from onebasin.base.precision import precision
from onebasin.base.seeds import Purpose, keys_for
from onebasin.models.target import Target
from onebasin.posteriors import schema

from ..contracts.density import Vector
from ..contracts.method import Job
from ..density.network import NetworkDensity, density_of
from ..density.stan_vectors import Density
from ..mcmc.chains import ChainPlace
from ..mcmc.numpyro import Runner, Walk, rows
from .mclmc import NETWORKS_VARIANCE, OTHERS_VARIANCE, Mclmc

try:
    from blackjax.mcmc import adjusted_mclmc_dynamic, mclmc
    from blackjax.mcmc.integrators import (
        IntegratorState,
        isokinetic_mclachlan,
        partially_refresh_momentum,
    )
except ImportError as error:
    raise InferenceError(lacks("MCLMC", "mclmc")) from error

FIRST_VARIANCE = 0.5  # Initial desired variance of the energy error per parameter.
MEMORY = 150  # Number of recent steps whose energy errors determine the step size.
TRUST = 1.5  # Scale on which errors of other step sizes count less, in logs of the step size.
CAUTION = 0.8  # Factor of a step size after a step that was not finite.
LENGTH = 0.5  # Length of the momentum's memory, in units of sqrt(number of parameters),
ADJUSTED_LENGTH = 1.0  # and the same for adjusted chains.
FEWEST_SHRUNK = 5.0  # Weight of the unit metric when variances are shrunk, in draws.

Scalar = Float[Array, ""]


class Tuning(NamedTuple):
    """The state of a chain's tuning."""

    step_size: Scalar  # Step size of the next iteration.
    limit: Scalar  # Largest allowed step size, below any that has failed.
    # Unadjusted chains: discounted sums of estimates and of their weights.
    errors: Scalar
    weight: Scalar
    # Adjusted chains: state of dual averaging.
    shortfall: Scalar
    log_average: Scalar
    updates: Scalar
    inverse_mass: Vector  # Variances of the coordinates.
    # Running estimates in the current part of the warmup.
    mean: Vector
    squares: Vector
    seen: Scalar


class Tuner:
    """The tuning rules of one run."""

    def __init__(self, settings: Mclmc, size: int) -> None:
        self.settings, self.size = settings, size
        self.scaled = settings.metric == "diag"
        root = ADJUSTED_LENGTH if settings.adjusted else LENGTH
        self.length = settings.length or root * math.sqrt(size)
        warmup = settings.warmup
        self.ends = (warmup // 8, warmup // 4, warmup // 2) if self.scaled else ()

    def first(self) -> Tuning:
        """Return the tuning before the first step."""
        zero = jnp.zeros(())
        empty = jnp.zeros(self.size)
        step = jnp.asarray(self.length / 4)
        return Tuning(
            step_size=step,
            limit=jnp.asarray(jnp.inf, step.dtype),
            errors=zero,
            weight=zero,
            shortfall=zero,
            log_average=jnp.log(step),
            updates=zero,
            inverse_mass=jnp.ones(self.size),
            mean=empty,
            squares=empty,
            seen=zero,
        )

    def variance_asked(self, iteration: jax.Array) -> Scalar:
        """Return the desired energy variance, which falls over each part of the warmup."""
        last = self.settings.energy_variance
        assert last is not None, "settings must be resolved"
        begins, ends = self._part(iteration)
        share = (iteration - begins) / (ends - begins)
        if self.scaled:  # So that variances are estimated at the final step size.
            share = jnp.minimum(2 * share, 1.0)
        return FIRST_VARIANCE + (last - FIRST_VARIANCE) * share

    def by_energy(
        self, tuning: Tuning, iteration: jax.Array, error: Scalar, finite: jax.Array
    ) -> Tuning:
        """Update the tuning from the energy error of a step."""
        asked = self.variance_asked(iteration)
        ratio = error**2 / (self.size * asked) + 1e-8
        weight = jnp.exp(-0.5 * (jnp.log(ratio) / (6 * TRUST)) ** 2)
        kept = (MEMORY - 1) / (MEMORY + 1)
        # Use units of the desired variance, because it changes.
        estimate = weight * ratio * asked / tuning.step_size**6
        errors = kept * tuning.errors + estimate
        weights = kept * tuning.weight + weight
        found = (errors / weights / asked) ** (-1 / 6)
        limit = jnp.where(finite, tuning.limit, CAUTION * tuning.step_size)
        return tuning._replace(
            step_size=jnp.minimum(jnp.where(finite, found, tuning.step_size), limit),
            limit=limit,
            errors=jnp.where(finite, errors, tuning.errors),
            weight=jnp.where(finite, weights, tuning.weight),
        )

    def by_acceptance(self, tuning: Tuning, acceptance: Scalar) -> Tuning:
        """Update the tuning from the acceptance probability of a trajectory."""
        count = tuning.updates + 1
        share = 1 / (count + 10)
        missing = self.settings.target_acceptance - acceptance
        shortfall = (1 - share) * tuning.shortfall + share * missing
        log_step = math.log(10 * self.length / 4) - jnp.sqrt(count) / 0.05 * shortfall
        rate = count**-0.75
        return tuning._replace(
            step_size=jnp.exp(log_step),
            shortfall=shortfall,
            log_average=rate * log_step + (1 - rate) * tuning.log_average,
            updates=count,
        )

    def learn(self, tuning: Tuning, iteration: jax.Array, position: Vector) -> Tuning:
        """Update the variances from a position in the second half of a part; at its end, make them the metric."""
        if not self.scaled:
            return tuning
        begins, ends = self._part(iteration)
        learns = iteration >= (begins + ends) // 2
        seen = tuning.seen + learns
        change = position - tuning.mean
        mean = tuning.mean + jnp.where(learns, change / jnp.maximum(seen, 1), 0.0)
        squares = tuning.squares + jnp.where(learns, change * (position - mean), 0.0)
        tuning = tuning._replace(mean=mean, squares=squares, seen=seen)
        is_end = (iteration == ends - 1) & (ends < self.settings.warmup)
        return jax.lax.cond(is_end, self._measured, lambda t: t, tuning)

    def _part(self, iteration: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return the first and the last iteration of the warmup's part that contains an iteration."""
        bounds = jnp.asarray((0, *self.ends, self.settings.warmup), jnp.int32)
        place = jnp.searchsorted(bounds[1:-1], iteration, side="right")
        return bounds[place], bounds[place + 1]

    def _measured(self, tuning: Tuning) -> Tuning:
        """Return the tuning at the start of a part, with the estimated variances as the metric."""
        seen = jnp.maximum(tuning.seen, 2)
        variances = tuning.squares / (seen - 1)
        typical = jnp.exp(jnp.mean(jnp.log(jnp.maximum(variances, 1e-30))))
        share = seen / (seen + FEWEST_SHRUNK)
        inverse_mass = share * variances + (1 - share) * typical
        scale = jnp.sqrt(jnp.mean(inverse_mass))
        return self.first()._replace(
            step_size=jnp.minimum(tuning.step_size / scale, self.length / 4),
            inverse_mass=inverse_mass,
        )

    def last(self, tuning: Tuning) -> Tuning:
        """Return the tuning that sampling uses."""
        if self.settings.adjusted:
            return tuning._replace(step_size=jnp.exp(tuning.log_average))
        return tuning


REFRESHED_WITHIN = 1.25
"""Length of an adjusted chain's memory of its momentum, in trajectory lengths."""

LogDensity = Callable[[Vector], jax.Array]


class ChainState(NamedTuple):
    """The state from which a chain continues."""

    key: jax.Array  # Random key of the chain, from which each iteration's key is folded.
    iteration: jax.Array  # Number of finished iterations.
    place: Any  # blackjax's position, momentum, log density and gradient.
    tuning: Tuning


class Unadjusted:
    """Chains that accept every step."""

    def __init__(self, log_density: LogDensity, tuner: Tuner) -> None:
        self.log_density, self.tuner = log_density, tuner

    def init(self, vector: Vector, key: jax.Array) -> IntegratorState:
        """Return the state of blackjax at a vector."""
        return mclmc.init(vector, self.log_density, key)

    def step(
        self, key: jax.Array, place: IntegratorState, tuning: Tuning, iteration: jax.Array
    ) -> tuple[IntegratorState, Tuning, dict[str, jax.Array]]:
        """Run an iteration; return the state, the tuning updated as in the warmup, and statistics."""
        integrate = isokinetic_mclachlan(self.log_density, tuning.inverse_mass)
        moved, kinetic = integrate(place, tuning.step_size)
        error = kinetic - moved.logdensity + place.logdensity
        finite = jnp.isfinite(error) & jnp.isfinite(moved.logdensity_grad).all()
        back = place._replace(momentum=-place.momentum)
        here = jax.tree.map(lambda new, old: jnp.where(finite, new, old), moved, back)
        length = self.tuner.length
        momentum = partially_refresh_momentum(here.momentum, key, tuning.step_size, length)
        error = jnp.where(finite, error, 0.0)
        tuned = self.tuner.by_energy(tuning, iteration, error, finite)
        said = {
            "energy_variance": error**2 / self.tuner.size,
            "diverging": jnp.asarray(~finite, jnp.int32),
            "n_steps": jnp.ones((), jnp.int32),
        }
        return here._replace(momentum=momentum), tuned, said


class Adjusted:
    """Chains of trajectories that are accepted or rejected."""

    def __init__(self, log_density: LogDensity, tuner: Tuner) -> None:
        self.log_density, self.tuner = log_density, tuner
        self._kernel = adjusted_mclmc_dynamic.build_kernel(_number_of_steps)

    def init(self, vector: Vector, key: jax.Array) -> adjusted_mclmc_dynamic.DynamicHMCState:
        """Return the state of blackjax at a vector."""
        return adjusted_mclmc_dynamic.init(vector, self.log_density, key)

    def step(
        self,
        key: jax.Array,
        place: adjusted_mclmc_dynamic.DynamicHMCState,
        tuning: Tuning,
        iteration: jax.Array,
    ) -> tuple[adjusted_mclmc_dynamic.DynamicHMCState, Tuning, dict[str, jax.Array]]:
        """Run an iteration; the results are the same as in `Unadjusted`."""
        moved, info = self._kernel(
            key,
            place,
            self.log_density,
            tuning.step_size,
            REFRESHED_WITHIN,
            tuning.inverse_mass,
            (self.tuner.length / tuning.step_size,),
        )
        acceptance = jnp.nan_to_num(info.acceptance_rate)
        said = {
            "diverging": jnp.asarray(info.is_divergent, jnp.int32),
            "n_steps": jnp.asarray(info.num_integration_steps, jnp.int32),
            "acceptance_rate": acceptance,
        }
        return moved, self.tuner.by_acceptance(tuning, acceptance), said


MOST_STEPS = 1000  # Maximum number of steps of an adjusted trajectory.


def _number_of_steps(key: jax.Array, mean: jax.Array) -> jax.Array:
    """Draw a number of steps, uniform between 1 and about twice the mean."""
    drawn = jnp.ceil(jax.random.uniform(key) * (2 * mean - 1))
    return jnp.clip(drawn, 1, MOST_STEPS).astype(jnp.int32)


Dynamics = Unadjusted | Adjusted


class Advance:
    """A compiled program that runs iterations of one chain, in rows of `thin`, for both warmup and sampling."""

    def __init__(self, dynamics: Dynamics, tuner: Tuner, rows: int) -> None:
        self.dynamics, self.tuner, self.rows = dynamics, tuner, rows

    def __call__(
        self,
        state: ChainState,
        first: jax.Array | int,
        last: jax.Array | int,
        each: jax.Array | int,
    ) -> tuple[ChainState, dict[str, jax.Array]]:
        """Run rows `first` to `last` (at most `rows`) of `each` iterations; return the kept values of each row."""

        def row(i: jax.Array, carry: tuple) -> tuple:
            state, buffers = carry
            state, said = jax.lax.fori_loop(0, each, self._one, (state, nothing))
            kept = self._row(state, said, each)
            return state, {name: buffers[name].at[i].set(kept[name]) for name in buffers}

        said = jax.eval_shape(
            lambda s: self.dynamics.step(s.key, s.place, s.tuning, s.iteration)[2], state
        )
        nothing = jax.tree.map(lambda v: jnp.zeros(v.shape, v.dtype), said)
        shapes = jax.eval_shape(self._row, state, nothing, each)
        empty = {n: jnp.zeros((self.rows, *v.shape), v.dtype) for n, v in shapes.items()}
        return jax.lax.fori_loop(first, last, row, (state, empty))

    def _one(self, _: jax.Array, carry: tuple) -> tuple[ChainState, dict[str, jax.Array]]:
        """Run one iteration, and add its statistics to the row's."""
        state, before = carry
        key = jax.random.fold_in(state.key, state.iteration)
        warmup = self.tuner.settings.warmup
        place, tuned, said = self.dynamics.step(key, state.place, state.tuning, state.iteration)
        tuned = self.tuner.learn(tuned, state.iteration, place.position)
        warm, ends = state.iteration < warmup, state.iteration == warmup - 1
        tuned = _either(ends, self.tuner.last(tuned), tuned)
        tuning = _either(warm, tuned, state.tuning)
        state = ChainState(state.key, state.iteration + 1, place, tuning)
        return state, jax.tree.map(jnp.add, before, said)

    def _row(
        self, state: ChainState, said: dict[str, jax.Array], each: jax.Array | int
    ) -> dict[str, jax.Array]:
        """Return the kept values of a row, statistics under ArviZ's names."""
        means = {name: said[name] / each for name in MEANS if name in said}
        return {
            **said,
            **means,
            "diverging": said["diverging"] > 0,
            "z": state.place.position,
            "lp": state.place.logdensity,
            "step_size": state.tuning.step_size,
            "length": jnp.asarray(self.tuner.length),
        }


MEANS = ("energy_variance", "acceptance_rate")
"""Statistics that a row averages over its iterations; other statistics are summed."""


def _either(which: jax.Array, first: Tuning, second: Tuning) -> Tuning:
    chosen: Tuning = jax.tree.map(lambda a, b: jnp.where(which, a, b), first, second)
    return chosen


ROWS = 50  # Number of draws per slice.
WARMUP_ROW = 500  # Number of warmup iterations per slice.
BEGINS = 2**31  # Iteration number, larger than any real one, for the key of the first momentum.


class Microcanonical:
    """The starts and iterations of chains for a density; the settings must be resolved for the target."""

    def __init__(self, density: Density, settings: Mclmc) -> None:
        if density.size < 2:
            raise ArgumentError(
                f"`target` {density.target.name!r} has only one parameter, but microcanonical dynamics need at least "
                "two. Use `nuts`."
            )
        self.density, self.settings = density, settings
        self.tuner = Tuner(settings, density.size)
        kind = Adjusted if settings.adjusted else Unadjusted
        self.dynamics = kind(density.log_density, self.tuner)

    def inputs(self, seed: int | jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return the arguments of `begin` (chain, ...): keys, and starting points or, for networks, keys for these."""
        s, keys = self.settings, keys_for(Purpose.CHAIN, seed, self.settings.chains)
        if isinstance(self.density, NetworkDensity):
            return keys, keys_for(Purpose.MEMBER_START, seed, s.chains)
        starts = keys_for(Purpose.CHAIN_START, seed, s.chains)
        return keys, self.density.random_starts(starts, s.init_radius)

    def begin(self, key: jax.Array, point: jax.Array) -> ChainState:
        """Return the initial state of a chain, after steps of Adam on the log density of all data."""
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
        """Return the program that runs iterations of one chain."""
        return Advance(self.dynamics, self.tuner, rows)


class MclmcRunner(Runner):
    """Chains of one target, compiled once and called from several threads.

    Raises ValueError for a target with a single parameter, and InferenceError if no start has a finite log density.
    """

    slices = (WARMUP_ROW, ROWS)

    def __init__(self, job: Job[Mclmc]) -> None:
        self.settings = settings = resolved(job.method, job.target)
        self.bars = job.bars
        with precision(settings.dtype):
            density = density_of(job.target, job.bars.say)
            self._density = density  # Keeps a Stan program open.
            moves = Microcanonical(density, settings)
            begin = jax.jit(lambda each: jax.lax.map(lambda both: moves.begin(*both), each))
            self.states = begin(moves.inputs(job.seed))
            first = self.states.place
            if not (
                np.isfinite(first.logdensity).all() and np.isfinite(first.logdensity_grad).all()
            ):
                raise InferenceError(
                    f"The search for a starting point reached a point where the log density of {job.target.name!r} "
                    "is not finite. Lower `learning_rate`, or set `start_steps` to 0."
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
        # A row is a draw with the iterations before it. In the warmup, iterations `first` to `last` are one row.
        begin, end, thin = (first, last, self.settings.thin) if keep else (0, 1, last - first)
        state, ended = jax.block_until_ready(self._advance(state, begin, end, thin))
        z = ended.pop("z")
        kept = self._constrain(z) if keep else {}
        draws, stats = (rows(part, begin, end) for part in (kept, ended))
        return state, draws, stats

    def __call__(self, place: ChainPlace, cancel: threading.Event) -> None:
        """Run one chain; see `chains.RunChain`."""
        with precision(self.settings.dtype):
            Walk(self, place).run(cancel)


def resolved(settings: Mclmc, target: Target) -> Mclmc:
    """Return the settings with defaults that depend on the kind of target filled in."""
    network = target.is_network
    metric, variance = settings.metric, settings.energy_variance
    return replace(
        settings,
        metric=("unit" if network else "diag") if metric == "auto" else metric,
        energy_variance=variance or (NETWORKS_VARIANCE if network else OTHERS_VARIANCE),
    )


BATCHES = 10  # Number of batches per chain, whose means give the Monte Carlo error.
ERROR_RATE = 0.01  # Probability that any interval misses for correct draws, over all coordinates and both identities.
CLOSE = {"float64": 1e-6, "float32": 1e-2}
"""Relative tolerance between recorded and recomputed log densities."""

Means = dict[str, Float[np.ndarray, " param"]]


class Identities:
    """Stein's identities for each coordinate, which reveal a bias from the step size; compiled per number of draws.

    For draws z of a density p with the score g = grad log p, integration by parts gives E[g_i] = 0 and E[(z_i - c_i)
    g_i] = -1 for any constants c. This requires a continuous density, so kinks (ReLU) are allowed. Suppose that the
    draws come from a different density, that both are normal, and that only coordinate i differs. Then E[g_i] over the
    standard deviation of g_i is how far its mean lies below the true one, in conditional standard deviations, and
    -E[(z_i - c_i) g_i] is the ratio of its variance to the true one. The identities also hold within each mode, so
    they do not show whether chains found every mode.
    """

    def __init__(self, density: Density) -> None:
        self.density = density
        self._vector = jax.jit(density.unconstrain)
        self._batch = jax.jit(self._means)

    def of(self, posterior: xr.DataTree) -> dict[str, Any] | None:
        """Measure the deviations from the identities, with simultaneous intervals for all coordinates.

        Return `shift` and `spread`, the number of `coordinates`, and the `error_rate`. `shift` and `spread` have the
        `coordinate` with the largest significant deviation and, over all coordinates, `least` (the largest certain
        deviation) and `most` (the largest possible deviation). Return None for too few draws or draws outside the
        support.
        """
        draws = posterior["posterior"].to_dataset()
        lp = posterior["sample_stats"].to_dataset()["lp"]
        size = draws.sizes["draw"] // BATCHES
        if size < 2:
            return None
        names = self.density.names
        first = self._vector({name: jnp.asarray(draws[name].values[0, 0]) for name in names})
        found: list[Means] = []
        for chain in range(draws.sizes["chain"]):
            drawn = {name: draws[name].isel(chain=chain).values for name in names}
            heights = lp.isel(chain=chain).values
            for number in range(BATCHES):
                part = slice(number * size, (number + 1) * size)
                values = {name: jnp.asarray(each[part]) for name, each in drawn.items()}
                misfit, means = self._batch(values, jnp.asarray(heights[part]), first)
                if not misfit < CLOSE[str(lp.dtype)]:
                    return None
                found.append({name: np.asarray(mean, np.float64) for name, mean in means.items()})
        from scipy.stats import t

        means = {name: np.stack([m[name] for m in found]) for name in found[0]}
        count, size = means["score"].shape
        total = {name: mean.mean(axis=0) for name, mean in means.items()}
        sd = np.sqrt(np.maximum(total["square"] - total["score"] ** 2, 0))
        if not (sd > 0).all():  # A flat direction or a value that is not finite provides no unit.
            return None
        width = t.isf(ERROR_RATE / (2 * 2 * size), count - 1) / math.sqrt(count)
        shifts = means["score"] / sd
        ratios = -(means["product"] - total["away"] * means["score"])
        return {
            "shift": _farthest(shifts.mean(0), width * shifts.std(0, ddof=1), self.density),
            "spread": _farthest(ratios.mean(0) - 1, width * ratios.std(0, ddof=1), self.density),
            "coordinates": size,
            "error_rate": ERROR_RATE,
        }

    def _means(
        self, values: dict[str, jax.Array], recorded: jax.Array, first: jax.Array
    ) -> tuple[jax.Array, dict[str, jax.Array]]:
        """Return means over a batch of draws, and the largest relative error of their recorded log densities."""
        z = jax.vmap(self.density.unconstrain)(values)
        heights, scores = jax.vmap(jax.value_and_grad(self.density.log_density))(z)
        misfit = jnp.max(jnp.abs(heights - recorded) / (1 + jnp.abs(recorded)))
        away = z - first[None]  # Avoid rounding errors for coordinates far from zero.
        return misfit, {
            "score": scores.mean(0),
            "square": (scores**2).mean(0),
            "away": away.mean(0),
            "product": (away * scores).mean(0),
        }


def _farthest(
    distances: Float[np.ndarray, " param"], errors: Float[np.ndarray, " param"], density: Density
) -> dict[str, Any]:
    certain = np.abs(distances) - errors
    worst = int(np.argmax(certain))
    name, places = next((n, p) for n, p in density.places().items() if worst in p)
    place = ",".join(map(str, np.argwhere(places == worst)[0]))
    return {
        "coordinate": f"{name}[{place}]" if place else str(name),
        "least": float(max(certain[worst], 0.0)),
        "most": float(np.max(np.abs(distances) + errors)),
    }


def record_bias(target: Target, dtype: str, posterior: xr.DataTree) -> None:
    """Record estimates of the bias from gradients at a posterior's draws."""
    with precision(dtype):
        found = Identities(density_of(target)).of(posterior)
    if found is not None:
        posterior.attrs[schema.STEIN_IDENTITIES] = schema.encode(found)
