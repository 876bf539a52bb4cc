"""Adam on the symmetrised ELBO, several fits side by side.

Minus the objective, in nats: E_q[log likelihood] - beta (KL(q || prior) - I), where a batch's likelihood is weighted
up to all data, I is added once, and beta rises from 0 to 1 over the annealed share of the steps. Every
`evaluate_every` steps the ELBO of all data and the information are estimated anew, with full weight.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from onebasin.models.networks.bayesian import NetworkTarget

from ..density.network import NetworkDensity
from ..errors import InferenceError
from ..keys import Purpose, keys_for
from ..training.batches import Batches
from ..training.train import Keeper, Kept
from .elbo import Data, Objective
from .fit import has_settled
from .gaussian import Parameters
from .settings import SymmetrisedSettings
from .term import Information


class State(NamedTuple):
    """Where training is, with a leading axis of fits; `order` is that of the epoch's observations."""

    params: Parameters
    adam: optax.OptState
    order: jax.Array


@dataclass(frozen=True)
class Optimised:
    """What training ended in.

    Attributes
    ----------
    params : dict
        Parameters of the family (fit, ...).
    iteration : array (evaluation,)
        Steps done at each evaluation.
    elbo, information : array (evaluation, fit)
        Their traces.
    settled : array (fit,)
        Whether the stopping rule was met.
    """

    params: Parameters
    iteration: np.ndarray
    elbo: np.ndarray
    information: np.ndarray
    settled: np.ndarray


class Optimiser:
    """The compiled parts of training.

    Parameters
    ----------
    objective : Objective
        The ELBO without symmetry.
    information : Information
        What symmetry adds.
    settings : SymmetrisedSettings
        Steps, draws, batches.
    seed : int
        Of noise and batches.
    """

    def __init__(
        self,
        objective: Objective,
        information: Information,
        settings: SymmetrisedSettings,
        seed: int,
    ) -> None:
        self.objective, self.information, self.settings = objective, information, settings
        self.family = objective.family
        self.adam = optax.adam(_learning_rate(settings))
        self._keys = keys_for(Purpose.FIT_STEPS, seed, settings.fits)
        self._order_keys = keys_for(Purpose.FIT_BATCHES, seed, settings.fits)
        target = objective.density.target
        num_obs = len(target.x) if isinstance(target, NetworkTarget) else 1
        self.batches = Batches(num_obs, settings.batch_size or num_obs)
        self._advance = jax.jit(self._steps)
        self._evaluate = jax.jit(
            lambda params, key: jax.lax.map(partial(self._traced, key), params)
        )

    def first(self, loc: Float[Array, "fit param"]) -> State:
        """The state before the first step."""
        params = jax.vmap(lambda v: self.family.initial(v, self.settings.init_scale))(loc)
        return State(params, jax.vmap(self.adam.init)(params), self._orders(0))

    def run(
        self, state: State, keeper: Keeper, watch: Callable[[int], None], key: jax.Array
    ) -> Optimised:
        """Train until all fits have settled or the steps end.

        Raises
        ------
        InferenceError
            If an ELBO becomes infinite or undefined.
        """
        s = self.settings
        kept = keeper.load(Kept(state, []))
        state, trace = kept.state, list(kept.losses)
        while (done := min(len(trace) * s.evaluate_every, s.steps)) < s.steps:
            if np.all(_settled(trace, s.tolerance)):
                break
            state = self._advance(state, done, min(s.evaluate_every, s.steps - done))
            trace.append(np.stack(self._evaluate(state.params, jax.random.fold_in(key, done))))
            self._check(trace[-1], done)
            keeper.save(partial(Kept, state, trace))
            watch(min(len(trace) * s.evaluate_every, s.steps))
        values = np.stack(trace)
        iteration = np.minimum(np.arange(1, len(trace) + 1) * s.evaluate_every, s.steps)
        settled = _settled(trace, s.tolerance)
        return Optimised(state.params, iteration, values[:, 0], values[:, 1], settled)

    def loss(
        self, params: Parameters, key: jax.Array, number: jax.Array, data: Data
    ) -> Float[Array, ""]:
        """Minus the objective of one fit; its derivative is the training gradient, its value lacks the information."""
        s = self.settings
        key_eps, key_layers, key_terms = jax.random.split(key, 3)
        draws = self._draws(params, key_eps, s.samples)
        likelihood = jnp.mean(self.objective.likelihood(params, key_layers, draws, data))
        prior = jnp.mean(self.objective.log_prior(params, draws))
        few = draws[: s.information_draws]
        if s.information_draws > s.samples:
            few = self._draws(params, key_eps, s.information_draws)
        gain = self.information.term(params, key_terms, few)
        inside = prior + self.family.entropy(params) + gain
        return -(self.batches.weight * likelihood + self._weight(number) * inside)

    def _draws(self, params: Parameters, key: jax.Array, num: int) -> jax.Array:
        eps = jax.random.normal(key, (num, self.family.noise), params["loc"].dtype)
        return self.family.transform(params, eps)

    def _weight(self, number: jax.Array) -> jax.Array:
        """Of the divergence at a step."""
        annealed = self.settings.anneal * self.settings.steps
        return jnp.minimum(1.0, (number + 1) / max(annealed, 1.0)).astype(jnp.result_type(float))

    def _steps(self, state: State, done: jax.Array, num: jax.Array) -> State:
        return jax.lax.fori_loop(0, num, lambda i, s: self._step(done + i, s), state)

    def _step(self, number: jax.Array, state: State) -> State:
        place = number % self.batches.per_epoch
        epoch = number // self.batches.per_epoch
        # Not batched over fits, so that the branch not taken costs nothing.
        order = jax.lax.cond(place == 0, lambda: self._orders(epoch), lambda: state.order)
        data = self._batch(order, place)
        keys = jax.vmap(lambda key: jax.random.fold_in(key, number))(self._keys)
        shared = None if self.settings.batch_size is None else 0
        slopes = jax.vmap(jax.grad(self.loss), in_axes=(0, 0, None, shared))(
            state.params, keys, number, data
        )
        updates, adam = jax.vmap(self.adam.update)(slopes, state.adam)
        return State(optax.apply_updates(state.params, updates), adam, order)

    def _orders(self, epoch: jax.Array | int) -> jax.Array:
        """Rows (fit, batch, obs) of all batches of an epoch; nothing where every step takes all data."""
        if self.settings.batch_size is None:
            return jnp.zeros((self.settings.fits, 1, 1), jnp.int32)
        return jax.vmap(lambda key: self.batches.epoch(key, epoch))(self._order_keys)

    def _batch(self, order: jax.Array, place: jax.Array) -> Data:
        """Observations of a step: those of every fit, or all."""
        if not isinstance(self.objective.density, NetworkDensity):
            return None
        x, y = self.objective.density.data
        if self.settings.batch_size is None:
            return x, y
        rows = order[:, place]
        return x[rows], y[rows]

    def _traced(self, key: jax.Array, params: Parameters) -> tuple[jax.Array, jax.Array]:
        key_eps, key_layers, key_terms = jax.random.split(key, 3)
        draws = self._draws(params, key_eps, self.settings.elbo_samples)
        elbo = jnp.mean(self.elbo_values(params, key_layers, draws))
        return elbo, jnp.mean(self.information.value(params, key_terms, draws))

    def elbo_values(
        self, params: Parameters, key: jax.Array, draws: Float[Array, "sample param"]
    ) -> Float[Array, " sample"]:
        """Values whose mean is the ELBO, of one fit and all data."""
        likelihood = self.objective.evaluate(params, key, draws)
        return likelihood + self.objective.log_prior(params, draws) + self.family.entropy(params)

    def _check(self, values: np.ndarray, done: int) -> None:
        if not np.all(np.isfinite(values)):
            name, rate = self.objective.density.target.name, self.settings.learning_rate
            raise InferenceError(
                f"Symmetrised VI failed on {name!r}: the ELBO or the information is not finite (ELBO {values[0]}) "
                f"after step {done}; try a smaller `learning_rate` (now {rate}) or `init_scale`, or another seed."
            )


def _settled(trace: list[np.ndarray], tolerance: float) -> np.ndarray:
    """Which fits have settled, by the symmetrised ELBO."""
    if not trace:
        return np.zeros(1, bool)
    total = np.stack(trace).sum(axis=1)
    return np.array([has_settled([float(v) for v in column], tolerance) for column in total.T])


def _learning_rate(settings: SymmetrisedSettings) -> optax.ScalarOrSchedule:
    if settings.schedule == "constant":
        return settings.learning_rate
    return optax.cosine_decay_schedule(settings.learning_rate, settings.steps)
