"""Minibatches: every epoch takes the observations in a new order, and leaves out the rest that fills no batch.

All orders follow from one key and the number of the epoch. Every observation is as likely as any other to be in a
batch, so that (observations / batch size) times a batch's sum is an unbiased estimate of the sum over all.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
from jaxtyping import Array, Int

from onebasin.base.errors import ArgumentError
from onebasin.models.networks.bayesian import NetworkTarget
from onebasin.models.target import Target


@dataclass(frozen=True)
class Batches:
    """How `num_obs` observations are dealt into batches of `size`, at most `num_obs`."""

    num_obs: int
    size: int

    @property
    def per_epoch(self) -> int:
        """Batches in an epoch."""
        return self.num_obs // self.size

    @property
    def weight(self) -> float:
        """What a batch's sum is multiplied by."""
        return self.num_obs / self.size

    def epoch(self, rng_key: jax.Array, epoch: Array | int) -> Int[Array, "batch obs"]:
        """Rows of all batches of an epoch."""
        order = jax.random.permutation(jax.random.fold_in(rng_key, epoch), self.num_obs)
        return order[: self.per_epoch * self.size].reshape(self.per_epoch, self.size)


def check_batches(target: Target, batch_size: int | None) -> None:
    """Refuse batches of a target that is no network, and a batch larger than the data."""
    if batch_size is None:
        return
    if not isinstance(target, NetworkTarget):
        raise ArgumentError(
            f"`batch_size` is {batch_size}, but the target {target.name!r} is no network, and of other models it is "
            "not known which part of the density belongs to which observation; use batch_size=None."
        )
    if batch_size > (num_obs := len(target.x)):
        raise ArgumentError(
            f"`batch_size` is {batch_size}, but the target has {num_obs} observations; give at most {num_obs}, "
            "or None for all of them."
        )
