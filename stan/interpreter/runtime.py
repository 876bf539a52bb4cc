"""The library of the package stanli, by ctypes: its functions, the layout of their options, and its version.

This module needs the standard library alone: the driver's process starts in a few hundredths of a second. Layouts are
those of `capi.h` at ABI 2; `load` refuses a library whose ABI or whose defaults differ, since a wrong offset is silent.
"""

from __future__ import annotations

import ctypes
import hashlib
import sys
from ctypes import (
    POINTER,
    Structure,
    byref,
    c_char_p,
    c_double,
    c_int,
    c_int64,
    c_size_t,
    c_uint32,
    c_void_p,
)
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from onebasin.base.errors import OnebasinError

PACKAGE = "stanli"
ABI = 2
FIRST, BEYOND = (0, 24), (0, 25)
"""The versions whose parity with CmdStan is recorded; pyproject.toml allows the same."""
_FILES = {"darwin": "libstanli.dylib", "win32": "stanli.dll"}


class InterpreterMissing(OnebasinError):
    """The interpreter is not installed, cannot be loaded, or is of a version that was not compared with CmdStan."""


class ModelOptions(Structure):
    """Options of a model's construction."""

    _fields_ = (("seed", c_uint32), ("threads_per_chain", c_int), ("fast_math", c_int))


class SampleOptions(Structure):
    """Options of NUTS."""

    _fields_ = (
        ("seed", c_uint32),
        ("chains", c_int),
        ("chain_id", c_int),
        ("warmup", c_int),
        ("samples", c_int),
        ("thin", c_int),
        ("delta", c_double),
        ("max_depth", c_int),
        ("save_warmup", c_int),
        ("init_radius", c_double),
        ("inits", POINTER(c_double)),
        ("num_threads", c_int),
    )


class MetricOptions(Structure):
    """Metric and step size of NUTS, before and after the warmup."""

    _fields_ = (
        ("metric", c_int),
        ("inv_metric", POINTER(c_double)),
        ("step_size", c_double),
        ("adapt_engaged", c_int),
        ("adapted_step_size", POINTER(c_double)),
        ("adapted_inv_metric", POINTER(c_double)),
    )


class SampleReport(Structure):
    """Times and problems of a chain."""

    _fields_ = (
        ("warmup_seconds", c_double),
        ("sampling_seconds", c_double),
        ("n_divergent", c_int64),
        ("n_max_treedepth", c_int64),
    )


class FixedOptions(Structure):
    """Options of draws that do not move."""

    _fields_ = (
        ("seed", c_uint32),
        ("chains", c_int),
        ("chain_id", c_int),
        ("samples", c_int),
        ("thin", c_int),
        ("init_radius", c_double),
        ("inits", POINTER(c_double)),
        ("refresh", c_int),
    )


class OptimizeOptions(Structure):
    """Options of L-BFGS."""

    _fields_ = (
        ("seed", c_uint32),
        ("chain_id", c_int),
        ("iter", c_int),
        ("jacobian", c_int),
        *((name, c_double) for name in ("init_alpha", "tol_obj", "tol_rel_obj", "tol_grad")),
        *((name, c_double) for name in ("tol_rel_grad", "tol_param")),
        ("history_size", c_int),
        ("init_radius", c_double),
        ("init", POINTER(c_double)),
    )


class LaplaceOptions(Structure):
    """Options of Laplace's approximation."""

    _fields_ = (
        ("seed", c_uint32),
        *((name, c_int) for name in ("draws", "jacobian", "calculate_lp", "refresh")),
    )


class PathfinderOptions(Structure):
    """Options of Pathfinder."""

    _fields_ = (
        ("seed", c_uint32),
        *((name, c_int) for name in ("chain_id", "num_paths", "num_draws", "num_psis_draws")),
        *((name, c_int) for name in ("num_elbo_draws", "max_lbfgs_iters", "history_size")),
        *((name, c_double) for name in ("init_alpha", "tol_obj", "tol_rel_obj", "tol_grad")),
        *((name, c_double) for name in ("tol_rel_grad", "tol_param", "init_radius")),
        ("inits", POINTER(c_double)),
        *((name, c_int) for name in ("psis_resample", "calculate_lp", "refresh")),
    )


class VariationalOptions(Structure):
    """Options of ADVI."""

    _fields_ = (
        ("seed", c_uint32),
        *((name, c_int) for name in ("chain_id", "algorithm", "iter", "grad_samples")),
        ("elbo_samples", c_int),
        ("eta", c_double),
        ("adapt_engaged", c_int),
        ("adapt_iter", c_int),
        ("tol_rel_obj", c_double),
        ("eval_elbo", c_int),
        ("output_samples", c_int),
        ("init_radius", c_double),
        ("init", POINTER(c_double)),
    )


class Message:
    """A place where a function of the library leaves its words."""

    SIZE = 1 << 16

    def __init__(self) -> None:
        self._buffer = ctypes.create_string_buffer(self.SIZE)
        self.arguments = (self._buffer, c_size_t(self.SIZE))
        """The function's last two arguments."""

    @property
    def text(self) -> str:
        """The words."""
        return self._buffer.value.decode(errors="replace")


OPTIONS: dict[str, tuple[type[Structure], dict[str, float]]] = {
    "model": (ModelOptions, {"threads_per_chain": 1}),
    "sample": (SampleOptions, {"warmup": 1000, "delta": 0.8, "max_depth": 10, "init_radius": 2.0}),
    "metric": (MetricOptions, {"metric": 1, "step_size": 1.0, "adapt_engaged": 1}),
    "fixed_param": (FixedOptions, {"chains": 4, "samples": 1000, "thin": 1, "init_radius": 2.0}),
    "optimize": (OptimizeOptions, {"iter": 2000, "tol_rel_obj": 1e4, "history_size": 5}),
    "laplace": (LaplaceOptions, {"draws": 1000, "jacobian": 1, "calculate_lp": 1}),
    "pathfinder": (
        PathfinderOptions,
        {"num_draws": 1000, "num_elbo_draws": 25, "init_radius": 2.0, "psis_resample": 1},
    ),
    "variational": (
        VariationalOptions,
        {"iter": 10000, "eta": 1.0, "adapt_iter": 50, "tol_rel_obj": 0.01, "init_radius": 2.0},
    ),
}
"""Options by name, with some of the defaults that the library fills in; they are CmdStan's."""

PROGRESS = ctypes.CFUNCTYPE(None, ctypes.c_int32, c_int64, c_int64, ctypes.c_int32, c_void_p)
LOG = ctypes.CFUNCTYPE(None, ctypes.c_int32, c_char_p, c_void_p)

_POINTERS = (
    "stanli_model_new_with_opts",
    "stanli_stan_to_mir_with_opts",
    "bs_model_construct",
)
_COUNTS = ("stanli_n_unconstrained", "stanli_n_constrained", "stanli_wa_n_columns")
_WORDS = (
    "stanli_build_id",
    "stanli_constrained_name",
    "stanli_wa_column_name",
    "stanli_sampler_column_name",
    "stanli_warnings",
    "bs_param_names",
)


def location() -> Path | None:
    """Find the library's file without importing its package; None where it is not installed."""
    try:
        spec = find_spec(PACKAGE)
    except ValueError:
        return None
    if spec is None or not spec.submodule_search_locations:
        return None
    file = (
        Path(spec.submodule_search_locations[0]) / "_bin" / _FILES.get(sys.platform, "libstanli.so")
    )
    return file if file.is_file() else None


def installed_version() -> str:
    """Return the version of the installed package; refuse what is not installed."""
    try:
        return version(PACKAGE)
    except PackageNotFoundError:
        raise InterpreterMissing(
            "stanli, which interprets Stan programs, is not installed; install it with `pip install stanli`."
        ) from None


@cache
def load() -> ctypes.CDLL:
    """Load the library, once a process; refuse one of another version or layout than this module."""
    found = installed_version()
    numbers = tuple(int(part) for part in found.split(".")[:2] if part.isdigit())
    allowed = f"stanli>={'.'.join(map(str, FIRST))},<{'.'.join(map(str, BEYOND))}"
    if not FIRST <= numbers < BEYOND:
        raise InterpreterMissing(
            f"stanli {found} is installed, which was not compared with CmdStan; install one that was with "
            f"`pip install '{allowed}'`."
        )
    file = location()
    if file is None:
        raise InterpreterMissing(
            f"stanli {found} is installed without its library; install it again with `pip install '{allowed}'`."
        )
    try:
        library = ctypes.CDLL(str(file))
    except OSError as error:
        raise InterpreterMissing(f"stanli's library cannot be loaded: {error}.") from error
    for name in _POINTERS:
        getattr(library, name).restype = c_void_p
    for name in _COUNTS:
        function = getattr(library, name)
        function.restype, function.argtypes = c_int64, (c_void_p,)
    for name in _WORDS:
        getattr(library, name).restype = c_char_p
    library.stanli_pathfinder_max_draws.restype = c_int64
    _check_layout(library, found)
    return library


@cache
def identity() -> str:
    """Name the interpreter's build: version, build id, and the first digits of its library's SHA-256."""
    build = load().stanli_build_id().decode()
    file = location()
    assert file is not None, "it is loaded"
    with file.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    return f"{installed_version()} ({build}, {digest[:12]})"


def new_options(name: str) -> Structure:
    """Return the options of a function with the defaults, which are CmdStan's."""
    options = OPTIONS[name][0]()
    getattr(load(), f"stanli_{name}_opts_init")(byref(options))
    return options


def _check_layout(library: ctypes.CDLL, found: str) -> None:
    """Refuse a library whose options lie elsewhere: known defaults have to stand where this module reads them."""
    if library.stanli_abi_version() != ABI:
        raise InterpreterMissing(
            f"stanli {found} has ABI {library.stanli_abi_version()}, and this version of onebasin knows ABI {ABI}."
        )
    for name, (layout, defaults) in OPTIONS.items():
        buffer = (ctypes.c_ubyte * 512)(*([0xAA] * 512))
        getattr(library, f"stanli_{name}_opts_init")(buffer)
        options = layout.from_buffer(buffer)
        beyond = 512 - ctypes.sizeof(layout)
        untouched = bytes(buffer[512 - beyond :]) == b"\xaa" * beyond
        as_known = (getattr(options, field) == value for field, value in defaults.items())
        if not untouched or not all(as_known):
            raise InterpreterMissing(
                f"stanli {found} lays out its {name} options in another way than this version of onebasin knows."
            )
