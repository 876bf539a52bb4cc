"""A CmdStan directory: its place and version, and pointing cmdstanpy to it."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from .environment import check_home_path
from .errors import CmdStanNotFound

Origin = Literal["CMDSTAN", "cmdstanpy default", "conda", "assembled"]
Progress = Callable[[str], None]

MARKER = "onebasin.json"
"""Written last into a home of our own, so that its presence says the build was completed."""

_VERSION = re.compile(r"^CMDSTAN_VERSION := (\d+)\.(\d+)\.(\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Home:
    """A CmdStan directory.

    Attributes
    ----------
    path
        The directory, absolute.
    version
        CmdStan's version, as its makefile gives it.
    origin
        How it was found.
    """

    path: Path
    version: tuple[int, int, int]
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
    """Check that ``path`` is a CmdStan directory, and read its version.

    Raises
    ------
    CmdStanNotFound
        There is no such directory, it has no makefile with a version, or make cannot take its path.
    """
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


@contextmanager
def building_lock(made: Path, report: Progress | None = None) -> Iterator[None]:
    """Let one process at a time build a home or a program; say so before waiting for another.

    The kernel lets go of the lock of a process that has ended, however it ended.

    Parameters
    ----------
    made : Path
        What is made; the lock lies next to it, and stays.
    report : callable, optional
        Called with a line of text before waiting.
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
