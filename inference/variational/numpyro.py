"""ADVI on a NumPyro model: a Gaussian in the unconstrained space, Adam, a stopping rule.

By default the step size decays to a hundredth over `settings.iterations`. The trace of the ELBO, of `elbo_samples`
draws each, decides when to stop. With minibatches the gradients are those of a batch, whose likelihood is weighted up;
the ELBO stays that of all data.

The objective has two forms. Weights drawn: the joint density of each draw, which serves every model. Layers' values
drawn (local reparametrisation): the likelihood of a network's layers and a divergence in closed form (`elbo`), as Kurle
et al. 2021 train. The trace estimates the ELBO in the same form.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from onebasin.base.errors import AdviFailed, ArgumentError
from onebasin.base.precision import precision
from onebasin.base.seeds import Purpose, key_for, keys_for
from onebasin.models.networks.bayesian import NetworkTarget
from onebasin.models.target import Target

from ..contracts.method import Found, Job
from ..density.network import NetworkDensity, numpyro_density_of
from ..density.numpyro import NumpyroDensity
from ..density.start import given_start, random_starts
from ..runs.checkpoint import Keeper
from ..training.batches import Batches, check_batches
from .advi import Advi
from .elbo import Data, Objective, applies_locally
from .families.base import Parameters, sample
from .families.table import GAUSSIANS
from .fit import elbo_trace, found_by_advi
from .optimise import Optimiser, annealed, divergence_weight, step_sizes
from .result import draw_fit, parameter_traces
from .starts import he_starts

INIT_RADIUS = 2.0
"""Without a given start, the fit starts at a random point, as a chain would."""

LogDensity = Callable[[jax.Array], jax.Array]


def fit(job: Job[Advi]) -> Found:
    """Fit the approximation.

    Raises
    ------
    ValueError
        If local reparametrisation or batches do not apply, or the start does not fit.
    AdviFailed
        If the ELBO becomes infinite or undefined.
    """
    target, settings, seed, bars = job.target, job.method, job.seed, job.bars
    check_batches(target, settings.batch_size)
    check_init(target, settings, job.start)
    # Refused before the model is run; the answer does not depend on the family's size.
    local = applies_locally(target, GAUSSIANS[settings.family](1), settings.local_reparametrisation)
    with precision(settings.dtype):
        density = numpyro_density_of(target)
        family = GAUSSIANS[settings.family](density.size)
        loc = _means(job, density)
        key_steps, key_elbo, key_draws = jax.random.split(jax.random.key(seed), 3)
        elbo = PlainElbo(
            Objective(density, family, local, keep_noise=True),
            settings,
            key_for(Purpose.ADVI_BATCHES, seed),
        )
        state = elbo.first(loc, settings.init_scale, jax.random.key_data(key_steps)[None])
        bar = bars.add("ADVI", settings.iterations)
        found = elbo.run(state, Keeper(), lambda done: bars.move(bar, done), key_elbo)
        if found.settled.all():
            bars.move(bar, int(found.iteration[-1]), "ADVI, stopping rule met")
        params = jax.tree.map(lambda leaf: leaf[0], found.params)
        draws, lp, log_q = jax.jit(
            lambda p: draw_fit(density, family, p, key_draws, settings.draws)
        )(params)
        described = {n: (d, np.asarray(v)) for n, (d, v) in family.describe(params).items()}
        described |= parameter_traces(family, found.recorded)
    trace = elbo_trace(found.iteration, found.elbo[:, 0])
    return found_by_advi(
        job,
        {name: np.asarray(values)[None] for name, values in draws.items()},
        {"lp": np.asarray(lp)[None], "log_q": np.asarray(log_q)[None]},
        xr.Dataset(trace | described),
        converged=bool(found.settled[0]),
        gradient_evaluations=int(found.iteration[-1]) * settings.gradient_samples,
    )


def check_init(target: Target, settings: Advi, start: object = None) -> None:
    """Refuse He's start where there is no network.

    Raises
    ------
    ValueError
        If it was asked for, and no `start` takes its place.
    """
    if start is None and settings.init == "he" and not isinstance(target, NetworkTarget):
        raise ArgumentError(
            f"`init` is 'he', but the target {target.name!r} is no network; use init='random', or give a "
            "`start`."
        )


def _means(job: Job[Advi], density: NumpyroDensity) -> jax.Array:
    """Where the mean starts: (fit, param) of one fit."""
    settings, seed = job.method, job.seed
    if job.start is not None:
        return given_start(density, job.start)[None]
    if settings.init == "he":
        assert isinstance(job.target, NetworkTarget), "checked before"
        return he_starts(job.target, density, fits=1, dtype=settings.dtype, seed=seed)
    return random_starts(density, keys_for(Purpose.POINT, seed, 1), INIT_RADIUS)


class PlainElbo(Optimiser):
    """Trains one fit; carries its key from step to step."""

    def __init__(self, objective: Objective, settings: Advi, key_batches: jax.Array) -> None:
        super().__init__(
            objective.family,
            step_sizes(settings.schedule, settings.learning_rate, settings.iterations),
            steps=settings.iterations,
            evaluate_every=settings.evaluate_every,
            tolerance=settings.tolerance,
            wait=annealed(settings.anneal, settings.iterations),
            record=settings.trace_parameters,
        )
        self.objective, self.settings, self._key_batches = objective, settings, key_batches
        if settings.batch_size is not None:
            self.batches = Batches(objective.density.target.num_obs, settings.batch_size)

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
        """Minus the ELBO, by a batch or by all data, with the divergence's weight at this step."""
        (key, rows), s = inputs, self.settings
        weight = divergence_weight(number, s.anneal, s.iterations) if s.anneal else 1.0
        if self.objective.local:
            key_draws, key_layers = jax.random.split(key)
            return -self._by_layers(params, key_draws, _quick(key_layers), rows, weight)
        log_density: LogDensity = self.objective.density.log_density
        if rows is not None or s.anneal:
            log_density = self._weighted(rows, weight)
        return -self._elbo(jax.vmap(log_density), params, key, s.gradient_samples, weight)

    def _weighted(self, rows: jax.Array | None, weight: jax.Array | float) -> LogDensity:
        """Log density with the prior's weight, and the likelihood of some observations weighted up."""
        density = self.objective.density
        scale = 1.0 if rows is None else self.batches.weight

        def log_density(vector: jax.Array) -> jax.Array:
            likelihood = jnp.sum(density.log_likelihood(vector, rows))
            return weight * density.log_prior(vector) + scale * likelihood

        return log_density

    def _by_layers(
        self,
        params: Parameters,
        key_draws: jax.Array,
        key_layers: jax.Array,
        rows: jax.Array | None,
        weight: jax.Array | float,
    ) -> jax.Array:
        objective = self.objective
        data: Data = None
        scale = 1.0
        if rows is not None and isinstance(objective.density, NetworkDensity):
            x, y = objective.density.data
            data, scale = (x[rows], y[rows]), self.batches.weight
        draws = objective.draw(params, key_draws, self.settings.gradient_samples)
        likelihood = jnp.mean(objective.likelihood(params, key_layers, draws, data))
        prior = jnp.mean(objective.log_prior(params, draws))
        return scale * likelihood + weight * (prior + self.family.entropy(params))

    def evaluate(self, key: jax.Array, params: Parameters) -> tuple[jax.Array, jax.Array]:
        """The ELBO of all data; there is no information."""
        s, objective = self.settings, self.objective
        if objective.local:
            key_draws, key_layers = jax.random.split(key)
            draws = objective.draw(params, key_draws, s.elbo_samples)
            elbo = jnp.mean(objective.elbo_values(params, key_layers, draws))
            return elbo, jnp.zeros_like(elbo)
        density = objective.density
        # One draw after the other where there are batches: a pass over all data may fill the memory by itself.
        log_densities = (
            (lambda vectors: jax.lax.map(density.log_density, vectors))
            if s.batch_size is not None
            else jax.vmap(density.log_density)
        )
        elbo = self._elbo(log_densities, params, key, s.elbo_samples, 1.0)
        return elbo, jnp.zeros_like(elbo)

    def failure(self, values: np.ndarray, before: int, after: int) -> AdviFailed:
        """What is said of an ELBO that is not finite."""
        elbo, rate = float(values[0, 0]), self.settings.learning_rate
        return AdviFailed(
            f"NumPyro's ADVI failed on {self.objective.density.target.name!r}: the ELBO is {elbo} after {after} steps; "
            f"try a smaller `learning_rate` (now {rate}) or another seed.",
            [{"learning_rate": rate, "error": f"ELBO {elbo} at step {after}"}],
        )

    def _elbo(
        self,
        log_densities: LogDensity,
        params: Parameters,
        key: jax.Array,
        num: int,
        weight: jax.Array | float,
    ) -> jax.Array:
        draws = sample(self.family, params, key, num)
        return jnp.mean(log_densities(draws)) + weight * self.family.entropy(params)


def _quick(key: jax.Array) -> jax.Array:
    """A key of XLA's own generator, which takes a fraction of the time of JAX's default on a processor.

    The numbers of a step are the same on the same machine and versions, which is all that a seed promises.
    """
    return jax.random.wrap_key_data(jax.random.bits(key, (4,), jnp.uint32), impl="rbg")
