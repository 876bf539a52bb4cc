"""Finding a CmdStan directory.

The order is: the environment variable ``CMDSTAN``; the newest one under ``~/.cmdstan``, where
cmdstanpy installs; the one of the active conda environment; and one that
:mod:`.assemble` has put together in the user's cache. A ``CMDSTAN`` that names something else
is an error rather than a reason to look further, since its owner meant it to be used.
"""

import os
import re
from pathlib import Path

from .assemble import assemble
from .cache import assembled_path, is_complete
from .directory import Home, Origin, Progress, read_home
from .errors import CmdStanNotFound, HomeBuildError
from .toolchain import find_parts

_FOLDER = re.compile(r"^cmdstan-(\d+)\.(\d+)\.(\d+)(?:-rc(\d+))?$")


def existing_cmdstan() -> Home | None:
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


def find_cmdstan(*, build: bool = True, progress: Progress | None = None) -> Home:
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
    found = existing_cmdstan()
    if found is not None:
        return found
    if not build:
        raise CmdStanNotFound(
            "No CmdStan directory was found (looked at CMDSTAN, ~/.cmdstan, the conda environment "
            "and onebasin's cache). Call `stan.find_cmdstan()` to assemble one, or set CMDSTAN."
        )
    return assemble(progress=progress)


def missing() -> str:
    """Say why there is no CmdStan and none can be assembled, with what to do; empty if one can be used.

    Raises
    ------
    CmdStanNotFound
        ``CMDSTAN`` is set to something that is no CmdStan directory.
    """
    if existing_cmdstan() is not None:
        return ""
    try:
        find_parts()
    except HomeBuildError as error:
        return str(error)
    return ""


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
    path = assembled_path()
    if path is None or not is_complete(path):
        return None
    return _read_if_usable(path, "assembled")


def _read_if_usable(path: Path, origin: Origin) -> Home | None:
    try:
        return read_home(path, origin)
    except CmdStanNotFound:
        return None
