"""Names for what is not finished, and the removal of what killed processes left under them.

A part of a file and a temporary folder are named after what they are to become and the process that makes them:
``.run.nc.onebasin-MACHINE-PID-START-SERIAL``. Whoever makes another one in the same folder first removes those whose
process has ended; those of processes at work, of other machines and of other users stay, and so does every other file.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .makers import Maker

_NAME = re.compile(rf"\..*\.onebasin-(?P<maker>{Maker.PATTERN})-[0-9a-f]{{8}}", re.DOTALL)
_LONGEST = 190
"""Bytes of a name that are taken over: file systems take 255 in all."""


def unfinished(path: Path) -> Path:
    """Give the name under which this process makes `path`, next to it; each call gives another."""
    name = os.fsencode(path.name)[:_LONGEST].decode(errors="ignore")
    return path.with_name(f".{name}.onebasin-{Maker.own()}-{secrets.token_hex(4)}")


def sweep(folder: Path) -> None:
    """Remove what processes that have ended left unfinished in a folder; what cannot be removed stays."""
    with suppress(OSError), os.scandir(folder) as entries:
        left = [Path(entry) for entry in entries if _is_left(entry.name)]
        for path in left:
            with suppress(OSError):
                _remove(path)


def temporary_folder(name: str, parent: Path | None = None) -> Path:
    """Make a folder that only its owner can enter, after a sweep; the caller removes it, or the next sweep does.

    Parameters
    ----------
    name : str
        What it is for; it becomes part of the folder's name.
    parent : Path, optional
        In which folder; that of temporary files if not given.
    """
    parent = parent or Path(tempfile.gettempdir())
    sweep(parent)
    folder = unfinished(parent / name)
    folder.mkdir(mode=0o700)
    return folder


@contextmanager
def working_folder(name: str, parent: Path | None = None) -> Iterator[Path]:
    """Work in a `temporary_folder`, which is removed at the end."""
    folder = temporary_folder(name, parent)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _is_left(name: str) -> bool:
    """Tell whether a name is one of `unfinished`, and its process has ended."""
    found = _NAME.fullmatch(name)
    maker = Maker.read(found["maker"]) if found else None
    return maker is not None and maker.has_ended


def _remove(path: Path) -> None:
    status = path.lstat()
    if hasattr(os, "geteuid") and status.st_uid != os.geteuid():
        return
    if stat.S_ISDIR(status.st_mode):
        shutil.rmtree(path, ignore_errors=True)
    elif stat.S_ISREG(status.st_mode):
        path.unlink()
