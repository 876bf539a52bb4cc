"""Targets as the search sees them: a NumPyro model by JAX, a Stan program in this process."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from onebasin.base.errors import ArgumentError
from onebasin.base.precision import precision
from onebasin.models.target import Target
from onebasin.stan.program import definition

from ..contracts.engines import bound, defined_by
from .measuring import SearchedDensity

BATCH = 32
"""Points that JAX evaluates at once; fewer are filled up, so that it compiles once."""
ROUND_TRIP = 1e-6
"""Relative change of a value taken to the unconstrained space and back, up to which it is inside its support."""
_SOLVERS = ("ode_", "integrate_ode", "dae(", "algebra_solver", "solve_newton", "solve_powell")
SOLVER_NOISE = 1e-7
"""Relative error of the log density of a program that solves equations numerically."""


def searched(
    target: Target, engine: str | None, progress: Callable[[str], None] | None
) -> tuple[SearchedDensity, float]:
    """A target's log density, and its relative error beyond rounding."""
    engine = defined_by(target, engine)
    if engine == "numpyro":
        return NumpyroSearched(target), 0.0
    program = definition(target).path.read_text(encoding="utf-8", errors="replace")
    noise = SOLVER_NOISE if any(word in program for word in _SOLVERS) else 0.0
    return StanSearched(bound(target, engine), progress), noise


class NumpyroSearched:
    """A NumPyro model, in double precision whatever JAX is set to."""

    def __init__(self, target: Target) -> None:
        import jax

        from ..density.numpyro import NumpyroValues

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
            value, slope = self._gradient(np.asarray(vector, dtype=np.float64))
        return float(value), np.asarray(slope)


class StanSearched:
    """A Stan program with its data."""

    def __init__(self, target: Target, progress: Callable[[str], None] | None = None) -> None:
        from onebasin.stan.library import open_library

        self._library = open_library(definition(target), progress=progress)
        self.dim: int = self._library.dim
        self.shapes: Mapping[str, tuple[int, ...]] = self._library.variables()
        self._check_real(target)

    def constrain(self, vectors: Float[np.ndarray, "point dim"]) -> dict[str, np.ndarray]:
        """See `SearchedDensity`."""
        return self._library.unpack(self._library.constrain(vectors))

    def log_density(self, values: Mapping[str, np.ndarray]) -> Float[np.ndarray, " point"]:
        """See `SearchedDensity`; what does not come back from the unconstrained space is outside the support."""
        packed = self._library.pack(values)
        vectors = self._library.unconstrain(packed)
        inside = np.isfinite(vectors).all(axis=-1)
        found = np.full(len(vectors), -np.inf)
        if inside.any():
            vectors = vectors[inside]
            there = self._library.unpack(self._library.constrain(vectors))
            same = np.ones(len(vectors), dtype=bool)
            for name, value in there.items():
                axes, given = tuple(range(1, value.ndim)), np.asarray(values[name])[inside]
                slack = ROUND_TRIP * (1e-6 + np.abs(given).max(axis=axes, initial=0.0))
                same &= np.abs(value - given).max(axis=axes, initial=0.0) <= slack
            level = self._library.log_density(vectors, propto=False, jacobian=False)
            found[inside] = np.where(same, level, -np.inf)
        return found

    def gradient(
        self, vector: Float[np.ndarray, " dim"]
    ) -> tuple[float, Float[np.ndarray, " dim"]] | None:
        """See `SearchedDensity`."""
        value, slope = self._library.log_density_gradient(vector)
        return float(value), slope

    def _check_real(self, target: Target) -> None:
        """Refuse tuples and complex numbers: no permutation of axes is a symmetry of theirs in the house's words."""
        entries = sum(math.prod(shape) for shape in self.shapes.values())
        names = self._library.names()
        odd = next((name for name in names if name.endswith((".real", ".imag")) or ":" in name), "")
        if odd or entries != len(names):
            raise ArgumentError(
                f"`target` {target.name!r} has the parameter {odd.split('.')[0].split(':')[0]}, a tuple or complex "
                "numbers, of which symmetries cannot be searched; declare real numbers."
            )


def _in_batches(function: Callable[[Any], Any], values: Any) -> Any:
    """Call a function of many points with `BATCH` of them at a time; the last are filled up with the first."""
    import jax

    count = len(jax.tree.leaves(values)[0])
    pieces = []
    for at in range(0, count, BATCH):
        rows = np.arange(at, at + BATCH)
        rows[rows >= count] = 0
        piece = function(jax.tree.map(lambda v, r=rows: np.asarray(v)[r], values))
        pieces.append(jax.tree.map(np.asarray, piece))
    return jax.tree.map(lambda *parts: np.concatenate(parts)[:count], *pieces)
