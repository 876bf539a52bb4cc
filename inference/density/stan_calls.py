"""A Stan library's functions in JAX: compiled programs call them without Python, some at a time in one call.

`stan_calls.c` is what XLA calls; it is compiled once a machine, against the headers that jaxlib brings along. A
callback to Python takes hundreds of microseconds and Python's lock; such a call takes less than one.

Convention: points (..., size) of Stan's own unconstrained space, in double precision. Log densities have the Jacobian
and all constants in them. A point that the program rejects has log density -inf and a gradient of NaN.
"""

from __future__ import annotations

import ctypes
import hashlib
import platform
import subprocess
import weakref
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from onebasin.base.files.cache import make_user_cache
from onebasin.base.files.leftovers import working_folder
from onebasin.stan.home.errors import HomeBuildError
from onebasin.stan.home.toolchain import find_toolchain
from onebasin.stan.home.turn import turn

if TYPE_CHECKING:
    from onebasin.stan.library import StanLibrary

CALLS = ("density", "gradient", "product", "constrain", "unconstrain")
"""What `stan_calls.c` defines, each under `onebasin_` and its name."""
_FUNCTIONS = (
    "onebasin_log_densities",
    "onebasin_gradients",
    "bs_log_density_hessian_vector_product",
    "bs_param_constrain",
    "onebasin_unconstrain",
    "bs_rng_construct",
    "bs_rng_destruct",
    "bs_free_error_msg",
)

Point = Float[Array, "*lead param"]


class _Entry(ctypes.Structure):
    """What `Entry` is in `stan_calls.c`."""

    _fields_ = (
        ("model", ctypes.c_void_p),
        ("values", ctypes.c_int64),
        ("derived", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in _FUNCTIONS),
    )


class StanCalls:
    """The functions of one open library, for JAX to differentiate, vectorise and compile.

    Parameters
    ----------
    library : StanLibrary
        Of a program with its data; it stays open as long as this is there.
    """

    def __init__(self, library: StanLibrary) -> None:
        calls = _loaded()
        self.library = library
        self.counts = {derived: _count(library, derived) for derived in (False, True)}
        self._entries: dict[bool, np.int64] = {}
        for derived, count in self.counts.items():
            functions = [library.address(name) for name in _FUNCTIONS]
            like = _Entry(library.handle, count, int(derived), *functions)
            address = calls.onebasin_entry(ctypes.byref(like))
            weakref.finalize(self, calls.onebasin_close, address)
            self._entries[derived] = np.int64(address)
        self.log_density, self.log_density_gradient = self._differentiable()

    def constrain(self, point: Point, *, derived: bool) -> Float[Array, "*lead value"]:
        """Values of the parameters, or of all that the program declares after its data, as one vector.

        Random numbers of generated quantities follow from the point: the same point has the same.
        """
        shape = (*point.shape[:-1], self.counts[derived])
        return self._call("constrain", jax.ShapeDtypeStruct(shape, point.dtype), point, derived)

    def unconstrain(self, values: Float[Array, "*lead value"]) -> Point:
        """The point of values of the parameters; NaN where they are outside of their support."""
        shape = (*values.shape[:-1], self.library.dim)
        return self._call("unconstrain", jax.ShapeDtypeStruct(shape, values.dtype), values)

    def _call(
        self, name: str, results: Any, point: jax.Array, derived: bool = False, *more: Any
    ) -> Any:
        check_double(point)
        call = jax.ffi.ffi_call(f"onebasin_{name}", results, vmap_method="broadcast_all")
        return call(point, *more, entry=self._entries[derived])

    def _differentiable(self) -> tuple[Callable[[Point], Any], Callable[[Point], Any]]:
        """Log density (...), and the same with its gradient (..., param): one call where both are asked for."""

        @jax.custom_jvp
        def density(point: Point) -> jax.Array:
            like = jax.ShapeDtypeStruct(point.shape[:-1], point.dtype)
            return self._call("density", like, point)

        @jax.custom_jvp
        def with_gradient(point: Point) -> tuple[jax.Array, jax.Array]:
            like = jax.ShapeDtypeStruct(point.shape[:-1], point.dtype)
            slope = jax.ShapeDtypeStruct(point.shape, point.dtype)
            return tuple(self._call("gradient", (like, slope), point))

        @density.defjvp
        def _(points: Any, along: Any) -> Any:
            value, slope = with_gradient(*points)
            return value, jnp.sum(slope * along[0], axis=-1)

        @with_gradient.defjvp
        def _(points: Any, along: Any) -> Any:
            (point,), (direction,) = points, along
            value, slope = with_gradient(point)
            like = jax.ShapeDtypeStruct(point.shape, point.dtype)
            turned = self._call(
                "product", like, point, False, jnp.broadcast_to(direction, point.shape)
            )
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
        raise TypeError(
            "A Stan program's log density is computed in double precision, and JAX is in single here: use "
            "dtype='float64', or jax.config.update('jax_enable_x64', True) before arrays are made."
        )


def _count(library: StanLibrary, derived: bool) -> int:
    shapes = library.variables(include_tp=derived, include_gq=derived).values()
    return sum(int(np.prod(shape)) for shape in shapes)


@cache
def _loaded() -> ctypes.CDLL:
    """`stan_calls.c`, compiled, loaded and known to XLA; once a process."""
    calls = ctypes.CDLL(str(_compiled()))
    calls.onebasin_entry.restype = ctypes.c_void_p
    calls.onebasin_entry.argtypes = [ctypes.POINTER(_Entry)]
    calls.onebasin_close.argtypes = [ctypes.c_void_p]
    for name in CALLS:
        function = jax.ffi.pycapsule(getattr(calls, f"onebasin_{name}"))
        jax.ffi.register_ffi_target(f"onebasin_{name}", function, platform="cpu")
    return calls


def _compiled() -> Path:
    """Compile it, or take it from the user's cache."""
    source, headers = Path(__file__).with_suffix(".c"), Path(jax.ffi.include_dir())
    tools = find_toolchain()
    digest = hashlib.sha256(source.read_bytes())
    digest.update((headers / "xla/ffi/api/c_api.h").read_bytes())
    digest.update("\0".join([tools.compiler, tools.version, platform.machine()]).encode())
    made = make_user_cache("jax-calls") / f"{digest.hexdigest()[:32]}.so"
    with turn(made, lambda line: None):
        if not made.exists():
            _compile(tools.compiler, source, headers, made)
    return made


def _compile(compiler: str, source: Path, headers: Path, made: Path) -> None:
    """Compile it beside its place, then move it there.

    Raises
    ------
    HomeBuildError
        If the compiler refuses it.
    """
    with working_folder(made.stem, made.parent) as folder:
        part = folder / made.name
        words = [*compiler.split(), "-x", "c", "-O2", "-shared", "-fPIC", "-I", str(headers)]
        done = subprocess.run(
            [*words, str(source), "-o", str(part)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise HomeBuildError(
                f"`{compiler}` does not compile {source.name}, by which JAX calls Stan:\n{done.stderr.strip()}"
            )
        part.replace(made)
