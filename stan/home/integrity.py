"""Check whether a CmdStan directory can do its work: its files are there and as they were built, its compiler runs.

A makefile with a version makes a folder a CmdStan directory (`directory.read_home`); a copy that broke off, a release
that was never built and an assembly that lost a file have one too.

The digests of an assembled home lie in its marker: of the translator, the tools, the libraries and the objects of the
driver. Not of the headers: they are read again at every compilation, and the compiler checks the precompiled one.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from .directory import MARKER, Home, read_marker
from .errors import HomeBuildError

FIELD = "files"
"""The marker's field for the digests; homes of earlier versions do not have it."""

_PATTERNS = ("bin/*", "lib/*", "driver/*", "build/**/*.o", "makefile")

TIMEOUT = 60.0
"""Seconds that a tool may take to say its version."""

_RELEASE = ("make/program", "stan/src/stan/model/model_header.hpp")
_ASSEMBLED = ("include/stan/model/model_header.hpp", "build/default/engines.o")


def fault(home: Home) -> str:
    """Say in a sentence what is broken in a CmdStan directory and what to do; empty where nothing is."""
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
    """Say why a command does not run; empty where it does."""
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


def digests(home: Path) -> dict[str, str]:
    """Give the SHA-256 of each file that a home is run from, by its place in the home."""
    files = sorted({path for pattern in _PATTERNS for path in home.glob(pattern) if path.is_file()})
    return {path.relative_to(home).as_posix(): _digest(path) for path in files}


def check_whole(home: Path) -> None:
    """Refuse an assembled home with a file that is not what it was when it was built; others say nothing of theirs."""
    facts = read_marker(home)
    found = None if facts is None else facts.get(FIELD, {})
    for name, digest in (found if isinstance(found, dict) else {MARKER: ""}).items():
        path = home / name
        if not path.is_file() or _digest(path) != digest:
            raise HomeBuildError(
                f"The CmdStan home {home} is damaged ({name} is not what was built); build it again with "
                "`onebasin cmdstan build --force`."
            )


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
