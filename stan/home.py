"""Finding a CmdStan directory for cmdstanpy.

The order is: the environment variable ``CMDSTAN``; the newest one under ``~/.cmdstan``, where
cmdstanpy installs; the one of the active conda environment; and one that
:mod:`stan.assemble` has put together in the user's cache. A ``CMDSTAN`` that names something else
is an error rather than a reason to look further, since its owner meant it to be used.
"""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from .errors import CmdStanNotFound

Origin = Literal["CMDSTAN", "cmdstanpy default", "conda", "assembled"]
Progress = Callable[[str], None]

MARKER = "onebasin.json"
"""Written last into a home of our own, so that its presence says the build was completed."""

_VERSION = re.compile(r"^CMDSTAN_VERSION := (\d+)\.(\d+)\.(\d+)", re.MULTILINE)
_FOLDER = re.compile(r"^cmdstan-(\d+)\.(\d+)\.(\d+)(?:-rc(\d+))?$")


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
        """Whether ``jacobian += ...`` compiles (Stan 2.36); our own programs use it."""
        return self.version >= (2, 36, 0)


def find() -> Home | None:
    """Find a CmdStan directory without building one.

    Returns
    -------
    Home or None
        The first of the search order, ``None`` where there is none.

    Raises
    ------
    CmdStanNotFound
        ``CMDSTAN`` is set to something that is no CmdStan directory.
    """
    return _from_environment() or _from_default() or _from_conda() or _from_cache()


def home(*, build: bool = True, progress: Progress | None = None) -> Home:
    """Find a CmdStan directory, or assemble one.

    Parameters
    ----------
    build
        Assemble one where none is found (minutes, once a machine).
    progress
        Called with the name of each stage of the assembly.

    Raises
    ------
    CmdStanNotFound
        None is found and ``build`` is false, or ``CMDSTAN`` is wrong.
    HomeBuildError
        The assembly failed.
    """
    found = find()
    if found is not None:
        return found
    if not build:
        raise CmdStanNotFound(
            "No CmdStan directory was found (looked at CMDSTAN, ~/.cmdstan, the conda environment "
            "and onebasin's cache). Call `stan.home.home()` to assemble one, or set CMDSTAN."
        )
    from .assemble import assemble

    return assemble(progress=progress)


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
        There is no such directory, or it has no makefile with a version.
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
    match = _VERSION.search(makefile)
    if match is None:
        raise CmdStanNotFound(f"The makefile of `{path}` ({origin}) names no version. {advice}")
    major, minor, patch = (int(part) for part in match.groups())
    if os.path.isfile(path / MARKER):
        origin = "assembled"  # `activate` has set CMDSTAN to our own
    return Home(path.absolute(), (major, minor, patch), origin)


def _from_environment() -> Home | None:
    value = os.environ.get("CMDSTAN", "")
    return read_home(Path(value).expanduser(), "CMDSTAN") if value else None


def _from_default() -> Home | None:
    folder = Path.home() / ".cmdstan"
    try:
        releases = [(rank, entry) for entry in folder.iterdir() if (rank := _release(entry))]
    except OSError:
        return None
    for _, candidate in sorted(releases, reverse=True):
        found = _read_if_usable(candidate, "cmdstanpy default")
        if found is not None:
            return found
    return None


def _release(folder: Path) -> tuple[float, ...] | None:
    """Sort key of a release's folder: a release candidate comes before its release."""
    match = _FOLDER.match(folder.name)
    if match is None:
        return None
    major, minor, patch, candidate = match.groups()
    rank = float("inf") if candidate is None else float(candidate)
    return (float(major), float(minor), float(patch), rank)


def _from_conda() -> Home | None:
    prefix = os.environ.get("CONDA_PREFIX", "")
    return _read_if_usable(Path(prefix) / "bin" / "cmdstan", "conda") if prefix else None


def _from_cache() -> Home | None:
    from .assembled import assembled_path, is_complete

    path = assembled_path()
    if path is None or not is_complete(path):
        return None
    return _read_if_usable(path, "assembled")


def _read_if_usable(path: Path, origin: Origin) -> Home | None:
    try:
        return read_home(path, origin)
    except CmdStanNotFound:
        return None
