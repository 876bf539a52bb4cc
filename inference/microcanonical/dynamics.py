"""One iteration of a chain: blackjax's integrator and kernel, with what its warmup makes of it.

Unadjusted: a step of the isokinetic integrator of McLachlan (two gradients), after which the momentum is refreshed in
part. A step to where the density is not finite is not taken: the momentum turns round. Adjusted: blackjax's dynamic
kernel, a trajectory of a random number of steps (uniform, the mean is the length over the step size) with partial
refreshment within it, accepted or rejected.

Sources: Robnik, De Luca, Silverstein and Seljak 2023, JMLR 24(311); Robnik and Seljak 2024, AABI (Langevin
form, tuning); Robnik, Cohn-Gordon and Seljak 2025, arXiv:2503.01707 (adjusted, with refreshment at 1.25 lengths).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from onebasin.base.errors import InferenceError
from onebasin.base.extras import lacks

from ..contracts.density import Vector
from .tuning import Tuner, Tuning

try:
    from blackjax.mcmc import adjusted_mclmc_dynamic, mclmc
    from blackjax.mcmc.integrators import (
        IntegratorState,
        isokinetic_mclachlan,
        partially_refresh_momentum,
    )
except ImportError as error:
    raise InferenceError(lacks("MCLMC", "mclmc")) from error

REFRESHED_WITHIN = 1.25
"""Way after which an adjusted trajectory's momentum is forgotten, in lengths of the trajectory."""

LogDensity = Callable[[Vector], jax.Array]


class ChainState(NamedTuple):
    """All that a chain goes on from."""

    key: jax.Array  # of the chain; an iteration's is folded from it by number
    iteration: jax.Array  # iterations done
    place: Any  # position, momentum, log density and gradient, as blackjax has them
    tuning: Tuning  # what the chain knows of itself


class Unadjusted:
    """Every step is kept."""

    def __init__(self, log_density: LogDensity, tuner: Tuner) -> None:
        self.log_density, self.tuner = log_density, tuner

    def init(self, vector: Vector, key: jax.Array) -> IntegratorState:
        """The place of a vector."""
        return mclmc.init(vector, self.log_density, key)

    def step(
        self, key: jax.Array, place: IntegratorState, tuning: Tuning, iteration: jax.Array
    ) -> tuple[IntegratorState, Tuning, dict[str, jax.Array]]:
        """Take an iteration; returns the tuning as if in the warmup, and what is said of the iteration."""
        integrate = isokinetic_mclachlan(self.log_density, tuning.inverse_mass)
        moved, kinetic = integrate(place, tuning.step_size)
        error = kinetic - moved.logdensity + place.logdensity
        finite = jnp.isfinite(error) & jnp.isfinite(moved.logdensity_grad).all()
        back = place._replace(momentum=-place.momentum)
        here = jax.tree.map(lambda new, old: jnp.where(finite, new, old), moved, back)
        momentum = partially_refresh_momentum(
            here.momentum, key, tuning.step_size, self.tuner.length
        )
        error = jnp.where(finite, error, 0.0)
        tuned = self.tuner.by_energy(tuning, iteration, error, finite)
        said = {
            "energy_variance": error**2 / self.tuner.size,
            "diverging": jnp.asarray(~finite, jnp.int32),
            "n_steps": jnp.ones((), jnp.int32),
        }
        return here._replace(momentum=momentum), tuned, said


class Adjusted:
    """Trajectories are accepted or rejected."""

    def __init__(self, log_density: LogDensity, tuner: Tuner) -> None:
        self.log_density, self.tuner = log_density, tuner
        self._kernel = adjusted_mclmc_dynamic.build_kernel(_number_of_steps)

    def init(self, vector: Vector, key: jax.Array) -> adjusted_mclmc_dynamic.DynamicHMCState:
        """The place of a vector."""
        return adjusted_mclmc_dynamic.init(vector, self.log_density, key)

    def step(
        self,
        key: jax.Array,
        place: adjusted_mclmc_dynamic.DynamicHMCState,
        tuning: Tuning,
        iteration: jax.Array,
    ) -> tuple[adjusted_mclmc_dynamic.DynamicHMCState, Tuning, dict[str, jax.Array]]:
        """As of `Unadjusted`."""
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


MOST_STEPS = 1000
"""Most steps of an adjusted trajectory, whatever step size a warmup comes upon."""


def _number_of_steps(key: jax.Array, mean: jax.Array) -> jax.Array:
    """Uniform between 1 and about twice the mean."""
    drawn = jnp.ceil(jax.random.uniform(key) * (2 * mean - 1))
    return jnp.clip(drawn, 1, MOST_STEPS).astype(jnp.int32)


Dynamics = Unadjusted | Adjusted


class Advance:
    """Takes iterations of one chain, `thin` a row; warmup and sampling are one program, compiled once."""

    def __init__(self, dynamics: Dynamics, tuner: Tuner, rows: int) -> None:
        self.dynamics, self.tuner, self.rows = dynamics, tuner, rows

    def __call__(
        self,
        state: ChainState,
        first: jax.Array | int,
        last: jax.Array | int,
        each: jax.Array | int,
    ) -> tuple[ChainState, dict[str, jax.Array]]:
        """Take the rows from `first` to `last` (at most `rows`), of `each` iterations; returns what each came to."""

        def row(i: jax.Array, carry: tuple) -> tuple:
            state, buffers = carry
            state, said = jax.lax.fori_loop(0, each, self._one, (state, nothing))
            kept = self._row(state, said, each)
            return state, {name: buffers[name].at[i].set(kept[name]) for name in buffers}

        nothing = jax.tree.map(
            lambda v: jnp.zeros(v.shape, v.dtype), jax.eval_shape(self._said, state)
        )
        shapes = jax.eval_shape(self._row, state, nothing, each)
        empty = {n: jnp.zeros((self.rows, *v.shape), v.dtype) for n, v in shapes.items()}
        return jax.lax.fori_loop(first, last, row, (state, empty))

    def _one(self, _: jax.Array, carry: tuple) -> tuple[ChainState, dict[str, jax.Array]]:
        """Take one iteration, and sum up what is said of it."""
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

    def _said(self, state: ChainState) -> dict[str, jax.Array]:
        return self.dynamics.step(state.key, state.place, state.tuning, state.iteration)[2]

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
"""Statistics of iterations whose mean a row holds; it holds the sum of the others."""


def _either(which: jax.Array, first: Tuning, second: Tuning) -> Tuning:
    chosen: Tuning = jax.tree.map(lambda a, b: jnp.where(which, a, b), first, second)
    return chosen
