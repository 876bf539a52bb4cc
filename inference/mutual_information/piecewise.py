"""A function of every draw, for as many draws at a time as memory should hold."""

from __future__ import annotations

import math
from collections.abc import Callable

import jax

ENTRIES = 2**22
"""Numbers of one array that are held at a time: 32 MB in double precision, times some temporaries."""


def by_draw[T](function: Callable[..., T], *arrays: jax.Array) -> T:
    """Map over the leading axis that all arrays share; the last array is the one that counts."""
    draws, *shape = arrays[-1].shape
    together = max(1, ENTRIES // math.prod(shape))
    if draws <= together:
        return jax.vmap(function)(*arrays)
    return jax.lax.map(lambda each: function(*each), arrays, batch_size=together)
