"""Whether a CmdStan directory can do its work: what it has to hold is there, and its compiler of Stan programs runs.

A makefile with a version makes a folder a CmdStan directory (`directory.read_home`); a copy that broke off, a release
that was never built and an assembly that lost a file have one too.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence

from .directory import Home

TIMEOUT = 60.0
"""Seconds that a tool may take to say its version."""

_RELEASE = ("make/program", "stan/src/stan/model/model_header.hpp")
_ASSEMBLED = ("include/stan/model/model_header.hpp", "build/default/engines.o")


def fault(home: Home) -> str:
    """Say in a sentence what is broken in a CmdStan directory and what to do; empty where nothing is."""
    ours = home.origin == "assembled"
    remedy = (
        "assemble it anew with `onebasin cmdstan build --force`"
        if ours
        else "run `make build` in it, install it anew, or unset CMDSTAN"
    )
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
