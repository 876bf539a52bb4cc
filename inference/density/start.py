"""Starting points in the unconstrained space: at random, or at values that a user gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro  # noqa: F401 - whole, before a part of it
from jaxtyping import Array, Float
from numpyro.infer.initialization import init_to_uniform
from numpyro.infer.util import initialize_model

from onebasin.base.errors import ArgumentError, InferenceError

from .charts import Chart
from .numpyro import NumpyroDensity, require_numpyro
from .stan_vectors import StanVectors

TRIES = 100
"""Points that are tried for a start; Stan's own number."""


def random_starts(
    density: NumpyroDensity | StanVectors, keys: jax.Array, radius: float
) -> Float[Array, "start param"]:
    """Points with a finite log density and gradient, uniform within +-radius.

    Parameters
    ----------
    density : NumpyroDensity or StanVectors
        In the charts of NumPyro or of Stan themselves.
    keys : array of keys (start,)
        One a point.
    radius : float
        See above.

    Raises
    ------
    InferenceError
        If no such point is found.
    """
    if isinstance(density, StanVectors):
        return jnp.stack([_stan_start(density, key, radius) for key in keys])
    target = density.target
    try:
        info = initialize_model(
            keys, require_numpyro(target), init_strategy=init_to_uniform(radius=radius)
        )
    except RuntimeError as error:
        raise _no_start(target.name, str(error)) from error
    return jax.vmap(density.ravel)(info.param_info.z)


def _stan_start(density: StanVectors, key: jax.Array, radius: float) -> Float[Array, " param"]:
    """The first of several points whose log density and gradient are finite."""
    for number in range(TRIES):
        place = jax.random.fold_in(key, number)
        point = jax.random.uniform(place, (density.size,), minval=-radius, maxval=radius)
        value, slope = jax.value_and_grad(density.log_density)(point)
        if np.isfinite(value) and np.isfinite(slope).all():
            return point
    raise _no_start(density.target.name, f"{TRIES} points were tried")


def _no_start(name: str, reason: str) -> InferenceError:
    return InferenceError(
        f"No starting point with a finite log density was found for {name!r}; "
        f"check the data and the prior, or make `init_radius` smaller ({reason})."
    )


def given_start(
    density: NumpyroDensity | StanVectors, start: Mapping[str, Any]
) -> Float[Array, " param"]:
    """Take natural values that a user gives to the unconstrained space.

    Parameters
    ----------
    density : NumpyroDensity or StanVectors
        Of the target.
    start : mapping
        Value of every variable, with its shape; more names than those are refused.

    Returns
    -------
    array (param,)
        In the precision of the caller's context.

    Raises
    ------
    ValueError
        If a name is missing or unknown, a shape differs, or a value is not finite or not allowed for its variable.
    """
    check_names(start, density.names)
    if isinstance(density, StanVectors):
        return _stan_coordinates(density, start)
    return density.ravel({n: _coordinates(n, c, start[n]) for n, c in density.charts.items()})


def check_names(start: Mapping[str, Any], expected: tuple[str, ...]) -> None:
    """Refuse a start whose names are not those of the variables."""
    missing = [name for name in expected if name not in start]
    unknown = [name for name in start if name not in expected]
    if missing or unknown:
        faults = [f"lacks {', '.join(missing)}"] if missing else []
        faults += [f"has {', '.join(unknown)}, which the target does not"] if unknown else []
        raise ArgumentError(f"`start` {' and '.join(faults)}; give {', '.join(expected)}.")


def _stan_coordinates(density: StanVectors, start: Mapping[str, Any]) -> Float[Array, " param"]:
    given = {n: _shaped(n, chart.event_shape, start[n]) for n, chart in density.own.items()}
    vector = density.unconstrain(given)
    if not np.isfinite(vector).all():
        raise ArgumentError(
            "`start` gives a value that is not finite or does not satisfy its constraint in the program; a mean of "
            "constrained draws can lie outside, so project it first."
        )
    return vector


def _shaped(name: str, shape: tuple[int, ...], start: Any) -> np.ndarray:
    values = np.asarray(start, np.float64)
    if values.shape != shape:
        raise ArgumentError(
            f"`start` gives {name} the shape {values.shape}; the target's is {shape}."
        )
    return values


def _coordinates(name: str, chart: Chart, start: Any) -> jax.Array:
    values = _shaped(name, chart.event_shape, start)
    value = jnp.asarray(values, jnp.result_type(float))
    coordinates = chart.inverse(value)
    if not (jnp.all(chart.support(value)) and jnp.all(jnp.isfinite(coordinates))):
        raise ArgumentError(
            f"`start` gives {name} a value that is not finite or outside its support ({chart.support}); a mean of "
            "constrained draws can lie outside, so project it first."
        )
    return coordinates
