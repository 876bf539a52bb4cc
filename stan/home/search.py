"""Finding a CmdStan directory.

The order is: the environment variable ``CMDSTAN``; the newest one under ``~/.cmdstan``, where
cmdstanpy installs; the one of the active conda environment; and one that
:mod:`.assemble` has put together in the user's cache. A ``CMDSTAN`` that names something else
is an error rather than a reason to look further, since its owner meant it to be used.
"""

import os
import re
from contextlib import suppress
from pathlib import Path

from .assemble import assemble, assembled_path, is_complete
from .directory import Home, Origin, Progress, read_home
from .errors import CmdStanNotFound, HomeBuildError
from .toolchain import find_parts

_FOLDER = re.compile(r"^cmdstan-(\d+)\.(\d+)\.(\d+)(?:-rc(\d+))?$")


def existing_cmdstan() -> Home | None:
    """Find a CmdStan directory without building one: the first of the search order; None where there is none."""
    if value := os.environ.get("CMDSTAN", ""):
        return read_home(Path(value).expanduser(), "CMDSTAN")
    try:
        entries = list((Path.home() / ".cmdstan").iterdir())
    except OSError:
        entries = []
    releases = []
    for entry in entries:
        if match := _FOLDER.match(entry.name):
            *numbers, candidate = match.groups()
            # A release candidate comes before its release.
            rank = float("inf") if candidate is None else float(candidate)
            releases.append(((*map(float, numbers), rank), entry))
    places: list[tuple[Path, Origin]] = [
        (entry, "cmdstanpy default") for _, entry in sorted(releases, reverse=True)
    ]
    if prefix := os.environ.get("CONDA_PREFIX", ""):
        places.append((Path(prefix) / "bin" / "cmdstan", "conda"))
    for path, origin in places:
        with suppress(CmdStanNotFound):
            return read_home(path, origin)
    path_of_ours = assembled_path()
    if path_of_ours is not None and is_complete(path_of_ours):
        with suppress(CmdStanNotFound):
            return read_home(path_of_ours, "assembled")
    return None


def find_cmdstan(*, build: bool = True, progress: Progress | None = None) -> Home:
    """Find a CmdStan directory, or assemble one (minutes, once a machine), unless not to `build`.

    `progress` is called with the name of each stage of the assembly.

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
    """Say why there is no CmdStan and none can be assembled, with what to do; empty if one can be used."""
    if existing_cmdstan() is not None:
        return ""
    try:
        find_parts()
    except HomeBuildError as error:
        return str(error)
    return ""
