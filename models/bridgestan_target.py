"""Models of BridgeStan as densities in JAX, by calls back to Python.

A compiled library does not tell the supports of its parameters, so that the target's parameter is the vector of
unconstrained ones; the program's own variables are computed of it. `ob.stan_program` of the program's text gives the
variables themselves, and is faster.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from .numpyro_target import stated_by

UNCONSTRAINED = "unconstrained"  # Name of the parameter.


def definition_of(model: Any) -> Callable[[], None]:
    """State a `bridgestan.StanModel` as a NumPyro model."""
    import jax
    import jax.numpy as jnp
    import numpyro

    size = model.param_unc_num()
    shapes: dict[str, tuple[int, ...]] = {}
    for entry in model.param_names(include_tp=True):  # such as theta.2.1, the largest index last
        variable, *places = entry.split(".")
        shapes[variable] = tuple(map(int, places))

    def of_gradient(point: Any) -> tuple[np.ndarray, np.ndarray]:
        try:
            value, gradient = model.log_density_gradient(np.array(point, np.float64))
        except RuntimeError:  # the program rejects this point
            value, gradient = -np.inf, np.zeros(size)
        return np.asarray(value, point.dtype), np.asarray(gradient, point.dtype)

    def called(point: jax.Array) -> tuple[jax.Array, jax.Array]:
        like = (jax.ShapeDtypeStruct((), point.dtype), jax.ShapeDtypeStruct((size,), point.dtype))
        return jax.pure_callback(of_gradient, like, point, vmap_method="sequential")

    @jax.custom_vjp
    def density(point: jax.Array) -> jax.Array:
        return called(point)[0]

    density.defvjp(called, lambda gradient, above: (above * gradient,))

    def constrained(point: Any) -> np.ndarray:
        values = model.param_constrain(np.array(point, np.float64), include_tp=True)
        return np.asarray(values, point.dtype)

    def computed(values: dict[str, Any]) -> dict[str, Any]:
        point = jax.lax.stop_gradient(values[UNCONSTRAINED])  # callbacks have no gradient
        sizes = [int(np.prod(shape)) for shape in shapes.values()]
        like = jax.ShapeDtypeStruct((sum(sizes),), point.dtype)
        flat = jax.pure_callback(constrained, like, point, vmap_method="sequential")
        parts = jnp.split(flat, np.cumsum(sizes)[:-1])
        # Stan counts entries with the first index fastest.
        return {
            name: jnp.reshape(part, shape[::-1]).transpose()
            for (name, shape), part in zip(shapes.items(), parts, strict=True)
        }

    sites = {UNCONSTRAINED: (numpyro.distributions.constraints.real, (size,))}
    return stated_by(lambda values: density(values[UNCONSTRAINED]), sites, computed)
