"""A CmdStan directory: its place and version, whether it works, and the environment of a build with it.

`make`, `stanc` and the compiler inherit the environment, except the variables that an outer `make` has set for its own
children, and those that change how a program is translated (`MAKEFLAGS`, `MAKEFILES`, `STANCFLAGS`, `USER_HEADER`). The
compiler's variables (`CXX`, `CXXFLAGS`, ...), the home's `make/local` and the user's `~/.config/stan/make.local` do
reach the build. They decide what a compiled program does, so they are part of its key in the cache (`build_flags`).
"""

from __future__ import annotations

import os
import re
import string
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from onebasin.base.errors import CmdStanNotFound

Origin = Literal["CMDSTAN", "cmdstanpy default", "conda", "assembled"]
Progress = Callable[[str], None]

MARKER = "onebasin.json"
"""The last file written into a home of our own: it marks a completed build."""
_VERSION = re.compile(r"^CMDSTAN_VERSION := (\d+)\.(\d+)\.(\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Home:
    """A CmdStan directory."""

    path: Path  # Absolute.
    version: tuple[int, int, int]
    origin: Origin

    @property
    def supports_jacobian_statement(self) -> bool:
        """Check whether ``jacobian += ...`` compiles (Stan 2.36); our own programs use it."""
        return self.version >= (2, 36, 0)


def activate(home: Home) -> None:
    """Make cmdstanpy use this directory, for the whole process (it sets ``CMDSTAN``)."""
    import cmdstanpy

    cmdstanpy.set_cmdstan_path(str(home.path))


def read_home(path: Path, origin: Origin) -> Home:
    """Check that ``path`` is a CmdStan directory whose path `make` accepts, and read its version."""
    advice = "It must be the top directory of a CmdStan installation, the one with `makefile`."
    if not os.path.isdir(path):  # `Path.is_dir` raises without permission
        raise CmdStanNotFound(f"`{path}` ({origin}) is not a directory. {advice}")
    try:
        makefile = (path / "makefile").read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise CmdStanNotFound(
            f"`{path}` ({origin}) has no readable makefile: {error.strerror}. {advice}"
        ) from error
    check_home_path(path.absolute(), origin)
    match = _VERSION.search(makefile)
    if match is None:
        raise CmdStanNotFound(f"The makefile of `{path}` ({origin}) names no version. {advice}")
    major, minor, patch = (int(part) for part in match.groups())
    if os.path.isfile(path / MARKER):
        origin = "assembled"  # `activate` has set CMDSTAN to our own
    return Home(path.absolute(), (major, minor, patch), origin)


@contextmanager
def building_lock(made: Path, report: Progress | None = None) -> Iterator[None]:
    """Let one process at a time build a home or a program; report it before waiting for another one."""
    from filelock import FileLock, Timeout

    made.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(f"{made}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        if report is not None:
            report("waiting for another process, which is building it")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


_WITHHELD = (
    *("MAKEFLAGS", "MFLAGS", "GNUMAKEFLAGS", "MAKELEVEL", "MAKEFILES", "MAKEOVERRIDES"),
    *("STANCFLAGS", "USER_HEADER"),
)
_DECIDING = (
    *("CXX", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "LDLIBS", "O", "PRECOMPILED_HEADERS"),
    *("CPATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH"),
    *("STAN_THREADS", "STAN_OPENCL", "STAN_MPI", "STAN_NO_RANGE_CHECKS", "STAN_CPP_OPTIMS"),
)
_ASCII = frozenset(string.ascii_letters + string.digits + "/._-+@")


def build_environment() -> dict[str, str]:
    """Return the environment of a build."""
    kept = {name: value for name, value in os.environ.items() if name not in _WITHHELD}
    # The makefiles include `$(HOME)/.config/stan/make.local`, unquoted.
    if unfit_character(kept.get("HOME", "")):
        del kept["HOME"]
    return kept


def build_flags(home: Path) -> str:
    """Return the variables and the makefiles that decide how a program is compiled."""
    given = [f"{name}={os.environ[name]}" for name in _DECIDING if os.environ.get(name)]
    files = (home / "make" / "local", Path(os.path.expanduser("~/.config/stan/make.local")))
    texts = [path.read_text(errors="surrogateescape") for path in files if os.path.isfile(path)]
    return "\n".join([*given, *texts])


def unfit_character(path: str | Path) -> str:
    """Return the first character in a path that `make`, the shell or the linker rejects, or nothing."""
    for character in str(path):
        shown = character.isprintable() and not character.isspace()
        if not (character in _ASCII if character.isascii() else shown):
            return character
    return ""


def check_home_path(path: Path, origin: str) -> None:
    """Reject a CmdStan directory whose path, or the target of its links, `make` does not accept."""
    odd = unfit_character(path) or unfit_character(path.resolve())
    if odd:
        raise CmdStanNotFound(
            f"{str(path)!r} ({origin}) has the character {odd!r} in its path, with which make cannot compile programs; "
            "set CMDSTAN or XDG_CACHE_HOME to a path of letters, digits and . _ - + @ only."
        )


TIMEOUT = 60.0
"""Seconds for a tool to print its version."""
_RELEASE = ("make/program", "stan/src/stan/model/model_header.hpp")
_ASSEMBLED = ("include/stan/model/model_header.hpp", "build/default/engines.o")


def fault(home: Home) -> str:
    """Return a sentence on what is broken in a CmdStan directory, with a remedy; empty if nothing is."""
    ours = home.origin == "assembled"
    remedy = "run `make build` in it, install it again, or unset CMDSTAN"
    if ours:
        remedy = "assemble it again with `onebasin cmdstan build --force`"
    needed = ("bin/stanc", *(_ASSEMBLED if ours else _RELEASE))
    missing = [name for name in needed if not os.path.isfile(home.path / name)]
    if missing:
        return f"The CmdStan in `{home.path}` lacks {', '.join(missing)}: {remedy}."
    why = cannot_run([str(home.path / "bin" / "stanc"), "--version"])
    return f"The `stanc` of the CmdStan in `{home.path}` {why}: {remedy}." if why else ""


def cannot_run(command: Sequence[str], *, stdin: str = "") -> str:
    """Return why a command does not run; empty if it runs."""
    try:
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        return f"does not answer within {TIMEOUT:.0f} s"
    except OSError as error:
        return f"does not run ({error.strerror or error})"
    if done.returncode:
        words = (done.stderr or done.stdout).strip().splitlines()
        return f"ends with code {done.returncode}" + (f" ({words[0][:120]})" if words else "")
    return ""
