"""A NumPyro model as the search for symmetries sees it, evaluated by JAX."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from onebasin.base.precision import precision
from onebasin.models.target import Target

from ..density.numpyro import NumpyroValues

BATCH = 32
"""Points that JAX evaluates at once; fewer are filled up, so that it compiles once."""


class NumpyroSearched:
    """A NumPyro model, in double precision whatever JAX is set to.

    Parameters
    ----------
    target : Target
        With a NumPyro model.
    """

    def __init__(self, target: Target) -> None:
        with precision("float64"):
            self._values = NumpyroValues(target)
            density = self._values.density
            self._constrain = jax.jit(jax.vmap(density.constrain))
            self._gradient = jax.jit(jax.value_and_grad(density.log_density))
        self.dim: int = density.size
        self.shapes: Mapping[str, tuple[int, ...]] = {
            name: tuple(chart.event_shape) for name, chart in density.charts.items()
        }

    def constrain(self, vectors: Float[np.ndarray, "point dim"]) -> dict[str, np.ndarray]:
        """See `SearchedDensity`."""
        with precision("float64"):
            return _in_batches(self._constrain, vectors)

    def log_density(self, values: Mapping[str, np.ndarray]) -> Float[np.ndarray, " point"]:
        """See `SearchedDensity`."""
        with precision("float64"):
            found: np.ndarray = _in_batches(self._values.log_density, dict(values))
        return found

    def gradient(
        self, vector: Float[np.ndarray, " dim"]
    ) -> tuple[float, Float[np.ndarray, " dim"]] | None:
        """See `SearchedDensity`."""
        with precision("float64"):
            value, slope = self._gradient(jnp.asarray(vector, dtype=jnp.float64))
        return float(value), np.asarray(slope)


def _in_batches(function: Callable[[Any], Any], values: Any) -> Any:
    """Call a function of many points with `BATCH` of them at a time; the last are filled up with the first."""
    count = len(jax.tree.leaves(values)[0])
    pieces = []
    for at in range(0, count, BATCH):
        rows = np.arange(at, at + BATCH)
        rows[rows >= count] = 0
        piece = function(jax.tree.map(lambda v, r=rows: np.asarray(v)[r], values))
        pieces.append(jax.tree.map(np.asarray, piece))
    return jax.tree.map(lambda *parts: np.concatenate(parts)[:count], *pieces)
