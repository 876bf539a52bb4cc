"""Derive all random keys of a method from its seed, a purpose, and the number of a chain, member or fit."""

from __future__ import annotations

from enum import IntEnum
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np


class Purpose(IntEnum):
    """The purposes of keys; different purposes have different keys."""

    CHAIN_START = 0
    CHAIN = 1
    POINT = 2
    ADVI_BATCHES = 3
    TRAINING_BATCHES = 4
    MEMBER_START = 5
    FIT_STEPS = 6
    FIT_BATCHES = 7
    FIT_EVALUATIONS = 8
    FIT_START = 9
    FIT_DRAWS = 10
    OPTIMUM_START = 11
    LAPLACE_DRAWS = 12
    PREDICTIVE = 13
    MIXTURE_GAP = 14
    MODE_START = 15
    MODE_PILOT = 16
    MODE_CHAIN = 17
    MODE_WEIGHTS = 18
    FIXED_DRAWS = 19
    IMPORTANCE_WEIGHTS = 20
    FIT_OF_CHAINS = 21
    PRIOR = 22


def keys_for(purpose: Purpose, seed: int | jax.Array, count: int) -> jax.Array:
    """Return a key for each number below `count`; the keys do not depend on `count`."""
    root = jax.random.fold_in(jax.random.key(seed), int(purpose))
    return jax.vmap(partial(jax.random.fold_in, root))(jnp.arange(count))


@jax.jit
def keys_at(keys: jax.Array, rows: np.ndarray) -> jax.Array:
    """Return the keys at the given rows."""
    return keys[rows]


def key_for(purpose: Purpose, seed: int | jax.Array) -> jax.Array:
    """Return the key of number 0."""
    return keys_for(purpose, seed, 1)[0]
