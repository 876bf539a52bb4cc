"""Minibatches: every epoch takes the observations in a new order, and leaves out the rest that fills no batch.

All orders follow from one key and the number of the epoch. Every observation is as likely as any other to be in a
batch, so that (observations / batch size) times a batch's sum is an unbiased estimate of the sum over all.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
from jaxtyping import Array, Int


@dataclass(frozen=True)
class Batches:
    """How observations are dealt into batches.

    Attributes
    ----------
    num_obs : int
        Observations.
    size : int
        Observations in a batch, at most `num_obs`.
    """

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
