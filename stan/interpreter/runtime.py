"""Load stanli's library by ctypes, and convert Stan programs into the form that it accepts.

This module needs only the standard library, so that the driver starts within a few hundredths of a second. The layouts
of options are those of `capi.h` at ABI 2. `load` rejects a library with another ABI or other defaults, since a wrong
offset would not raise an error.

The interpreter evaluates one density: Stan's `lp__`, without the constants that `~` drops and with the log Jacobian of
the constraints. In the compiled form, every call of a density function has a flag for constants, which `with_constants`
changes. A program with an empty model block, made by `emptied`, has the log Jacobian as its density.
"""

from __future__ import annotations

import base64
import ctypes
import hashlib
import re
import sys
from collections.abc import Iterable
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
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from onebasin.base.errors import OnebasinError

PACKAGE = "stanli"
ABI = 2
FIRST, BEYOND = (0, 24), (0, 25)
"""Range of the versions that were compared with CmdStan; pyproject.toml allows the same range."""
_FILES = {"darwin": "libstanli.dylib", "win32": "stanli.dll"}


class InterpreterMissing(OnebasinError):
    """Raised when the interpreter is not installed, cannot be loaded, or was not compared with CmdStan."""


_KINDS = {"u": c_uint32, "i": c_int, "n": c_int64, "d": c_double, "p": POINTER(c_double)}
_LAYOUTS = """
model u:seed i:threads_per_chain=1 i:fast_math
sample u:seed i:chains i:chain_id i:warmup=1000 i:samples i:thin d:delta=0.8 i:max_depth=10 i:save_warmup
    d:init_radius=2 p:inits i:num_threads
metric i:metric=1 p:inv_metric d:step_size=1 i:adapt_engaged=1 p:adapted_step_size p:adapted_inv_metric
optimize u:seed i:chain_id i:iter=2000 i:jacobian d:init_alpha d:tol_obj d:tol_rel_obj=1e4 d:tol_grad d:tol_rel_grad
    d:tol_param i:history_size=5 d:init_radius p:init
laplace u:seed i:draws=1000 i:jacobian=1 i:calculate_lp=1 i:refresh
pathfinder u:seed i:chain_id i:num_paths i:num_draws=1000 i:num_psis_draws i:num_elbo_draws=25 i:max_lbfgs_iters
    i:history_size d:init_alpha d:tol_obj d:tol_rel_obj d:tol_grad d:tol_rel_grad d:tol_param d:init_radius=2
    p:inits i:psis_resample=1 i:calculate_lp i:refresh
variational u:seed i:chain_id i:algorithm i:iter=10000 i:grad_samples i:elbo_samples d:eta=1 i:adapt_engaged
    i:adapt_iter=50 d:tol_rel_obj=0.01 i:eval_elbo i:output_samples d:init_radius=2 p:init
report d:warmup_seconds d:sampling_seconds n:n_divergent n:n_max_treedepth
"""
"""Structures by name: the fields of each as `KIND:NAME`, with some of the library's defaults, which are CmdStan's."""


def _read(text: str) -> dict[str, tuple[type[Structure], dict[str, float]]]:
    """Return the structure of each name, and its defaults."""
    fields: dict[str, list[tuple[str, Any]]] = {}
    defaults: dict[str, dict[str, float]] = {}
    for word in text.split():
        kind, colon, field = word.partition(":")
        if not colon:
            own, known = fields.setdefault(word, []), defaults.setdefault(word, {})
            continue
        field, _, default = field.partition("=")
        own.append((field, _KINDS[kind]))
        known |= {field: float(default)} if default else {}
    return {n: (type(n, (Structure,), {"_fields_": f}), defaults[n]) for n, f in fields.items()}


OPTIONS = _read(_LAYOUTS)
"""The options of each function."""
SampleReport = OPTIONS.pop("report")[0]
"""The times and problems of a chain."""


class Message:
    """A buffer for the message of a function."""

    SIZE = 1 << 16

    def __init__(self) -> None:
        self._buffer = ctypes.create_string_buffer(self.SIZE)
        self.arguments = (self._buffer, c_size_t(self.SIZE))
        """Last two arguments of the function."""

    @property
    def text(self) -> str:
        """The message."""
        return self._buffer.value.decode(errors="replace")


PROGRESS = ctypes.CFUNCTYPE(None, ctypes.c_int32, c_int64, c_int64, ctypes.c_int32, c_void_p)
LOG = ctypes.CFUNCTYPE(None, ctypes.c_int32, c_char_p, c_void_p)

_POINTERS = ("stanli_model_new_with_opts", "stanli_stan_to_mir_with_opts", "bs_model_construct")
_COUNTS = ("stanli_n_unconstrained", "stanli_n_constrained", "stanli_wa_n_columns")
_WORDS = (
    *("stanli_build_id", "stanli_constrained_name", "stanli_wa_column_name"),
    *("stanli_sampler_column_name", "stanli_warnings", "bs_param_names"),
)


def location() -> Path | None:
    """Find the library's file without importing the package; return None if it is not installed."""
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
    """Return the version of the installed package; raise `InterpreterMissing` if there is none."""
    if (file := location()) is not None:
        # Read it from pip's folder: importing `importlib.metadata` would take half of the driver's start-up time.
        found = [folder.stem for folder in file.parents[2].glob(f"{PACKAGE}-*.dist-info")]
        if len(found) == 1:
            return found[0].removeprefix(f"{PACKAGE}-")
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(PACKAGE)
    except PackageNotFoundError:
        raise InterpreterMissing(
            "stanli is not installed, but onebasin needs it to interpret Stan programs. Run `pip install stanli`."
        ) from None


@cache
def load() -> ctypes.CDLL:
    """Load the library, once per process; reject a version or a layout that this module does not support."""
    found = installed_version()
    numbers = tuple(int(part) for part in found.split(".")[:2] if part.isdigit())
    allowed = f"stanli>={'.'.join(map(str, FIRST))},<{'.'.join(map(str, BEYOND))}"
    if not FIRST <= numbers < BEYOND:
        raise InterpreterMissing(
            f"stanli {found} is installed, but this version has not been tested against CmdStan. Run `pip install "
            f"'{allowed}'`."
        )
    file = location()
    if file is None:
        raise InterpreterMissing(
            f"stanli {found} is installed without its library. Run `pip install --force-reinstall '{allowed}'`."
        )
    try:
        library = ctypes.CDLL(str(file))
    except OSError as error:
        raise InterpreterMissing(
            f"stanli's library cannot be loaded ({error}). Run `pip install --force-reinstall '{allowed}'`."
        ) from error
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
    """Return the interpreter's version, its build id, and the first digits of the library's SHA-256."""
    build = load().stanli_build_id().decode()
    file = location()
    assert file is not None, "it is loaded"
    with file.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    return f"{installed_version()} ({build}, {digest[:12]})"


def new_options(name: str) -> Structure:
    """Return the options of a function with their defaults."""
    options = OPTIONS[name][0]()
    getattr(load(), f"stanli_{name}_opts_init")(byref(options))
    return options


def _check_layout(library: ctypes.CDLL, found: str) -> None:
    """Reject a library with another layout: known defaults must be where this module reads them."""
    if library.stanli_abi_version() != ABI:
        raise InterpreterMissing(
            f"stanli {found} has version {library.stanli_abi_version()} of the binary interface, but this version of "
            f"onebasin needs version {ABI}. Update both packages."
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
                f"stanli {found} stores its {name} options in a layout that this version of onebasin does not know. "
                "Update both packages."
            )


_DROPPING = re.compile(rb"(_lp[dm]f)\x01(?=[^\x00]\x00{3})")
_READ = re.compile(rb"FnReadData\x00\x01\x00\x00\x00\x03(....)", re.DOTALL)
_NUMBER = (b"\x04\x00\x00\x00UInt", b"\x05\x00\x00\x00UReal")
_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"[^"\n]*"|[A-Za-z]\w*|[{}]', re.DOTALL)
_HEAD = "STANLI2"
_INCLUDE = re.compile(r"""^[ \t]*\#include[ \t]+[<"]?([^>"\s]+)[>"]?.*$""", re.MULTILINE)


class ProgramRefused(OnebasinError):
    """Raised when a program does not parse or the interpreter does not accept it, with its message."""


def compiled(text: str, folder: Path) -> str:
    """Compile a program's text, with includes from a folder; raise `ProgramRefused` if it does not parse.

    The signal stacks of the compiler's OCaml runtime are too small for a process that uses AMX, as JAX does for matrix
    products; such a process would die. So only the driver's process, which does not load JAX, may call it.
    """
    assert "jaxlib" not in sys.modules, "the compiler ends a process that computes with JAX"
    if "\0" in text:
        raise ProgramRefused("Lexing error: the file has a zero byte, so it is not text.")
    library = load()
    message = Message()
    folders = (ctypes.c_char_p * 1)(str(folder).encode())
    result = library.stanli_stan_to_mir_with_opts(text.encode(), folders, 1, 0, *message.arguments)
    if not result:
        raise ProgramRefused(message.text.strip())
    try:
        return ctypes.string_at(result).decode()
    finally:
        library.stanli_string_free(ctypes.c_void_p(result))


def with_constants(form: str) -> str:
    """Return the compiled form whose densities keep all constants."""
    kept = _DROPPING.sub(lambda found: found[1] + b"\x00", _bytes(form))
    return f"{_HEAD}:{base64.b64encode(kept).decode()}"


def declared_data(form: str) -> dict[str, bool]:
    """Return the variables that a compiled program reads, the data block's first, and whether each is a number."""
    content = _bytes(form)
    names: dict[str, bool] = {}
    for found in _READ.finditer(content):
        size = int.from_bytes(found[1], "little")
        end = found.end() + size
        name = content[found.end() : end].decode(errors="replace")
        names[name] = content.startswith(_NUMBER, end)
    return names


def emptied(text: str, block: str) -> str:
    """Empty a block of a program without includes."""
    opened, closed = _inside(text, block)
    return text[:opened] + text[closed:]


def until_data(text: str) -> str:
    """Return a program without includes up to the end of its data block; empty if it has no such block."""
    opened, closed = _inside(text, "data")
    return text[: closed + 1] if opened < len(text) else ""


def _inside(text: str, block: str) -> tuple[int, int]:
    """Find the bounds of a block's content; the end of the text, twice, if there is no such block."""
    depth, awaited, opened, before = 0, False, -1, ""
    for token in _TOKEN.finditer(text):
        word = token[0]
        if word == "{":
            depth += 1
            if awaited and depth == 1:
                opened = token.end()
        elif word == "}":
            depth -= 1
            if depth == 0 and opened >= 0:
                return opened, token.start()
        if not word.startswith(("//", "/*")):
            awaited = depth == 0 and word == block and before != "transformed"
            before = word
    return len(text), len(text)


def adds_to_target_early(text: str) -> bool:
    """Check whether a program without includes calls a function `..._lp` outside its model block."""
    rest = emptied(emptied(text, "model"), "functions")
    return any(token[0].endswith("_lp") for token in _TOKEN.finditer(rest))


def held(form: str) -> dict[str, Any]:
    """Return the entry of the data that passes a program to the interpreter's BridgeStan functions."""
    build = load().stanli_build_id().decode()
    return {"__stanli": {"build_id": build, "mir": form, "name": "model"}}


def _bytes(form: str) -> bytes:
    head, _, body = form.partition(":")
    if head != _HEAD:
        raise ProgramRefused(
            f"stanli compiles to the form {head[:20]!r}, which this version of onebasin does not support. Update "
            "both packages."
        )
    return base64.b64decode(body)


def full_text(path: Path, includes: Iterable[Path]) -> str:
    """Return a program with its included texts, each between two comments that name its file."""
    return _expanded(path, path.parent, frozenset(p.resolve() for p in includes))


def included_files(path: Path) -> tuple[Path, ...]:
    """List the files that a program includes, even those named in comments."""
    found: dict[Path, None] = {}
    waiting = [path]
    while waiting:
        text = waiting.pop().read_bytes().decode("utf-8", errors="replace")
        for match in _INCLUDE.finditer(text):
            included = path.parent / match[1]
            if included not in found and included.is_file():
                found[included] = None
                waiting.append(included)
    return tuple(found)


def _expanded(path: Path, folder: Path, includes: frozenset[Path]) -> str:
    def put(found: re.Match[str]) -> str:
        included = (folder / found[1]).resolve()
        if included not in includes:  # The line is within a comment.
            return found[0]
        # The compiler rejects a file that includes itself.
        text = _expanded(included, folder, includes - {included}).rstrip("\n")
        return f"// {found[1]} begins\n{text}\n// {found[1]} ends"

    text = path.read_bytes().decode("utf-8", errors="replace")
    return _INCLUDE.sub(put, text)
