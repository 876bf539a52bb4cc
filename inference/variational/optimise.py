"""Adam on an ELBO, one or several fits side by side, with a stopping rule: the loop of ADVI and of symmetrised VI.

Every `evaluate_every` steps the ELBO and the information (zero without symmetry) are estimated anew; the trace of
their sum decides when to stop (`fit.has_settled`), but not before the weight of the divergence from the prior has risen
to one: until then another objective is trained.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from onebasin.base.errors import InferenceError

from ..runs.checkpoint import Keeper, Kept
from .families.base import Family, Parameters
from .fit import has_settled


class State(NamedTuple):
    """Where training is, with a leading axis of fits; `carried` is what the ELBO takes from step to step."""

    params: Parameters
    adam: optax.OptState
    carried: Any


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
    recorded : list of dict
        Parameters of the family (fit, ...) at each evaluation, where they were asked for.
    """

    params: Parameters
    iteration: np.ndarray
    elbo: np.ndarray
    information: np.ndarray
    settled: np.ndarray
    recorded: list[Parameters]


def step_sizes(schedule: str, first: float, steps: int) -> optax.ScalarOrSchedule:
    """Adam's step sizes: to a hundredth ("exponential"), to zero along half a cosine, or "constant"."""
    if schedule == "exponential":
        return optax.exponential_decay(first, steps, 0.01)
    return optax.cosine_decay_schedule(first, steps) if schedule == "cosine" else first


def annealed(share: float, steps: int) -> int:
    """Steps in which the weight of the divergence from the prior is below one."""
    return math.ceil(share * steps)


def divergence_weight(number: jax.Array, share: float, steps: int) -> Float[Array, ""]:
    """Weight of the divergence at a step: from 0 to 1 over a share of the steps, linearly."""
    rising = (number + 1) / max(share * steps, 1.0)
    return jnp.minimum(1.0, rising).astype(jnp.result_type(float))


class Optimiser(ABC):
    """The compiled loop; a subclass says what the ELBO is.

    Parameters
    ----------
    family : Family
        The approximation.
    learning_rate : float or schedule
        Of Adam.
    steps, evaluate_every : int
        Most steps, and steps between evaluations.
    tolerance : float
        Of the stopping rule; 0 for never.
    wait : int
        Steps before which it is not tried.
    record : bool
        Whether parameters are recorded at every evaluation.
    """

    def __init__(
        self,
        family: Family,
        learning_rate: optax.ScalarOrSchedule,
        *,
        steps: int,
        evaluate_every: int,
        tolerance: float,
        wait: int = 0,
        record: bool = False,
    ) -> None:
        self.family, self.adam = family, optax.adam(learning_rate)
        self.steps, self.evaluate_every, self.tolerance = steps, evaluate_every, tolerance
        self.wait, self.record = wait, record
        self._advance = jax.jit(self.stepped)
        self._evaluate = jax.jit(
            lambda params, key: jax.lax.map(partial(self.evaluate, key), params)
        )

    @abstractmethod
    def prepare(self, carried: Any, number: jax.Array) -> tuple[Any, Any]:
        """What is carried on, and the inputs of a step's losses."""

    @property
    @abstractmethod
    def axes(self) -> Any:
        """Which axis of these inputs counts the fits, None where they share them."""

    @abstractmethod
    def loss(self, params: Parameters, number: jax.Array, inputs: Any) -> Float[Array, ""]:
        """Minus the objective of one fit, whose derivative trains it."""

    @abstractmethod
    def evaluate(self, key: jax.Array, params: Parameters) -> tuple[jax.Array, jax.Array]:
        """The ELBO of one fit and the information."""

    @abstractmethod
    def failure(self, values: np.ndarray, before: int, after: int) -> InferenceError:
        """What is said of values (2, fit) that are not finite, evaluated `after` so many steps."""

    def first(self, loc: Float[Array, "fit param"], scale: float, carried: Any) -> State:
        """The state before the first step."""
        params = jax.vmap(lambda v: self.family.initial(v, scale))(loc)
        return State(params, jax.vmap(self.adam.init)(params), carried)

    def run(
        self, state: State, keeper: Keeper, watch: Callable[[int], None], key: jax.Array
    ) -> Optimised:
        """Train until all fits have settled or the steps end.

        Raises
        ------
        InferenceError
            If an ELBO becomes infinite or undefined.
        """
        kept = keeper.load(Kept(state, []))
        state, trace = kept.state, list(kept.losses)
        recorded: list[Parameters] = []
        while (done := min(len(trace) * self.evaluate_every, self.steps)) < self.steps:
            if done >= self.wait and np.all(self._settled(trace)):
                break
            state = self._advance(state, done, min(self.evaluate_every, self.steps - done))
            trace.append(np.stack(self._evaluate(state.params, jax.random.fold_in(key, done))))
            after = min(len(trace) * self.evaluate_every, self.steps)
            self._check(trace[-1], done, after)
            if self.record:
                recorded.append(state.params)
            keeper.save(partial(Kept, state, trace))
            watch(after)
        values = np.stack(trace)
        iteration = np.minimum(np.arange(1, len(trace) + 1) * self.evaluate_every, self.steps)
        settled = self._settled(trace)
        return Optimised(state.params, iteration, values[:, 0], values[:, 1], settled, recorded)

    def stepped(self, state: State, done: jax.Array, num: jax.Array) -> State:
        """The state after `num` more steps, of which `done` are behind it; to be compiled by whoever calls."""
        return jax.lax.fori_loop(0, num, lambda i, s: self._step(done + i, s), state)

    def _step(self, number: jax.Array, state: State) -> State:
        carried, inputs = self.prepare(state.carried, number)
        slopes = jax.vmap(jax.grad(self.loss), in_axes=(0, None, self.axes))(
            state.params, number, inputs
        )
        updates, adam = jax.vmap(self.adam.update)(slopes, state.adam)
        return State(optax.apply_updates(state.params, updates), adam, carried)

    def _check(self, values: np.ndarray, before: int, after: int) -> None:
        if not np.all(np.isfinite(values)):
            raise self.failure(values, before, after)

    def _settled(self, trace: list[np.ndarray]) -> np.ndarray:
        """Which fits have settled."""
        if not trace:
            return np.zeros(1, bool)
        total = np.stack(trace).sum(axis=1).astype(np.float64)
        return np.array([has_settled(column, self.tolerance) for column in total.T.tolist()])
