"""The log density of a Stan program over vectors, for JAX, computed by its library in this process.

The interface is that of a NumPyro model's density (`numpyro.NumpyroDensity`). A vector has the coordinates of the
parameters in the program's order. They are Stan's, except for simplexes with exchangeable weights, which use
`charts.Softmax`. Stan does not separate the prior from the likelihood: `log_likelihood` is the whole log density, and
`log_prior` is 0.

Compiled programs call the library without Python, with several points per call, because XLA calls `stan/native/calls.c`
directly. A callback to Python would need Python's lock and take hundreds of microseconds; such a call takes less than
one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from onebasin.base.errors import ArgumentError, ArgumentTypeError
from onebasin.models.target import Target
from onebasin.stan.interfaces import Entry, keep, load_for_xla

from ..contracts.density import Rows, Terms, Values, Vector
from .charts import Chart, Coordinates, StanChart, charts_of
from .numpyro import NumpyroDensity
from .start import TRIES, check_names, no_start, shaped

if TYPE_CHECKING:
    from onebasin.stan.library import StanLibrary


CALLS = ("density", "gradient", "product", "constrain", "unconstrain")
"""Names of the custom calls, without the prefix `onebasin_`."""

Point = Float[Array, "*lead param"]


class StanCalls:
    """JAX functions that call a program's library and keep it open."""

    def __init__(self, library: StanLibrary) -> None:
        _register()
        self.library = library
        values = {d: library.entry("values", d, d) for d in (False, True)}
        self.counts = {derived: entry.values for derived, entry in values.items()}
        self._values = {derived: self._kept(entry) for derived, entry in values.items()}
        self._density = self._kept(library.entry("density", False, True))
        self.log_density, self.log_density_gradient = self._differentiable()

    def constrain(self, point: Point, *, derived: bool) -> Float[Array, "*lead value"]:
        """Return one vector of the parameters or, if `derived`, of everything that the program declares after its data.

        The random numbers of generated quantities depend only on the point.
        """
        shape = (*point.shape[:-1], self.counts[derived])
        results = jax.ShapeDtypeStruct(shape, point.dtype)
        return _call("constrain", self._values[derived], results, point)

    def unconstrain(self, values: Float[Array, "*lead value"]) -> Point:
        """Return the unconstrained point of these parameter values; NaN outside their support."""
        shape = (*values.shape[:-1], self.library.dim)
        results = jax.ShapeDtypeStruct(shape, values.dtype)
        return _call("unconstrain", self._values[False], results, values)

    def _kept(self, entry: Entry) -> np.int64:
        return np.int64(keep(load_for_xla(), entry, self))

    def _differentiable(self) -> tuple[Callable[[Point], Any], Callable[[Point], Any]]:
        """Functions for the log density (...), and for it with its gradient (..., param), in a single call."""

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
    """Reject single precision, because Stan computes only in double precision."""
    if (jnp.result_type(float) if array is None else array.dtype) != np.float64:
        raise ArgumentTypeError(
            "The log density of a Stan program needs double precision, but JAX uses single precision. Use "
            "dtype='float64', or call jax.config.update('jax_enable_x64', True) before you create arrays."
        )


def _call(name: str, entry: np.int64, results: Any, *arrays: jax.Array) -> Any:
    check_double(arrays[0])
    call = jax.ffi.ffi_call(f"onebasin_{name}", results, vmap_method="broadcast_all")
    return call(*arrays, entry=entry)


@cache
def _register() -> None:
    """Register the calls with XLA, once per process."""
    calls = load_for_xla()
    for name in CALLS:
        function = jax.ffi.pycapsule(getattr(calls, f"onebasin_xla_{name}"))
        jax.ffi.register_ffi_target(f"onebasin_{name}", function, platform="cpu")


@dataclass(frozen=True, eq=False)
class StanVectors(Coordinates):
    """The density of a target from its Stan program, constructed by `of`."""

    target: Target
    calls: StanCalls
    own: Mapping[str, StanChart]  # Stan's chart of each parameter.
    charts: Mapping[str, Chart | StanChart]  # The charts of vectors.

    @classmethod
    def of(cls, target: Target, progress: Callable[[str], None] | None = None) -> StanVectors:
        """Return the density of a target."""
        from onebasin.stan.library import open_library
        from onebasin.stan.program import definition
        from onebasin.stan.run import check_variables

        program = definition(target)
        check_double()
        if jax.default_backend() != "cpu":
            raise ArgumentError(
                f"The Stan program of `target` {target.name!r} runs only on a CPU, but JAX uses the backend "
                f"{jax.default_backend()!r}. Set the environment variable JAX_PLATFORMS to cpu."
            )
        library = open_library(program, progress=progress)
        check_variables(target, library.names(include_tp=True, include_gq=True))
        shapes = library.variables()
        if not library.dim:
            raise ArgumentError(
                f"The Stan program of `target` {target.name!r} has no parameters, so there is nothing to infer. Give "
                "a program with at least one parameter."
            )
        calls = StanCalls(library)

        def constrain(vector: np.ndarray) -> Mapping[str, np.ndarray]:
            return _split(np.asarray(calls.constrain(jnp.asarray(vector), derived=False)), shapes)

        own = charts_of(library.unconstrained_names, shapes, constrain)
        return cls(target, calls, own, own)

    def constrain(self, vector: Vector) -> Values:
        """Return the value of every parameter."""
        return self._values(vector, derived=False)

    def quantities(self, coordinates: Values) -> Values:
        """Return the value of every parameter and derived quantity."""
        return self._values(self.ravel(coordinates), derived=True)

    def unconstrain(self, values: Mapping[str, Any]) -> Vector:
        """Return the vector of the given values; NaN outside the support."""
        given = {name: jnp.asarray(values[name]) for name in self.own}
        flat = jnp.concatenate([jnp.ravel(value.T) for value in given.values()])
        point = self.calls.unconstrain(flat)
        coordinates = {
            name: point[chart.places]
            if isinstance(chart, StanChart)
            else chart.inverse(given[name])
            for name, chart in self.charts.items()
        }
        return self.ravel(coordinates)

    def log_density(self, vector: Vector) -> Float[Array, ""]:
        """Return the log prior plus log likelihood of all data, with all constants; -inf if the program rejects."""
        point, correction = self._in_stan(vector)
        density: jax.Array = self.calls.log_density(point)
        return density if correction is None else density + correction

    def log_density_at(self, coordinates: Values) -> Float[Array, ""]:
        """Return the log density at the coordinates of every parameter."""
        return self.log_density(self.ravel(coordinates))

    def log_prior(self, vector: Vector) -> Float[Array, ""]:
        """Return zero, because `log_likelihood` is the whole log density."""
        return jnp.zeros((), vector.dtype)

    def log_likelihood(self, vector: Vector, rows: Rows = None) -> Terms:
        """Return the log density as one term."""
        if rows is not None:
            raise ArgumentError(
                "`rows` selects observations, but onebasin cannot select observations of the Stan program "
                f"{self.target.name!r}. Use `rows=None` for all data."
            )
        return self.log_density(vector)[None]

    def random_starts(self, keys: jax.Array, radius: float) -> Float[Array, "start param"]:
        """Find one point per key with a finite log density and gradient, as in `NumpyroDensity`."""

        def one(key: jax.Array) -> Vector:
            for number in range(TRIES):
                place = jax.random.fold_in(key, number)
                point = jax.random.uniform(place, (self.size,), minval=-radius, maxval=radius)
                value, slope = jax.value_and_grad(self.log_density)(point)
                if np.isfinite(value) and np.isfinite(slope).all():
                    return point
            raise no_start(self.target.name, f"{TRIES} points were tried")

        return jnp.stack([one(key) for key in keys])

    def given_start(self, start: Mapping[str, Any]) -> Vector:
        """Convert constrained values given by the user to a vector, as in `NumpyroDensity`."""
        start = check_names(start, self.names)
        given = {n: shaped(n, chart.event_shape, start[n]) for n, chart in self.own.items()}
        vector = self.unconstrain(given)
        if not np.isfinite(vector).all():
            raise ArgumentError(
                "A value in `start` is not finite or violates a constraint of the program. Give finite values that "
                "satisfy the constraints. If `start` is a mean of draws, project it onto the constrained space "
                "first."
            )
        return vector

    def _values(self, vector: Vector, *, derived: bool) -> Values:
        flat = self.calls.constrain(self._in_stan(vector)[0], derived=derived)
        library = self.calls.library
        return _split(flat, library.variables(include_tp=derived, include_gq=derived))

    def _in_stan(self, vector: Vector) -> tuple[jax.Array, jax.Array | None]:
        """Return Stan's vector and, if charts differ, the difference between this log density and Stan's."""
        parts, corrections = [], []
        coordinates = self.unravel(vector)
        for name, chart in self.charts.items():
            z, own = coordinates[name], self.own[name]
            if not isinstance(chart, StanChart):
                assert own.simplex is not None, "only simplexes use another chart"
                value = chart.forward(z)
                y = own.simplex.inverse(value)
                extra = chart.log_jacobian(z, value)
                corrections.append(extra - own.simplex.log_jacobian(y, value))
                z = y
            parts.append(jnp.ravel(z))
        order = np.concatenate([own.places.ravel() for own in self.own.values()])
        if not corrections and np.array_equal(order, np.arange(len(order))):
            return vector, None
        point = jnp.concatenate(parts)[np.argsort(order)]
        return point, sum(corrections, jnp.zeros((), vector.dtype)) if corrections else None


Density = NumpyroDensity | StanVectors
"""The log density of a target over vectors, from either of its definitions."""


def _split(flat: Any, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Any]:
    """Split the numbers of all variables into arrays; Stan stores each array column by column."""
    values, first = {}, 0
    for name, shape in shapes.items():
        size = int(np.prod(shape))
        values[name] = flat[first : first + size].reshape(shape[::-1]).T
        first += size
    return values
