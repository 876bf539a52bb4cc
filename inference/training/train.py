"""Train networks in parallel with minibatch Adam (Kingma and Ba 2015) on the log density.

The loss is minus the objective for all data, in nats: the log likelihood and, for `objective="posterior"`, the log
prior with the log Jacobian, in the unconstrained space. For a batch, the likelihood is scaled up to all data. The
members share the data and the compiled step. Each has its own start and, unless `same_batches`, its own batches.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro  # noqa: F401 - whole, before a part of it
import optax
import xarray as xr
from jaxtyping import Array, Float, Int

from onebasin.base.precision import precision
from onebasin.base.seeds import Purpose, keys_for
from onebasin.models.target import Target

from ..contracts.method import Found, Job
from ..density.network import NetworkDensity
from ..runs.checkpoint import Keeper, fingerprint, keeper_in
from .ensemble import Ensemble, Train, check_batches


@dataclass(frozen=True)
class Batches:
    """Division of `num_obs` observations into batches of `size` observations."""

    num_obs: int
    size: int

    @property
    def per_epoch(self) -> int:
        """The number of batches in an epoch."""
        return self.num_obs // self.size

    @property
    def weight(self) -> float:
        """The factor that scales the sum over a batch to all data."""
        return self.num_obs / self.size

    def epoch(self, rng_key: jax.Array, epoch: Array | int) -> Int[Array, "batch obs"]:
        """Return the rows of all batches of an epoch."""
        order = jax.random.permutation(jax.random.fold_in(rng_key, epoch), self.num_obs)
        return order[: self.per_epoch * self.size].reshape(self.per_epoch, self.size)


@dataclass(frozen=True)
class Trained:
    """The result of training."""

    values: dict[str, np.ndarray]  # Constrained values (member, ...).
    log_density: Float[np.ndarray, " member"]
    """Final log posterior density in the unconstrained space, up to a constant, for either objective."""
    losses: Float[np.ndarray, "member epoch"]
    """Mean of the batches' losses over an epoch, each before its step, in nats."""
    checkpoints: dict[str, np.ndarray]
    """Constrained values (checkpoint, member, ...); empty if none were requested."""
    recorded_at: Int[np.ndarray, " checkpoint"]
    """Number of finished epochs at each checkpoint; the first is 0, the start."""
    steps: int  # Number of gradient steps per member.


class TrainState(NamedTuple):
    """The state of training: the members' vectors and Adam's state."""

    points: Float[Array, "member param"]
    adam: optax.OptState


def train(
    target: Target,
    start: Mapping[str, Any],
    settings: Train,
    seed: int,
    *,
    same_batches: bool = False,
    record_every: int | None = None,
    keeper: Keeper | None = None,
    watch: Callable[[int], None] = lambda epochs: None,
) -> Trained:
    """Train networks in parallel from given starts (member, ...) on the constrained scale.

    A member's order of batches depends only on the seed and its number. With `same_batches` all use the order of the
    first member, so that members that differ by a symmetry continue to do so. Checkpoints are recorded every
    `record_every` epochs. A `keeper` saves the state to resume from, but not the checkpoints. `watch` is called with
    the number of finished epochs.
    """
    check_batches(target, settings.batch_size)
    members = len(next(iter(start.values())))
    with precision(settings.dtype):
        trainer = Trainer(target, settings, seed, members, same_batches)
        keeper = keeper or Keeper()
        state, losses = keeper.load((trainer.first(start), []))
        epochs = settings.epochs
        recorded = [trainer.values(state)] if record_every else []
        for epoch in range(len(losses), epochs):
            state, loss = trainer.epoch(state, epoch)
            losses.append(np.asarray(loss))
            if record_every and (epoch + 1) % record_every == 0:
                recorded.append(trainer.values(state))
            keeper.save((state, losses))
            watch(epoch + 1)
        at = range(0, epochs + 1, record_every) if record_every else ()
        return Trained(
            values=trainer.values(state),
            log_density=np.asarray(trainer.log_densities(state.points)),
            losses=np.stack(losses, 1),
            checkpoints={name: np.stack([r[name] for r in recorded]) for name in recorded[0]}
            if recorded
            else {},
            recorded_at=np.array(at, dtype=np.int64),
            steps=epochs * trainer.batches.per_epoch,
        )


class Trainer:
    """The compiled parts of training."""

    def __init__(
        self, target: Target, settings: Train, seed: int, members: int, same_batches: bool
    ) -> None:
        self.target, self.settings, self.members = target, settings, members
        self.batches = Batches(target.num_obs, settings.batch_size or target.num_obs)
        self.density = NetworkDensity.of(target)
        rate: optax.ScalarOrSchedule = settings.learning_rate
        if settings.schedule == "cosine":
            steps = settings.epochs * self.batches.per_epoch
            rate = optax.cosine_decay_schedule(settings.learning_rate, steps)
        self.adam = optax.adam(rate)
        self._keys = keys_for(Purpose.TRAINING_BATCHES, seed, 1 if same_batches else members)
        self.epoch = jax.jit(self._advance)
        self._values = jax.jit(jax.vmap(self.density.constrain))
        # Evaluate one member after another, because the data for one may fill the memory.
        self.log_densities = jax.jit(lambda points: jax.lax.map(self.density.log_density, points))

    def first(self, start: Mapping[str, Any]) -> TrainState:
        """Return the state before the first step."""
        rows = [{k: np.asarray(v)[i] for k, v in start.items()} for i in range(self.members)]
        points = jnp.stack([self.density.given_start(row) for row in rows])
        return TrainState(points, jax.vmap(self.adam.init)(points))

    def values(self, state: TrainState) -> dict[str, np.ndarray]:
        """Return constrained values (member, ...)."""
        return {name: np.asarray(v) for name, v in self._values(state.points).items()}

    def loss(self, point: Float[Array, " param"], rows: Int[Array, " obs"]) -> Float[Array, ""]:
        """Return the loss of one member on a batch, scaled to all data."""
        likelihood = jnp.sum(self.density.log_likelihood(point, rows))
        prior = self.density.log_prior(point) if self.settings.objective == "posterior" else 0.0
        return -(prior + self.batches.weight * likelihood)

    def _advance(
        self, state: TrainState, number: Array
    ) -> tuple[TrainState, Float[Array, " member"]]:
        """Run the steps of an epoch; also return the members' mean losses."""
        orders = jax.vmap(lambda key: self.batches.epoch(key, number))(self._keys)
        shared = len(self._keys) == 1
        step = jax.vmap(self._step, in_axes=(0, None if shared else 0))
        batches = orders[0] if shared else jnp.swapaxes(orders, 0, 1)
        state, losses = jax.lax.scan(step, state, batches)
        return state, jnp.mean(losses, 0)

    def _step(
        self, state: TrainState, rows: Int[Array, " obs"]
    ) -> tuple[TrainState, Float[Array, ""]]:
        loss, slope = jax.value_and_grad(self.loss)(state.points, rows)
        updates, adam = self.adam.update(slope, state.adam)
        return TrainState(optax.apply_updates(state.points, updates), adam), loss


def trained(job: Job[Ensemble]) -> Found:
    """Train the members from their starts."""
    target, s = job.target, job.method
    bar = job.bars.add(f"ensemble of {s.members}", s.epochs)
    how: dict[str, Any] = {"engine": job.engine, "method": s.label, "settings": s, "seed": job.seed}
    found = train(
        target,
        first_values(target, s, job.seed),
        s,
        job.seed,
        keeper=keeper_in(job.checkpoint, partial(fingerprint, target, **how)),
        watch=lambda epochs: job.bars.move(bar, epochs),
    )
    return Found(
        {name: value[None] for name, value in found.values.items()},
        {"lp": found.log_density[None]},
        {"gradient_evaluations": s.members * found.steps},
        {"training": xr.Dataset({"loss": (("member", "epoch"), found.losses)})},
    )


def first_values(target: Target, settings: Ensemble, seed: int) -> dict[str, np.ndarray]:
    """Return the start of training: constrained values (member, ...)."""
    with precision(settings.dtype):
        density = NetworkDensity.of(target)
        keys = keys_for(Purpose.MEMBER_START, seed, settings.members)
        draw = density.he_values if settings.init == "he" else density.prior_values
        values = jax.jit(jax.vmap(draw))(keys)
        return {name: np.asarray(value) for name, value in values.items()}
