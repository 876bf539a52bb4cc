"""Find a CmdStan directory, and in one of ours the folder that makes libraries with BridgeStan's C interface.

The order is: the environment variable ``CMDSTAN``; the newest one under ``~/.cmdstan``, where cmdstanpy installs; the
one of the active conda environment; and one that `assemble` has put together in the user's cache. A ``CMDSTAN`` that
names something else is an error rather than a reason to look further, since its owner meant it to be used.

The folder of libraries lies inside an assembled home, whose makefile, headers and translator it uses, and is removed
with it. What does not depend on a program, the interface, is compiled when the first library is asked for.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from contextlib import suppress
from pathlib import Path

from onebasin.base.files.writing import sweep, working_folder

from .assemble import assemble, assembled_path, find_parts, find_toolchain, is_complete, run_make
from .directory import Home, Origin, Progress, building_lock, read_home
from .errors import CmdStanNotFound, HomeBuildError

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

    `progress` is called with the name of each stage of the assembly. It is `CmdStanNotFound` if none is found and none
    is to be built, or ``CMDSTAN`` is wrong, and a `HomeBuildError` if the assembly failed.
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


_SOURCES = Path(__file__).parents[1] / "bridge"


def bridge_home(*, progress: Progress | None = None) -> Home:
    """Find the home whose headers libraries are compiled with, or assemble it: of ours, since only that says how."""
    found = existing_cmdstan()
    if found is not None and found.origin == "assembled":
        return found
    return assemble(progress=progress)


def bridge_folder(home: Home) -> Path:
    """Give the folder that ``BRIDGESTAN`` accepts, put there if it is not.

    Its name changes with what is in it, so that a library of other sources is never taken for one of these.
    """
    digest = hashlib.sha256()
    sources = sorted(_SOURCES.iterdir())
    for source in sources:
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    folder = home.path / f"bridge-{digest.hexdigest()[:10]}"
    if not (folder / "Makefile").is_file():
        with building_lock(folder):
            sweep(folder.parent)
            if not (folder / "Makefile").is_file():
                with working_folder(folder.name, folder.parent) as part:
                    whole = part / "whole"
                    whole.mkdir()
                    for source in sources:
                        shutil.copy(source, whole)
                    shutil.rmtree(folder, ignore_errors=True)
                    whole.rename(folder)
    return folder


def build_interface(folder: Path, variables: tuple[str, ...], report: Progress) -> None:
    """Compile what all libraries of one set of flags share, if it is not there."""
    with building_lock(folder, report):
        command = [find_toolchain().make, *variables, "interface"]
        run_make(command, folder, folder / "interface.log", report)
