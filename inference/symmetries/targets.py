"""Targets as the search sees them: a NumPyro model by JAX, a Stan program in this process."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

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
        return numpyro_searched(target), 0.0
    program = definition(target).path.read_text(encoding="utf-8", errors="replace")
    noise = SOLVER_NOISE if any(word in program for word in _SOLVERS) else 0.0
    return stan_searched(bound(target, engine), progress), noise


def numpyro_searched(target: Target) -> SearchedDensity:
    """A NumPyro model, in double precision whatever JAX is set to."""
    import jax

    from ..density.counted import in_blocks
    from ..density.numpyro import NumpyroValues

    with precision("float64"):
        values = NumpyroValues(target)
        density = values.density
        constrain = jax.jit(jax.vmap(density.constrain))
        slope = jax.jit(jax.value_and_grad(density.log_density))

    def in_batches(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def called(given: Any) -> Any:
            with precision("float64"):
                return in_blocks(function, given, size=BATCH)

        return called

    def gradient(vector: np.ndarray) -> tuple[float, np.ndarray]:
        with precision("float64"):
            value, by_vector = slope(np.asarray(vector, dtype=np.float64))
        return float(value), np.asarray(by_vector)

    shapes = {name: tuple(chart.event_shape) for name, chart in density.charts.items()}
    at = in_batches(constrain), in_batches(values.log_density)
    return SearchedDensity(shapes, density.size, *at, gradient)


def stan_searched(target: Target, progress: Callable[[str], None] | None = None) -> SearchedDensity:
    """A Stan program with its data.

    Tuples and complex numbers are refused: no permutation of axes is a symmetry of theirs in the house's words.
    """
    from onebasin.stan.library import open_library

    library = open_library(definition(target), progress=progress)
    shapes, names = library.variables(), library.names()
    odd = next((name for name in names if name.endswith((".real", ".imag")) or ":" in name), "")
    if odd or sum(math.prod(shape) for shape in shapes.values()) != len(names):
        raise ArgumentError(
            f"`target` {target.name!r} has the parameter {odd.split('.')[0].split(':')[0]}, a tuple or complex "
            "numbers, of which symmetries cannot be searched; declare real numbers."
        )

    def constrain(vectors: np.ndarray) -> dict[str, np.ndarray]:
        return library.unpack(library.constrain(vectors))

    def log_density(values: Mapping[str, np.ndarray]) -> np.ndarray:
        # What does not come back from the unconstrained space is outside the support.
        vectors = library.unconstrain(library.pack(values))
        inside = np.isfinite(vectors).all(axis=-1)
        found = np.full(len(vectors), -np.inf)
        if inside.any():
            vectors = vectors[inside]
            same = np.ones(len(vectors), dtype=bool)
            for name, value in constrain(vectors).items():
                axes, given = tuple(range(1, value.ndim)), np.asarray(values[name])[inside]
                slack = ROUND_TRIP * (1e-6 + np.abs(given).max(axis=axes, initial=0.0))
                same &= np.abs(value - given).max(axis=axes, initial=0.0) <= slack
            level = library.log_density(vectors, propto=False, jacobian=False)
            found[inside] = np.where(same, level, -np.inf)
        return found

    def gradient(vector: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = library.log_density_gradient(vector)
        return float(value), slope

    return SearchedDensity(shapes, library.dim, constrain, log_density, gradient)
