"""The symmetrised ELBO, several fits side by side.

Minus the objective, in nats: E_q[log likelihood] - beta (KL(q || prior) - I), where a batch's likelihood is weighted
up to all data, I is added once, and beta rises from 0 to 1 over the annealed share of the steps. The traces are of the
ELBO of all data and of the information, with full weight.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from onebasin.base.errors import InferenceError
from onebasin.base.seeds import Purpose, keys_for

from ..density.network import NetworkDensity
from ..training.batches import Batches
from .elbo import Data, Objective
from .families.base import Parameters, sample
from .optimise import Optimiser, annealed, divergence_weight, step_sizes
from .symmetrised import Symmetrised
from .term import Information


class SymmetrisedElbo(Optimiser):
    """Trains fits of one family.

    Parameters
    ----------
    objective : Objective
        The ELBO without symmetry.
    information : Information
        What symmetry adds.
    settings : Symmetrised
        Steps, draws, batches.
    seed : int
        Of noise and batches.
    """

    def __init__(
        self,
        objective: Objective,
        information: Information,
        settings: Symmetrised,
        seed: int | jax.Array,
    ) -> None:
        super().__init__(
            objective.family,
            step_sizes(settings.schedule, settings.learning_rate, settings.steps),
            steps=settings.steps,
            evaluate_every=settings.evaluate_every,
            tolerance=settings.tolerance,
            wait=annealed(settings.anneal, settings.steps),
        )
        self.objective, self.information, self.settings = objective, information, settings
        self._keys = keys_for(Purpose.FIT_STEPS, seed, settings.fits)
        self._order_keys = keys_for(Purpose.FIT_BATCHES, seed, settings.fits)
        target = objective.density.target
        num_obs = target.num_obs
        self.batches = Batches(num_obs, settings.batch_size or num_obs)

    def start(self, loc: Float[Array, "fit param"]) -> Any:
        """The state before the first step, with means at `loc`."""
        return self.first(loc, self.settings.init_scale, self._orders(0))

    def prepare(self, carried: Any, number: jax.Array) -> tuple[Any, Any]:
        """The order of the epoch's observations; keys and observations of the step."""
        place = number % self.batches.per_epoch
        epoch = number // self.batches.per_epoch
        # Not batched over fits, so that the branch not taken costs nothing.
        order = jax.lax.cond(place == 0, lambda: self._orders(epoch), lambda: carried)
        keys = jax.vmap(lambda key: jax.random.fold_in(key, number))(self._keys)
        return order, (keys, self._batch(order, place))

    @property
    def axes(self) -> Any:
        """Keys are of a fit; observations too, where there are batches."""
        return 0, None if self.settings.batch_size is None else 0

    def loss(
        self, params: Parameters, number: jax.Array, inputs: tuple[jax.Array, Data]
    ) -> Float[Array, ""]:
        """Minus the objective of one fit; its derivative is the training gradient, its value lacks the information."""
        key, data = inputs
        s = self.settings
        key_eps, key_layers, key_terms = jax.random.split(key, 3)
        draws = sample(self.family, params, key_eps, s.samples)
        likelihood = jnp.mean(self.objective.likelihood(params, key_layers, draws, data))
        prior = jnp.mean(self.objective.log_prior(params, draws))
        few = draws[: s.information_draws]
        if s.information_draws > s.samples:
            few = sample(self.family, params, key_eps, s.information_draws)
        gain = self.information.term(params, key_terms, few)
        inside = prior + self.family.entropy(params) + gain
        weight = divergence_weight(number, s.anneal, s.steps)
        return -(self.batches.weight * likelihood + weight * inside)

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

    def evaluate(self, key: jax.Array, params: Parameters) -> tuple[jax.Array, jax.Array]:
        """The ELBO of one fit and the information."""
        key_eps, key_layers, key_terms = jax.random.split(key, 3)
        draws = sample(self.family, params, key_eps, self.settings.elbo_samples)
        elbo = jnp.mean(self.objective.elbo_values(params, key_layers, draws))
        return elbo, jnp.mean(self.information.value(params, key_terms, draws))

    def failure(self, values: np.ndarray, before: int, after: int) -> InferenceError:
        """What is said of an ELBO or an information that is not finite."""
        name, rate = self.objective.density.target.name, self.settings.learning_rate
        return InferenceError(
            f"Symmetrised VI failed on {name!r}: the ELBO or the information is not finite (ELBO {values[0]}) "
            f"after step {before}; try a smaller `learning_rate` (now {rate}) or `init_scale`, or another seed."
        )
