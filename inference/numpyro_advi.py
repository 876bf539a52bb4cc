"""ADVI on a NumPyro model: a Gaussian in the unconstrained space, Adam with a decaying step, a stopping rule.

The step size decays to a hundredth over `settings.iterations`. Every `evaluate_every` steps the ELBO is estimated
anew with `elbo_samples` draws; the trace of these estimates decides when to stop (`fit.has_settled`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jax.flatten_util import ravel_pytree

from models.target import Target

from .errors import AdviFailed
from .fit import VariationalFit, elbo_trace, has_settled
from .gaussian import GAUSSIANS, FullRank, MeanField, Parameters, entropy, log_density
from .numpyro_mcmc import Unconstrained, chain_keys, unconstrain
from .precision import precision
from .progress import ProgressBars
from .settings import AdviSettings

INIT_RADIUS = 2.0
INIT_SCALE = 0.1
"""The fit starts at a random point, as a chain would, with this standard deviation in every direction."""


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


def fit(
    target: Target, family: str, settings: AdviSettings, seed: int, bars: ProgressBars
) -> VariationalFit:
    """Fit the approximation; `inference.advi` says what the arguments mean.

    Raises
    ------
    AdviFailed
        If the ELBO becomes infinite or undefined.
    """
    with precision(settings.dtype):
        model = unconstrain(target, chain_keys(seed, 1, 2), INIT_RADIUS)
        start, unravel = ravel_pytree(jax.tree.map(lambda leaf: leaf[0], model.initial))
        gaussian = GAUSSIANS[family]
        key_steps, key_elbo, key_draws = jax.random.split(jax.random.key(seed), 3)
        fitting = _Fitting(model, gaussian, settings, unravel)
        trace = fitting.optimise(start, key_steps, key_elbo, bars, target.name)
        return _finish(fitting, trace, key_draws)


class _Fitting:
    """The compiled parts of a fit."""

    def __init__(
        self, model: Unconstrained, family: MeanField | FullRank, settings: AdviSettings, unravel
    ) -> None:
        self.model, self.family, self.settings, self.unravel = model, family, settings, unravel
        self.adam = optax.adam(
            optax.exponential_decay(settings.learning_rate, settings.iterations, 0.01)
        )
        self.log_densities = jax.jit(jax.vmap(lambda z: -model.potential(unravel(z))))
        self.estimate = jax.jit(partial(self._elbo, num=settings.elbo_samples))
        self.advance = jax.jit(
            lambda state, num: jax.lax.fori_loop(0, num, lambda _, s: self._step(s), state)
        )

    def _elbo(self, params: Parameters, key: jax.Array, num: int) -> jax.Array:
        eps = jax.random.normal(key, (num, params["loc"].size), params["loc"].dtype)
        draws = self.family.transform(params, eps)
        return jnp.mean(self.log_densities(draws)) + entropy(self.family, params)

    def _step(self, state: _State) -> _State:
        key, key_now = jax.random.split(state.key)

        def loss(params: Parameters) -> jax.Array:
            return -self._elbo(params, key_now, self.settings.gradient_samples)

        updates, optimiser = self.adam.update(jax.grad(loss)(state.params), state.optimiser)
        return _State(key, optax.apply_updates(state.params, updates), optimiser)

    def optimise(
        self,
        start: jax.Array,
        key_steps: jax.Array,
        key_elbo: jax.Array,
        bars: ProgressBars,
        name: str,
    ) -> _Trace:
        """Run until the ELBO settles or the iterations end."""
        s = self.settings
        params = self.family.initial(start, INIT_SCALE)
        state = _State(key_steps, params, self.adam.init(params))
        bar = bars.add("ADVI", s.iterations)
        iteration: list[int] = []
        elbo: list[float] = []
        while (done := iteration[-1] if iteration else 0) < s.iterations:
            steps = min(s.evaluate_every, s.iterations - done)
            state = self.advance(state, steps)
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
    sites = jax.jit(jax.vmap(lambda v: fitting.model.constrain(fitting.unravel(v))))(z)
    described = {k: (d, np.asarray(v)) for k, (d, v) in fitting.family.describe(params).items()}
    return VariationalFit(
        draws={name: np.asarray(values)[None] for name, values in sites.items()},
        stats={"lp": np.asarray(lp)[None], "log_q": np.asarray(log_q)[None]},
        variational=xr.Dataset(elbo_trace(trace.iteration, trace.elbo) | described),
        converged=trace.converged,
        gradient_evaluations=trace.iteration[-1] * s.gradient_samples,
    )
