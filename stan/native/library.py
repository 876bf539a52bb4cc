"""Loading of `calls.c`: the binary that onebasin brings for this platform, or one that your compiler makes.

`calls.c` reads an `Entry`, which says how a Stan library is called. NumPy calls its functions by ctypes, XLA by custom
calls (`inference/density/stan_vectors.py`). Only the second kind depends on jaxlib, whose version of XLA's interface is
read from its header when it is loaded.
"""

from __future__ import annotations

import ctypes
import hashlib
import platform
import re
import subprocess
import weakref
from ctypes import POINTER, c_char_p, c_int, c_int64, c_void_p
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from onebasin.base.files.cache import make_user_cache
from onebasin.base.files.writing import working_folder

from ..home.assemble import find_toolchain
from ..home.directory import building_lock
from ..home.errors import HomeBuildError

SOURCE = Path(__file__).with_name("calls.c")
BUILT = SOURCE.with_name("built")
SUMS = BUILT / "SHA256SUMS"
"""Digests of the binaries, and of the source that they were built from; see the Makefile."""
FLAGS = ("-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off", "-fno-math-errno")
"""For every compiler. Without contraction, all platforms round in the same places."""
FUNCTIONS = (
    *("bs_log_density", "bs_log_density_gradient", "bs_param_constrain", "bs_param_unconstrain"),
    *("bs_rng_construct", "bs_rng_destruct", "bs_free_error_msg"),
)
"""The functions of a Stan library that an entry points to, in its order."""
_SYSTEMS = {"Linux": ("linux", "so"), "Darwin": ("macos", "dylib"), "Windows": ("windows", "dll")}


class Entry(ctypes.Structure):
    """Describes to `calls.c` how a Stan library is called; the fields are explained there."""

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
def load() -> ctypes.CDLL:
    """Load the functions of `calls.c`, once per process.

    That is the binary of this platform, if `calls.c` is unchanged since it was built; otherwise one that your compiler
    makes, which stays in the cache.
    """
    file = binary_file()
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()
    if file.is_file() and f"{digest}  {SOURCE.name}" in SUMS.read_text(encoding="utf-8"):
        try:
            return _declared(file)
        except OSError:  # a C library other than the one that it was linked for
            pass
    return _declared(_compiled())


@cache
def load_for_xla() -> ctypes.CDLL:
    """Load the functions for the installed jaxlib: compiled again if it has another layout of XLA's interface."""
    header = (headers() / "xla/ffi/api/c_api.h").read_text(encoding="utf-8")
    major, minor = (
        int(re.findall(rf"^#define XLA_FFI_API_{part} (\d+)", header, re.MULTILINE)[0])
        for part in ("MAJOR", "MINOR")
    )
    calls = load()
    if calls.onebasin_xla_major() != major:
        calls = _declared(_compiled())
    calls.onebasin_claim_xla(major, minor)
    return calls


def keep(calls: ctypes.CDLL, entry: Entry, owner: object) -> int:
    """Copy an entry to memory that is never freed, for compiled programs that may outlive the model; give its address.

    The copy loses its model when the owner is garbage collected.
    """
    address = calls.onebasin_keep(ctypes.byref(entry))
    weakref.finalize(owner, calls.onebasin_close, address)
    return address


def binary_file() -> Path:
    """Give the place of this platform's binary, which exists for the common platforms."""
    system, ending = _SYSTEMS.get(platform.system(), (platform.system().lower(), "so"))
    machine = {"AMD64": "x86_64"}.get(platform.machine(), platform.machine())
    return BUILT / f"{system}-{machine}.{ending}"


def headers() -> Path:
    """Give the folder of jaxlib's headers, without importing JAX."""
    spec = find_spec("jaxlib")
    if spec is None or spec.origin is None:
        raise HomeBuildError("jaxlib is not installed, whose headers describe XLA's interface.")
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
            f"onebasin brings no binary {binary_file().name} of {SOURCE.name}, through which it calls Stan programs, "
            f"and cannot compile one. {error}"
        ) from None
    digest = hashlib.sha256(SOURCE.read_bytes())
    digest.update((include / "xla/ffi/api/c_api.h").read_bytes())
    words = [*FLAGS, tools.compiler, tools.version, platform.machine()]
    digest.update("\0".join(words).encode())
    made = make_user_cache("native") / f"{digest.hexdigest()[:32]}.so"
    with building_lock(made, lambda line: None):
        if not made.exists():
            # Next to the target, then moved there.
            with working_folder(made.stem, made.parent) as folder:
                part = folder / made.name
                command = [*tools.compiler.split(), "-x", "c", *FLAGS, "-I", str(include)]
                command += [str(SOURCE), "-o", str(part)]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode:
                    raise HomeBuildError(
                        f"`{tools.compiler}` does not compile {SOURCE.name}, through which onebasin calls Stan "
                        f"programs:\n{done.stderr.strip()}"
                    )
                part.replace(made)
    return made
