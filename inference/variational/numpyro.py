"""ADVI on a NumPyro model: a Gaussian in the unconstrained space, Adam with a decaying step, a stopping rule.

The step size decays to a hundredth over `settings.iterations`. Every `evaluate_every` steps the ELBO is estimated
anew with `elbo_samples` draws; the trace of these estimates decides when to stop (`fit.has_settled`). With minibatches
the gradients are those of a batch, whose likelihood is weighted up; the ELBO stays that of all data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr

from onebasin.models.networks.bayesian import NetworkTarget
from onebasin.models.target import Target

from ..density.network import density_of
from ..density.start import given_start, random_starts
from ..errors import AdviFailed
from ..keys import Purpose, key_for, keys_for
from ..precision import precision
from ..progress import ProgressBars
from ..training.batches import Batches
from .fit import VariationalFit, elbo_trace, has_settled
from .gaussian import GAUSSIANS, FullRank, MeanField, Parameters, entropy, log_density
from .settings import AdviSettings

INIT_RADIUS = 2.0
"""Without a given start, the fit starts at a random point, as a chain would."""

LogDensities = Callable[[jax.Array], jax.Array]
"""From points (sample, param) to log densities (sample,)."""


class _State(NamedTuple):
    key: jax.Array
    params: Parameters
    optimiser: optax.OptState


@dataclass(frozen=True)
class _Trace:
    iteration: list[int]
    elbo: list[float]
    params: Parameters
    converged: bool


@dataclass(frozen=True)
class _Model:
    """A log density over vectors (param,).

    Attributes
    ----------
    start : array (param,)
        Where the mean starts.
    sites : callable
        One vector to the values of the sites.
    log_densities : callable
        Of points (sample, param), with all data.
    batched : callable or None
        The same with the batch of a step, from the step's number; `None` without batches.
    """

    start: jax.Array
    sites: Callable[[jax.Array], dict[str, jax.Array]]
    log_densities: LogDensities
    batched: Callable[[jax.Array], LogDensities] | None = None


def fit(
    target: Target,
    family: str,
    settings: AdviSettings,
    start: Mapping[str, Any] | None,
    seed: int,
    bars: ProgressBars,
) -> VariationalFit:
    """Fit the approximation; `advi` says what the arguments mean.

    Raises
    ------
    AdviFailed
        If the ELBO becomes infinite or undefined.
    """
    with precision(settings.dtype):
        model = _model(target, settings, start, seed)
        key_steps, key_elbo, key_draws = jax.random.split(jax.random.key(seed), 3)
        fitting = _Fitting(model, GAUSSIANS[family], settings)
        trace = fitting.optimise(key_steps, key_elbo, bars, target.name)
        return _finish(fitting, trace, key_draws)


def _model(
    target: Target, settings: AdviSettings, start: Mapping[str, Any] | None, seed: int
) -> _Model:
    density = density_of(target)
    if start is None:
        first = random_starts(density, keys_for(Purpose.POINT, seed, 1), INIT_RADIUS)[0]
    else:
        first = given_start(density, start)

    def quantities(vector: jax.Array) -> dict[str, jax.Array]:
        return density.quantities(density.unravel(vector))

    if settings.batch_size is None or not isinstance(target, NetworkTarget):
        return _Model(first, quantities, jax.vmap(density.log_density))
    batches = Batches(len(target.x), settings.batch_size)
    key_batches = key_for(Purpose.ADVI_BATCHES, seed)

    def batched(step: jax.Array) -> LogDensities:
        epoch, number = step // batches.per_epoch, step % batches.per_epoch
        rows = batches.epoch(key_batches, epoch)[number]

        def log_density(v: jax.Array) -> jax.Array:
            likelihood = jnp.sum(density.log_likelihood(v, rows))
            return density.log_prior(v) + batches.weight * likelihood

        return jax.vmap(log_density)

    # One draw after the other: a pass over all data may fill the memory by itself.
    return _Model(first, quantities, lambda vs: jax.lax.map(density.log_density, vs), batched)


class _Fitting:
    """The compiled parts of a fit."""

    def __init__(self, model: _Model, family: MeanField | FullRank, settings: AdviSettings) -> None:
        self.model, self.family, self.settings = model, family, settings
        self.adam = optax.adam(
            optax.exponential_decay(settings.learning_rate, settings.iterations, 0.01)
        )
        self.log_densities = jax.jit(model.log_densities)
        self.estimate = jax.jit(partial(self._elbo, model.log_densities, num=settings.elbo_samples))
        self.advance = jax.jit(
            lambda state, done, num: jax.lax.fori_loop(
                0, num, lambda i, s: self._step(done + i, s), state
            )
        )

    def _elbo(
        self, log_densities: LogDensities, params: Parameters, key: jax.Array, num: int
    ) -> jax.Array:
        eps = jax.random.normal(key, (num, params["loc"].size), params["loc"].dtype)
        draws = self.family.transform(params, eps)
        return jnp.mean(log_densities(draws)) + entropy(self.family, params)

    def _step(self, number: jax.Array, state: _State) -> _State:
        key, key_now = jax.random.split(state.key)
        m = self.model
        log_densities = m.batched(number) if m.batched else m.log_densities

        def loss(params: Parameters) -> jax.Array:
            return -self._elbo(log_densities, params, key_now, self.settings.gradient_samples)

        updates, optimiser = self.adam.update(jax.grad(loss)(state.params), state.optimiser)
        return _State(key, optax.apply_updates(state.params, updates), optimiser)

    def optimise(
        self,
        key_steps: jax.Array,
        key_elbo: jax.Array,
        bars: ProgressBars,
        name: str,
    ) -> _Trace:
        """Run until the ELBO settles or the iterations end."""
        s = self.settings
        params = self.family.initial(self.model.start, s.init_scale)
        state = _State(key_steps, params, self.adam.init(params))
        bar = bars.add("ADVI", s.iterations)
        iteration: list[int] = []
        elbo: list[float] = []
        while (done := iteration[-1] if iteration else 0) < s.iterations:
            steps = min(s.evaluate_every, s.iterations - done)
            state = self.advance(state, done, steps)
            elbo.append(float(self.estimate(state.params, jax.random.fold_in(key_elbo, done))))
            iteration.append(done + steps)
            bars.move(bar, done + steps)
            if not np.isfinite(elbo[-1]):
                raise _failure(name, s, elbo[-1], done + steps)
            if has_settled(elbo, s.tolerance):
                return _Trace(iteration, elbo, state.params, True)
        return _Trace(iteration, elbo, state.params, False)


def _failure(name: str, settings: AdviSettings, elbo: float, step: int) -> AdviFailed:
    return AdviFailed(
        f"NumPyro's ADVI failed on {name!r}: the ELBO is {elbo} after {step} steps; try a smaller `learning_rate` "
        f"(now {settings.learning_rate}) or another seed.",
        [{"learning_rate": settings.learning_rate, "error": f"ELBO {elbo} at step {step}"}],
    )


def _finish(fitting: _Fitting, trace: _Trace, key: jax.Array) -> VariationalFit:
    s, params = fitting.settings, trace.params
    eps = jax.random.normal(key, (s.draws, params["loc"].size), params["loc"].dtype)
    z = fitting.family.transform(params, eps)
    lp, log_q = fitting.log_densities(z), log_density(fitting.family, params, eps)
    sites = jax.jit(jax.vmap(fitting.model.sites))(z)
    described = {k: (d, np.asarray(v)) for k, (d, v) in fitting.family.describe(params).items()}
    return VariationalFit(
        draws={name: np.asarray(values)[None] for name, values in sites.items()},
        stats={"lp": np.asarray(lp)[None], "log_q": np.asarray(log_q)[None]},
        variational=xr.Dataset(elbo_trace(trace.iteration, trace.elbo) | described),
        converged=trace.converged,
        gradient_evaluations=trace.iteration[-1] * s.gradient_samples,
    )
