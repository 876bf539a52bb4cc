"""A CmdStan directory: its place and version, and pointing cmdstanpy to it."""

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from .environment import check_home_path
from .errors import CmdStanNotFound

Origin = Literal["CMDSTAN", "cmdstanpy default", "conda", "assembled"]
Progress = Callable[[str], None]

MARKER = "onebasin.json"
"""Written last into a home of our own, so that its presence says the build was completed."""

_VERSION = re.compile(r"^CMDSTAN_VERSION := (\d+)\.(\d+)\.(\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Home:
    """A CmdStan directory."""

    path: Path  # The directory, absolute.
    version: tuple[int, int, int]  # CmdStan's version, as its makefile gives it.
    origin: Origin

    @property
    def supports_jacobian_statement(self) -> bool:
        """Tell whether ``jacobian += ...`` compiles (Stan 2.36); our own programs use it."""
        return self.version >= (2, 36, 0)


def activate(home: Home) -> None:
    """Make cmdstanpy use this directory, for the whole process (it sets ``CMDSTAN``).

    Only the code that compiles or runs a program calls this, just before it does.
    """
    import cmdstanpy

    cmdstanpy.set_cmdstan_path(str(home.path))


def read_home(path: Path, origin: Origin) -> Home:
    """Check that ``path`` is a CmdStan directory whose path make can take, and read its version."""
    advice = "It has to be the top directory of a CmdStan installation, the one with `makefile`."
    if not os.path.isdir(path):  # unlike Path.is_dir, false where it may not look
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


def read_marker(path: Path) -> dict[str, Any] | None:
    """Read the marker of a home of our own; empty where there is none, None where it is damaged."""
    try:
        facts = json.loads((path / MARKER).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        return None
    return facts if isinstance(facts, dict) else None


@contextmanager
def building_lock(made: Path, report: Progress | None = None) -> Iterator[None]:
    """Let one process at a time build a home or a program; say so before waiting for another.

    The lock lies next to what is made, and stays. The kernel lets go of that of a process that has ended.
    """
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
