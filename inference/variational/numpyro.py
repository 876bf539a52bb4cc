"""ADVI on a NumPyro model: a Gaussian in the unconstrained space, Adam with a decaying step, a stopping rule.

The step size decays to a hundredth over `settings.iterations`. The trace of the ELBO, of `elbo_samples` draws each,
decides when to stop. With minibatches the gradients are those of a batch, whose likelihood is weighted up; the ELBO
stays that of all data.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr

from ..checkpoint import Keeper
from ..density.network import density_of
from ..density.numpyro import NumpyroDensity
from ..density.start import given_start, random_starts
from ..errors import AdviFailed
from ..keys import Purpose, key_for, keys_for
from ..precision import precision
from ..training.batches import Batches, check_batches
from .families.base import Parameters, sample
from .families.table import GAUSSIANS
from .fit import FitRequest, VariationalFit, elbo_trace
from .optimise import Optimiser
from .result import draw_fit
from .settings import AdviSettings

INIT_RADIUS = 2.0
"""Without a given start, the fit starts at a random point, as a chain would."""

LogDensity = Callable[[jax.Array], jax.Array]


def fit(request: FitRequest) -> VariationalFit:
    """Fit the approximation.

    Raises
    ------
    AdviFailed
        If the ELBO becomes infinite or undefined.
    """
    settings, seed, bars = request.settings, request.seed, request.bars
    check_batches(request.target, settings.batch_size)
    with precision(settings.dtype):
        density = density_of(request.target)
        if request.start is None:
            loc = random_starts(density, keys_for(Purpose.POINT, seed, 1), INIT_RADIUS)
        else:
            loc = given_start(density, request.start)[None]
        key_steps, key_elbo, key_draws = jax.random.split(jax.random.key(seed), 3)
        elbo = PlainElbo(density, request.family, settings, key_for(Purpose.ADVI_BATCHES, seed))
        state = elbo.first(loc, settings.init_scale, jax.random.key_data(key_steps)[None])
        bar = bars.add("ADVI", settings.iterations)
        found = elbo.run(state, Keeper(), lambda done: bars.move(bar, done), key_elbo)
        if found.settled.all():
            bars.move(bar, int(found.iteration[-1]), "ADVI, stopping rule met")
        params = jax.tree.map(lambda leaf: leaf[0], found.params)
        draws, lp, log_q = jax.jit(
            lambda p: draw_fit(density, elbo.family, p, key_draws, settings.draws)
        )(params)
        described = {n: (d, np.asarray(v)) for n, (d, v) in elbo.family.describe(params).items()}
    trace = elbo_trace(found.iteration, found.elbo[:, 0])
    return VariationalFit(
        draws={name: np.asarray(values)[None] for name, values in draws.items()},
        stats={"lp": np.asarray(lp)[None], "log_q": np.asarray(log_q)[None]},
        variational=xr.Dataset(trace | described),
        converged=bool(found.settled[0]),
        gradient_evaluations=int(found.iteration[-1]) * settings.gradient_samples,
    )


class PlainElbo(Optimiser):
    """Trains one fit; carries its key from step to step."""

    def __init__(
        self, density: NumpyroDensity, family: str, settings: AdviSettings, key_batches: jax.Array
    ) -> None:
        super().__init__(
            GAUSSIANS[family](density.size),
            optax.exponential_decay(settings.learning_rate, settings.iterations, 0.01),
            steps=settings.iterations,
            evaluate_every=settings.evaluate_every,
            tolerance=settings.tolerance,
        )
        self.density, self.settings, self._key_batches = density, settings, key_batches
        if settings.batch_size is not None:
            self.batches = Batches(density.target.num_obs, settings.batch_size)

    def prepare(self, carried: jax.Array, number: jax.Array) -> tuple[jax.Array, Any]:
        """The next key; the step's own key and observations."""
        key, key_now = jax.random.split(jax.random.wrap_key_data(carried[0]))
        rows = None
        if self.settings.batch_size is not None:
            epoch, place = number // self.batches.per_epoch, number % self.batches.per_epoch
            rows = self.batches.epoch(self._key_batches, epoch)[place]
        return jax.random.key_data(key)[None], (key_now[None], rows)

    @property
    def axes(self) -> Any:
        """Keys are of a fit."""
        return 0, None

    def loss(self, params: Parameters, number: jax.Array, inputs: Any) -> jax.Array:
        """Minus the ELBO, by a batch or by all data."""
        (key, rows), samples = inputs, self.settings.gradient_samples
        if rows is None:
            return -self._elbo(jax.vmap(self.density.log_density), params, key, samples)

        def log_density(vector: jax.Array) -> jax.Array:
            likelihood = jnp.sum(self.density.log_likelihood(vector, rows))
            return self.density.log_prior(vector) + self.batches.weight * likelihood

        return -self._elbo(jax.vmap(log_density), params, key, samples)

    def evaluate(self, key: jax.Array, params: Parameters) -> tuple[jax.Array, jax.Array]:
        """The ELBO of all data; there is no information."""
        batched = self.settings.batch_size is not None
        # One draw after the other where there are batches: a pass over all data may fill the memory by itself.
        log_densities = (
            (lambda vectors: jax.lax.map(self.density.log_density, vectors))
            if batched
            else jax.vmap(self.density.log_density)
        )
        elbo = self._elbo(log_densities, params, key, self.settings.elbo_samples)
        return elbo, jnp.zeros_like(elbo)

    def failure(self, values: np.ndarray, before: int, after: int) -> AdviFailed:
        """What is said of an ELBO that is not finite."""
        elbo, rate = float(values[0, 0]), self.settings.learning_rate
        return AdviFailed(
            f"NumPyro's ADVI failed on {self.density.target.name!r}: the ELBO is {elbo} after {after} steps; try a "
            f"smaller `learning_rate` (now {rate}) or another seed.",
            [{"learning_rate": rate, "error": f"ELBO {elbo} at step {after}"}],
        )

    def _elbo(
        self, log_densities: LogDensity, params: Parameters, key: jax.Array, num: int
    ) -> jax.Array:
        draws = sample(self.family, params, key, num)
        return jnp.mean(log_densities(draws)) + self.family.entropy(params)
