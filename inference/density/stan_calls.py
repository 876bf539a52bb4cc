"""A Stan library's functions in JAX: compiled programs call them without Python, some at a time in one call.

XLA calls `stan/native/calls.c`. A callback to Python takes hundreds of microseconds and Python's lock; such a call
takes less than one.

Convention: points (..., size) of Stan's own unconstrained space, in double precision. Log densities have the Jacobian
and all constants in them. A point that the program rejects has log density -inf and a gradient of NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from onebasin.base.errors import ArgumentTypeError
from onebasin.stan.native.library import Entry, keep, load_for_xla

if TYPE_CHECKING:
    from onebasin.stan.library import StanLibrary

CALLS = ("density", "gradient", "product", "constrain", "unconstrain")
"""The custom calls, each named `onebasin_` and this."""

Point = Float[Array, "*lead param"]


class StanCalls:
    """The functions of one open library, for JAX to differentiate, vectorise and compile.

    Parameters
    ----------
    library : StanLibrary
        Of a program with its data; it stays open as long as this is there.
    """

    def __init__(self, library: StanLibrary) -> None:
        _register()
        self.library = library
        values = {d: library.values_entry(include_tp=d, include_gq=d) for d in (False, True)}
        self.counts = {derived: entry.values for derived, entry in values.items()}
        self._values = {derived: self._kept(entry) for derived, entry in values.items()}
        self._density = self._kept(library.density_entry(propto=False, jacobian=True))
        self.log_density, self.log_density_gradient = self._differentiable()

    def constrain(self, point: Point, *, derived: bool) -> Float[Array, "*lead value"]:
        """Values of the parameters, or of all that the program declares after its data, as one vector.

        Random numbers of generated quantities follow from the point: the same point has the same.
        """
        shape = (*point.shape[:-1], self.counts[derived])
        results = jax.ShapeDtypeStruct(shape, point.dtype)
        return _call("constrain", self._values[derived], results, point)

    def unconstrain(self, values: Float[Array, "*lead value"]) -> Point:
        """The point of values of the parameters; NaN where they are outside of their support."""
        shape = (*values.shape[:-1], self.library.dim)
        results = jax.ShapeDtypeStruct(shape, values.dtype)
        return _call("unconstrain", self._values[False], results, values)

    def _kept(self, entry: Entry) -> np.int64:
        return np.int64(keep(load_for_xla(), entry, self))

    def _differentiable(self) -> tuple[Callable[[Point], Any], Callable[[Point], Any]]:
        """Log density (...), and the same with its gradient (..., param): one call where both are asked for."""

        @jax.custom_jvp
        def density(point: Point) -> jax.Array:
            like = jax.ShapeDtypeStruct(point.shape[:-1], point.dtype)
            return _call("density", self._density, like, point)

        @jax.custom_jvp
        def with_gradient(point: Point) -> tuple[jax.Array, jax.Array]:
            like = jax.ShapeDtypeStruct(point.shape[:-1], point.dtype)
            slope = jax.ShapeDtypeStruct(point.shape, point.dtype)
            return tuple(_call("gradient", self._density, (like, slope), point))

        @density.defjvp
        def _(points: Any, along: Any) -> Any:
            value, slope = with_gradient(*points)
            return value, jnp.sum(slope * along[0], axis=-1)

        @with_gradient.defjvp
        def _(points: Any, directions: Any) -> Any:
            (point,), (direction,) = points, directions
            value, slope = with_gradient(point)
            like = jax.ShapeDtypeStruct(point.shape, point.dtype)
            along = jnp.broadcast_to(direction, point.shape)
            turned = _call("product", self._density, like, point, along)
            return (value, slope), (jnp.sum(slope * direction, axis=-1), turned)

        return density, with_gradient


def check_double(array: jax.Array | None = None) -> None:
    """Refuse single precision, in which a Stan program has no log density.

    Raises
    ------
    TypeError
        If JAX is in single precision here, or the array is.
    """
    if (jnp.result_type(float) if array is None else array.dtype) != np.float64:
        raise ArgumentTypeError(
            "A Stan program's log density is computed in double precision, and JAX is in single here: use "
            "dtype='float64', or jax.config.update('jax_enable_x64', True) before arrays are made."
        )


def _call(name: str, entry: np.int64, results: Any, *arrays: jax.Array) -> Any:
    check_double(arrays[0])
    call = jax.ffi.ffi_call(f"onebasin_{name}", results, vmap_method="broadcast_all")
    return call(*arrays, entry=entry)


@cache
def _register() -> None:
    """Tell XLA where the calls are; once a process."""
    calls = load_for_xla()
    for name in CALLS:
        function = jax.ffi.pycapsule(getattr(calls, f"onebasin_xla_{name}"))
        jax.ffi.register_ffi_target(f"onebasin_{name}", function, platform="cpu")
