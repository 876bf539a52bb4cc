"""Names for what is not finished, and the removal of what killed processes left under them.

A part of a file and a temporary folder are named after what they are to become and the process that makes them:
``.run.nc.onebasin-MACHINE-PID-START-SERIAL``. Whoever makes another one in the same folder first removes those whose
process has ended; those of processes at work, of other machines and of other users stay, and so does every other file.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from .makers import Maker

if sys.platform != "win32":
    import fcntl

_NAME = re.compile(rf"\..*\.onebasin-(?P<maker>{Maker.PATTERN})-[0-9a-f]{{8}}", re.DOTALL)
_LONGEST = 190
"""Bytes of a name that are taken over: file systems take 255 in all."""
_PLACES = "places"
"""A file in a command's temporary folder: the folders in which it has made something."""


def unfinished(path: Path) -> Path:
    """Give the name under which this process makes `path`, next to it; each call gives another."""
    note_place(path.absolute().parent, Path(tempfile.gettempdir()))
    name = os.fsencode(path.name)[:_LONGEST].decode(errors="ignore")
    return path.with_name(f".{name}.onebasin-{Maker.own()}-{secrets.token_hex(4)}")


@cache
def note_place(folder: Path, home: Path) -> None:
    """Note in a command's temporary folder that it makes something in a folder, which is swept with it after a kill."""
    if _NAME.fullmatch(home.name) and folder != home:
        with suppress(OSError), (home / _PLACES).open("ab") as file:
            file.write(os.fsencode(folder) + b"\0")


def sweep(folder: Path) -> None:
    """Remove what processes that have ended left in a folder; what cannot be removed stays.

    That is what was not finished, files of locks that nobody holds, and the same in all folders that a command's
    temporary folder among them notes.
    """
    places: list[bytes] = []
    with suppress(OSError), os.scandir(folder) as entries:
        for path in [Path(entry) for entry in entries if entry.name.startswith(".")]:
            with suppress(OSError, ValueError):
                maker = _maker(path)
                if maker is not None and maker.has_ended and _is_ours(path):
                    status = path.lstat()
                    with suppress(OSError):
                        places += (path / _PLACES).read_bytes().split(b"\0")[:-1]
                    if stat.S_ISDIR(status.st_mode):
                        shutil.rmtree(path, ignore_errors=True)
                    elif stat.S_ISREG(status.st_mode):
                        path.unlink()
                elif path.name.endswith(".lock"):
                    with path.open("rb") as file:
                        holder = json.loads(file.read(1 << 16) or b"0")
                        ours = _is_ours(path) and isinstance(holder, dict)
                        if ours and holder.keys() >= {"pid", "host", "since"}:
                            fcntl.flock(file, fcntl.LOCK_NB | fcntl.LOCK_EX)  # nobody holds it
                            path.unlink()
    for place in set(places):
        sweep(Path(os.fsdecode(place)))


def leftovers(folder: Path) -> list[Path]:
    """List what is unfinished in a folder, but for what processes at work on this machine are making."""
    try:
        makers = [(path, _maker(path)) for path in folder.iterdir()]
    except OSError:
        return []
    return [path for path, maker in makers if maker is not None and not maker.is_at_work]


def lost_folder(error: BaseException | None) -> str:
    """Say, where an error comes of it, that a temporary folder was removed while it was used; empty where none was."""
    lost = [Path(tempfile.gettempdir())]
    while error is not None:
        if isinstance(error, OSError) and isinstance(error.filename, str | bytes):
            path = Path(os.fsdecode(error.filename))
            lost += [path, *path.parents]
        error = error.__cause__ or error.__context__
    for folder in reversed(lost):
        if _NAME.fullmatch(folder.name) and not folder.exists():
            return f"the temporary folder {folder} was removed while the command ran, which has ended by it"
    return ""


def temporary_folder(name: str, parent: Path | None = None) -> Path:
    """Make a folder that only its owner can enter, after a sweep; the caller removes it, or the next sweep does.

    Its name begins with `name`; it lies in `parent`, or among the temporary files.
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


def _maker(path: Path) -> Maker | None:
    """Return the process that made something under a name of `unfinished`; None for other names."""
    found = _NAME.fullmatch(path.name)
    return Maker.read(found["maker"]) if found else None


def _is_ours(path: Path) -> bool:
    return not hasattr(os, "geteuid") or path.lstat().st_uid == os.geteuid()
