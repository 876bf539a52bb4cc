"""Tune a chain in its warmup: step size, length and metric.

The unadjusted chain's step size is that at which the energy error of a step has the variance asked for: the error grows
as the third power of the step, so that every step gives an estimate of it (blackjax's `mclmc_find_L_and_step_size`).
Departures, measured on networks: the variance asked for begins at `FIRST_VARIANCE` and falls, which takes a chain away
from where it started while its steps are long; the length is not taken from the draws' variances, which a chain that
has not mixed makes too small, but from the number of parameters. The adjusted chain's step size has dual averaging of
the acceptance rate (Hoffman and Gelman 2014, section 3.2, with their constants).

Where the metric is diagonal, the warmup has parts that end at an eighth, a quarter, a half and the whole of it. Each of
the first three learns variances in its second half, and hands them on as the next one's metric, in which the step size
is tuned again: coordinates whose scales are powers of ten apart are not learnt at once.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..contracts.density import Vector
from .mclmc import Mclmc

FIRST_VARIANCE = 0.5
"""Variance of the energy error per parameter that the warmup begins with."""
MEMORY = 150
"""Steps whose energy errors count for the step size."""
TRUST = 1.5
"""Distance from the variance asked for, in factors e of the step size, within which a step's error is used."""
CAUTION = 0.8
"""Factor of a step size at which a step was not finite."""
LENGTH = 0.5
ADJUSTED_LENGTH = 1.0
"""Length of the momentum's memory, in roots of the number of parameters."""
FEWEST_SHRUNK = 5.0
"""Draws that the unit metric counts for in addition to the variances of the warmup."""

Scalar = Float[Array, ""]


class Tuning(NamedTuple):
    """The state of a chain's tuning."""

    step_size: Scalar  # of the next iteration
    limit: Scalar  # step size above which none is taken: a shorter one has failed
    # Unadjusted: discounted sums of estimates and of their weights, which give the step size.
    errors: Scalar
    weight: Scalar
    # Adjusted: of dual averaging.
    shortfall: Scalar
    log_average: Scalar
    updates: Scalar
    inverse_mass: Vector  # variances of the coordinates
    # Of the coordinates, as far as they are being learnt.
    mean: Vector
    squares: Vector
    seen: Scalar


class Tuner:
    """The rules of one run."""

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
        """The energy variance that the step size is tuned to, which falls over each part of the warmup."""
        last = self.settings.energy_variance
        assert last is not None, "settings are resolved"
        begins, ends = self._part(iteration)
        share = (iteration - begins) / (ends - begins)
        if self.scaled:  # what is learnt in the end of a part is learnt at the step size asked for
            share = jnp.minimum(2 * share, 1.0)
        return FIRST_VARIANCE + (last - FIRST_VARIANCE) * share

    def by_energy(
        self, tuning: Tuning, iteration: jax.Array, error: Scalar, finite: jax.Array
    ) -> Tuning:
        """Take in the energy error of a step."""
        asked = self.variance_asked(iteration)
        ratio = error**2 / (self.size * asked) + 1e-8
        weight = jnp.exp(-0.5 * (jnp.log(ratio) / (6 * TRUST)) ** 2)
        kept = (MEMORY - 1) / (MEMORY + 1)
        # of the step size that had error 1 at variance 1: what is asked for may change meanwhile
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
        """Take in the acceptance probability of a trajectory."""
        count = tuning.updates + 1
        share = 1 / (count + 10)
        shortfall = (1 - share) * tuning.shortfall + share * (
            self.settings.target_acceptance - acceptance
        )
        log_step = math.log(10 * self.length / 4) - jnp.sqrt(count) / 0.05 * shortfall
        rate = count**-0.75
        return tuning._replace(
            step_size=jnp.exp(log_step),
            shortfall=shortfall,
            log_average=rate * log_step + (1 - rate) * tuning.log_average,
            updates=count,
        )

    def learn(self, tuning: Tuning, iteration: jax.Array, position: Vector) -> Tuning:
        """Take in where the chain is, in the second half of a part; at its end, measure by what was learnt."""
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
        """Return the first and the last iteration of the part of the warmup that an iteration belongs to."""
        bounds = jnp.asarray((0, *self.ends, self.settings.warmup), jnp.int32)
        place = jnp.searchsorted(bounds[1:-1], iteration, side="right")
        return bounds[place], bounds[place + 1]

    def _measured(self, tuning: Tuning) -> Tuning:
        """The same in the metric of the variances learnt, to be tuned again."""
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
