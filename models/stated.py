"""A log density of named parameters, stated as a NumPyro model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from onebasin.base.errors import ArgumentError
from onebasin.base.precision import precision

Site = tuple[Any, tuple[int, ...]]
"""A constraint of NumPyro, and the shape of the value."""


def stated_by(
    density: Callable[[dict[str, Any]], Any],
    sites: Mapping[str, Site],
    computed: Callable[[dict[str, Any]], Mapping[str, Any]] = lambda values: {},
) -> Callable[[], None]:
    """State a log density over values as a NumPyro model; `computed` gives what follows from the parameters."""
    import jax
    import numpyro
    from numpyro.distributions import ImproperUniform

    # As precise as the methods are: JAX may keep an array of the function as it is first traced.
    given = {n: jax.ShapeDtypeStruct(shape, "float64") for n, (_, shape) in sites.items()}
    try:
        with precision("float64"):
            out = jax.eval_shape(density, given)
    except Exception as error:  # whatever the function throws
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ArgumentError(
            f"`model` cannot be traced by JAX at parameters of these shapes: {reason} Let it compute with jax.numpy."
        ) from error
    if getattr(out, "shape", None) != ():
        raise ArgumentError(
            f"`model` must return the log density, one number; it returns {out}: sum over its terms."
        )

    def model() -> None:
        values = {
            name: numpyro.sample(name, ImproperUniform(constraint, (), event_shape=shape))
            for name, (constraint, shape) in sites.items()
        }
        numpyro.factor("log_density", density(values))
        for name, value in computed(values).items():
            numpyro.deterministic(name, value)

    return model
