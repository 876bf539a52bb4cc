"""The folder of a home that makes libraries of Stan programs, with BridgeStan's C interface.

It lies inside an assembled home, whose makefile, headers and translator it uses, and is removed with it. What does not
depend on a program, the interface, is compiled when the first library is asked for.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from onebasin.base.files.writing import sweep, working_folder

from .assemble import assemble, run_make
from .directory import Home, Progress, building_lock
from .search import existing_cmdstan
from .toolchain import find_toolchain

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
