"""The environment of a build: the variables that it inherits, and the folder names that make accepts.

Everything that `make`, `stanc` and the compiler are started with comes from here. The environment goes through but for
what an outer `make` left in it for its own children, and for what would change how a program is translated: `MAKEFLAGS`
and its like, `MAKEFILES`, `STANCFLAGS`, `USER_HEADER`. The compiler's variables (`CXX`, `CXXFLAGS`, ...) do reach the
build, as do the home's `make/local` and the user's `~/.config/stan/make.local`; since they decide what a compiled
program does, they are part of its key in the cache (`build_flags`).
"""

from __future__ import annotations

import os
import string
from pathlib import Path

from .errors import CmdStanNotFound

_WITHHELD = frozenset(
    [
        "MAKEFLAGS",
        "MFLAGS",
        "GNUMAKEFLAGS",
        "MAKELEVEL",
        "MAKEFILES",
        "MAKEOVERRIDES",
        "STANCFLAGS",
        "USER_HEADER",
    ]
)
_DECIDING = (
    *("CXX", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "LDLIBS", "O", "PRECOMPILED_HEADERS"),
    *("CPATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH"),
    *("STAN_THREADS", "STAN_OPENCL", "STAN_MPI", "STAN_NO_RANGE_CHECKS", "STAN_CPP_OPTIMS"),
)
_ASCII = frozenset(string.ascii_letters + string.digits + "/._-+@")


def build_environment() -> dict[str, str]:
    """Give the variables that a build is started with."""
    kept = {name: value for name, value in os.environ.items() if name not in _WITHHELD}
    # The makefiles of CmdStan and of our homes include `$(HOME)/.config/stan/make.local`, unquoted.
    if unfit_character(kept.get("HOME", "")):
        del kept["HOME"]
    return kept


def build_flags(home: Path) -> str:
    """Give all that decides how a program is compiled, but for the program and the home: variables and make's files."""
    given = [f"{name}={os.environ[name]}" for name in _DECIDING if os.environ.get(name)]
    files = (home / "make" / "local", Path(os.path.expanduser("~/.config/stan/make.local")))
    texts = [path.read_text(errors="surrogateescape") for path in files if os.path.isfile(path)]
    return "\n".join([*given, *texts])


def unfit_character(path: str | Path) -> str:
    """Return the first character in a path that make, the shell or the linker does not take in a name; or nothing."""
    for character in str(path):
        shown = character.isprintable() and not character.isspace()
        if not (character in _ASCII if character.isascii() else shown):
            return character
    return ""


def check_home_path(path: Path, origin: str) -> None:
    """Refuse a folder of CmdStan's whose path, or the one that links in it lead to, make cannot take."""
    odd = unfit_character(path) or unfit_character(path.resolve())
    if odd:
        raise CmdStanNotFound(
            f"{str(path)!r} ({origin}) has the character {odd!r} in its path, with which make cannot compile programs; "
            "set CMDSTAN or XDG_CACHE_HOME to a path of letters, digits and the characters . _ - + @ alone."
        )
