"""Load libraries that evaluate Stan programs by BridgeStan's functions: compiled programs, and the interpreter.

`calls.c` calls these functions at many points. It is a binary for this platform, or compiled with the user's compiler,
and reads an `Entry` that describes a library. NumPy calls it by ctypes, XLA by custom calls
(`inference/density/stan_vectors.py`). Only the custom calls depend on jaxlib, whose header gives the version of XLA's
interface.

`bridgestan.StanModel` and `stanli.bridgestan_model` take as long for one point, but twice as long for 1,000 points (59
and 123 us per point instead of 33 and 58, a mixture with 5 parameters, two cores). XLA cannot call them.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import platform
import re
import subprocess
import weakref
from ctypes import POINTER, c_bool, c_char, c_char_p, c_int, c_int64, c_uint, c_void_p
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from onebasin.base.errors import HomeBuildError, StanDataError, StanProgramError
from onebasin.base.files.cache import make_user_cache
from onebasin.base.files.writing import working_folder

from .choice import Accepted
from .home.assemble import building_lock, find_toolchain
from .interpreter.runtime import (
    InterpreterMissing,
    held,
    installed_version,
    load,
    location,
    with_constants,
)

SOURCE = Path(__file__).with_name("native") / "calls.c"
BUILT = SOURCE.with_name("built")
SUMS = BUILT / "SHA256SUMS"
"""File with the digests of the binaries and of their source; see the Makefile."""
FLAGS = ("-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off", "-fno-math-errno")
"""Compiler flags; without contraction, all platforms round at the same places."""
FUNCTIONS = (
    *("bs_log_density", "bs_log_density_gradient", "bs_param_constrain", "bs_param_unconstrain"),
    *("bs_rng_construct", "bs_rng_destruct", "bs_free_error_msg"),
)
"""The functions of a Stan library to which an `Entry` points, in this order."""
_SYSTEMS = {"Linux": ("linux", "so"), "Darwin": ("macos", "dylib"), "Windows": ("windows", "dll")}


class Entry(ctypes.Structure):
    """Description of a Stan library for `calls.c`, which explains the fields."""

    _fields_ = (
        ("model", c_void_p),
        ("minus", c_void_p),
        *((name, c_int64) for name in ("size", "values", "propto", "jacobian")),
        *((name, c_int64) for name in ("transformed", "generated", "lenient")),
        *((name, c_void_p) for name in FUNCTIONS),
    )


_ERROR = POINTER(c_char_p)
_SIGNATURES: dict[str, tuple[type | None, tuple[type, ...]]] = {
    "densities": (c_int64, (POINTER(Entry), c_int64, c_void_p, c_void_p, _ERROR)),
    "gradients": (c_int64, (POINTER(Entry), c_int64, c_void_p, c_void_p, c_void_p, _ERROR)),
    "constrain": (c_int64, (POINTER(Entry), c_int64, c_void_p, c_void_p, c_void_p, _ERROR)),
    "unconstrain": (c_int64, (POINTER(Entry), c_int64, c_void_p, c_void_p, _ERROR)),
    "keep": (c_void_p, (POINTER(Entry),)),
    "close": (None, (c_void_p,)),
    "xla_major": (c_int, ()),
    "claim_xla": (None, (c_int, c_int)),
}


@cache
def load_calls() -> ctypes.CDLL:
    """Load the functions of `calls.c`, once per process; compile them if this platform's binary is not up to date."""
    file = binary_file()
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()
    if file.is_file() and f"{digest}  {SOURCE.name}" in SUMS.read_text(encoding="utf-8"):
        try:
            return _declared(file)
        except OSError:  # The binary is linked to a different C library.
            pass
    return _declared(_compiled())


@cache
def load_for_xla() -> ctypes.CDLL:
    """Load the functions for the installed jaxlib; compile them if its layout of XLA's interface differs."""
    header = (headers() / "xla/ffi/api/c_api.h").read_text(encoding="utf-8")
    major, minor = (
        int(re.findall(rf"^#define XLA_FFI_API_{part} (\d+)", header, re.MULTILINE)[0])
        for part in ("MAJOR", "MINOR")
    )
    calls = load_calls()
    if calls.onebasin_xla_major() != major:
        calls = _declared(_compiled())
    calls.onebasin_claim_xla(major, minor)
    return calls


def keep(calls: ctypes.CDLL, entry: Entry, owner: object) -> int:
    """Copy an entry to memory that is never freed, for compiled programs that outlive the model; return its address.

    The copy loses its model when the owner is garbage collected.
    """
    address = calls.onebasin_keep(ctypes.byref(entry))
    weakref.finalize(owner, calls.onebasin_close, address)
    return address


def binary_file() -> Path:
    """Return the path of this platform's binary, which exists only for common platforms."""
    system, ending = _SYSTEMS.get(platform.system(), (platform.system().lower(), "so"))
    machine = {"AMD64": "x86_64"}.get(platform.machine(), platform.machine())
    return BUILT / f"{system}-{machine}.{ending}"


def headers() -> Path:
    """Return the folder of jaxlib's headers, without importing JAX."""
    spec = find_spec("jaxlib")
    if spec is None or spec.origin is None:
        raise HomeBuildError(
            "jaxlib is not installed, but onebasin needs the header files of jaxlib. Run `pip install jax`."
        )
    return Path(spec.origin).parent / "include"


def _declared(file: Path) -> ctypes.CDLL:
    calls = ctypes.CDLL(str(file))
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(calls, f"onebasin_{name}")
        function.restype, function.argtypes = result, arguments
    return calls


def _compiled() -> Path:
    """Compile `calls.c`, or take the result from the user's cache."""
    include = headers()
    try:
        tools = find_toolchain()
    except HomeBuildError as error:
        raise HomeBuildError(
            f"onebasin calls Stan programs through the compiled file {binary_file().name}, which is missing and "
            f"cannot be built. {error}"
        ) from None
    digest = hashlib.sha256(SOURCE.read_bytes())
    digest.update((include / "xla/ffi/api/c_api.h").read_bytes())
    words = [*FLAGS, tools.compiler, tools.version, platform.machine()]
    digest.update("\0".join(words).encode())
    made = make_user_cache("native") / f"{digest.hexdigest()[:32]}.so"
    with building_lock(made, lambda line: None):
        if not made.exists():
            with working_folder(made.stem, made.parent) as folder:
                part = folder / made.name
                command = [*tools.compiler.split(), "-x", "c", *FLAGS, "-I", str(include)]
                command += [str(SOURCE), "-o", str(part)]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode:
                    raise HomeBuildError(
                        f"`{tools.compiler}` does not compile {SOURCE.name}, which onebasin needs to call Stan "
                        f"programs:\n{done.stderr.strip()}"
                    )
                part.replace(made)
    return made


PRINT = ctypes.CFUNCTYPE(None, POINTER(c_char), c_int)
"""Type of a function that receives the text printed by a program."""

type Signatures = dict[str, tuple[type | None, tuple[type, ...]]]
"""Types of the results and arguments of functions."""
type Shapes = dict[str, tuple[int, ...]]
type Handles = tuple[int, int | None, bool, bool]


class Opened:
    """A loaded library.

    A handle is the address of a model: a program with its data. Seeds of random numbers are below 2**32.
    """

    functions: ClassVar[Signatures] = {
        "bs_free_error_msg": (None, (c_char_p,)),
        "bs_model_destruct": (None, (c_void_p,)),
        "bs_param_names": (c_char_p, (c_void_p, c_bool, c_bool)),
        "bs_param_unc_names": (c_char_p, (c_void_p,)),
        "bs_param_num": (c_int, (c_void_p, c_bool, c_bool)),
        "bs_param_unc_num": (c_int, (c_void_p,)),
        "bs_rng_destruct": (None, (c_void_p,)),
    }
    """The functions that Python calls."""

    stan_version: str
    lenient: bool
    """True if a negative code can mean that the program rejects a point, and not only a positive one."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.library = ctypes.CDLL(str(file))
        for name, (result, arguments) in self.functions.items():
            function = getattr(self.library, name)
            function.restype, function.argtypes = result, arguments

    def destruct(self, handle: int) -> None:
        """Free a model."""
        self.library.bs_model_destruct(handle)

    def names(self, handle: int, include_tp: bool, include_gq: bool) -> tuple[str, ...]:
        """Return the names of constrained values, such as ``theta.1``."""
        return split(self.library.bs_param_names(handle, include_tp, include_gq))

    def address(self, name: str) -> int:
        """Return the address of a function, for compiled code that calls it."""
        return ctypes.cast(getattr(self.library, name), c_void_p).value or 0

    def take(self, error: c_char_p) -> str:
        """Return the message of a function and free it; without a message, return an empty string."""
        if not error:
            return ""
        words = (error.value or b"").decode(errors="replace").strip()
        self.library.bs_free_error_msg(error)
        return words.partition("failed with exception: ")[2] or words


class Interface(Opened):
    """The loaded library of a compiled program, with BridgeStan's functions and those of `bridge/interface.cpp`."""

    functions = Opened.functions | {
        "onebasin_stan_version": (c_char_p, ()),
        "onebasin_construct": (c_void_p, (c_char_p, c_uint, PRINT, _ERROR)),
        "onebasin_variables": (c_char_p, (c_void_p, c_bool, c_bool)),
        "onebasin_rng_construct": (c_void_p, (c_uint, c_uint, _ERROR)),
    }

    lenient = False

    def __init__(self, file: Path) -> None:
        super().__init__(file)
        self.stan_version: str = self.library.onebasin_stan_version().decode()

    def construct(self, data: str, seed: int, report: ctypes._FuncPointer) -> int:
        """Construct a model from data as JSON and return its handle; raise `StanDataError` if it rejects the data.

        `seed` is used in the block `transformed data`. The caller keeps `report`, a `PRINT`, alive.
        """
        error = c_char_p()
        handle = self.library.onebasin_construct(data.encode(), seed, report, ctypes.byref(error))
        if not handle:
            raise StanDataError(self.take(error))
        return handle

    def variables(self, handle: int, include_tp: bool, include_gq: bool) -> Shapes:
        """Return the shape of each variable."""
        lines = self.library.onebasin_variables(handle, include_tp, include_gq).decode()
        words = (line.split() for line in lines.splitlines())
        return {name: tuple(map(int, lengths)) for name, *lengths in words}

    def rng(self, seed: int, chain: int) -> int:
        """Construct the random number generator of CmdStan's chain with this number."""
        return self.library.onebasin_rng_construct(seed, chain, None)

    def density_handles(self, handle: int, propto: bool, jacobian: bool) -> Handles:
        """Return how to evaluate a kind of log density.

        The result is the handle of a model, the handle of a model to subtract or None, and the values of `propto` and
        `jacobian` to pass to both. The handles are valid until `destruct(handle)`. Here, the model itself has all
        kinds.
        """
        return handle, None, propto, jacobian


class StanGenerator:
    """A stream of random numbers for generated quantities, for use by one thread at a time."""

    def __init__(self, interface: Interface | Interpreted, seed: int, chain: int) -> None:
        self.handle = interface.rng(seed % 2**32, chain)
        weakref.finalize(self, interface.library.bs_rng_destruct, self.handle)


def split(names: bytes) -> tuple[str, ...]:
    """Split a library's list of names."""
    return tuple(names.decode().split(",")) if names else ()


_BEYOND_NAMES = ("real", "imag")
_REPORTS: dict[int, ctypes._FuncPointer] = {}
"""The functions that receive text from open models, the latest last."""


@PRINT
def _HAND_ON(text: ctypes._Pointer[ctypes.c_char], size: int) -> None:
    """Pass text to the latest report; the interpreter calls this one function for all models, so it must stay alive."""
    for report in [*_REPORTS.values()][-1:]:
        report(text, size)


@dataclass(frozen=True)
class _Constructed:
    """The data and the seed of a model, and further models constructed from them."""

    data: str
    seed: int
    report: int
    others: dict[str, int] = field(default_factory=dict)


class Interpreted(Opened):
    """A program in the interpreter, which evaluates one kind of log density.

    Two more models give the other kinds: one keeps the constants. The other has an empty model block, so its log
    density is the log Jacobian. Each is constructed when it is first needed.
    """

    functions: ClassVar[Signatures] = Opened.functions | {
        "bs_model_construct": (c_void_p, (c_char_p, c_uint, _ERROR)),
        "bs_rng_construct": (c_void_p, (c_uint, _ERROR)),
        "bs_set_print_callback": (ctypes.c_int, (PRINT, _ERROR)),
    }

    lenient = True

    def __init__(self, accepted: Accepted) -> None:
        try:
            load()
        except InterpreterMissing as error:
            raise StanProgramError(str(error)) from None
        file = location()
        assert file is not None, "it is loaded"
        super().__init__(file)
        self.stan_version = f"stanli {installed_version()}"
        self._program = accepted
        self._constructed: dict[int, _Constructed] = {}

    def construct(self, data: str, seed: int, report: ctypes._FuncPointer) -> int:
        """Construct a model as `Interface.construct` does; the latest `report` receives text from all models."""
        _REPORTS[id(report)] = report
        self.library.bs_set_print_callback(_HAND_ON, None)
        try:
            handle = self._new(self._program.form, data, seed)
        except StanDataError:
            del _REPORTS[id(report)]
            raise
        self._constructed[handle] = _Constructed(data, seed, id(report))
        return handle

    def destruct(self, handle: int) -> None:
        """Free a model and the further models made from it."""
        made = self._constructed.pop(handle)
        for each in (handle, *made.others.values()):
            self.library.bs_model_destruct(each)
        _REPORTS.pop(made.report, None)

    def variables(self, handle: int, include_tp: bool, include_gq: bool) -> Shapes:
        """Return the shape of each variable that has an entry."""
        shapes: Shapes = {}
        for name in self.names(handle, include_tp, include_gq):
            variable, *places = name.split(".")
            numbers = tuple(int(place) for place in places if place not in _BEYOND_NAMES)
            before = shapes.get(variable, numbers)
            shapes[variable] = tuple(map(max, before, numbers))
        return shapes

    def rng(self, seed: int, chain: int) -> int:
        """Construct a generator; each chain of a seed has its own, which differs from that of CmdStan's chain."""
        if chain:
            seed = int(np.random.SeedSequence([seed, chain]).generate_state(1)[0])
        return self.library.bs_rng_construct(seed, None)

    def density_handles(self, handle: int, propto: bool, jacobian: bool) -> Handles:
        """Return how to evaluate a kind of log density; see `Interface.density_handles`."""
        model = handle if propto else self._other(handle, "with constants")
        return model, None if jacobian else self._other(handle, "jacobian"), True, True

    def _other(self, handle: int, kind: Literal["with constants", "jacobian"]) -> int:
        made = self._constructed[handle]
        if kind not in made.others:
            form = self._program.jacobian
            if kind == "with constants":
                form = with_constants(self._program.form)
            made.others[kind] = self._new(form, made.data, made.seed)
        return made.others[kind]

    def _new(self, form: str, data: str, seed: int) -> int:
        """Construct a model; raise `StanDataError` if the program rejects the data."""
        error = c_char_p()
        model = json.dumps({**json.loads(data), **held(form)})
        handle = self.library.bs_model_construct(model.encode(), seed, ctypes.byref(error))
        if not handle:
            raise StanDataError(self.take(error))
        return int(handle)
