"""Locks of outputs and run folders: one writer at a time, whom the next one can name.

A lock is a hidden file that is held by `flock`: next to an output (``.run.nc.lock``), inside a folder (``.lock``). The
kernel lets go of it when its holder ends, however it ends, so that a file left by a killed process blocks nobody; the
next holder takes it over, and whoever holds it deletes it. It tells who that is. `filelock` would empty the file before
it knows whether it may have it, and so lose the name. On NFS a lock holds between machines where the server offers
locks; where a file system has none, nothing is locked, which a notice says once; nor is it on Windows.
"""

from __future__ import annotations

import errno
import json
import os
import shlex
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from ..errors import InUse
from ..notices import notice
from .leftovers import note_place

if sys.platform != "win32":
    import fcntl

_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)
_LONGEST_COMMAND = 200


@contextmanager
def locked(path: Path, *, argument: str, alongside: bool = False) -> Iterator[None]:
    """Hold the lock of a file that is to be written, in a folder that exists, or of a folder that is there.

    Messages call it `argument`. With `alongside` the lock lies next to it even where it is a folder, as that of an
    output does.

    Raises
    ------
    InUse
        At once, if somebody else holds it; the message says who.
    OSError
        If no file can be made there.
    """
    place = lock_file(path, alongside=alongside)
    note_place(place.absolute().parent, Path(tempfile.gettempdir()))
    descriptor = _acquire(place, path, argument)
    try:
        yield
    finally:
        if descriptor is not None:
            # While it is held: who opened it to wait finds it gone, and makes another (see `_acquire`).
            with suppress(OSError):
                place.unlink()
            os.close(descriptor)


def lock_file(path: Path, *, alongside: bool = False) -> Path:
    """The file that is locked for a file or folder."""
    inside = path.is_dir() and not alongside
    return path / ".lock" if inside else path.with_name(f".{path.name}.lock")


def _acquire(place: Path, path: Path, argument: str) -> int | None:
    """Open and lock; None where the file system or the platform has no locks."""
    if sys.platform == "win32":
        return None
    while True:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(place, flags, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            by = _read_holder(descriptor)
            os.close(descriptor)
            if error.errno in _NO_LOCKS:
                place.unlink(missing_ok=True)
                _say_there_are_none(place.parent)
                return None
            raise InUse(
                f"`{argument}` is {path}, which {by} is writing; wait until it has ended, or give another name."
            ) from None
        with suppress(FileNotFoundError):
            if os.path.samestat(os.lstat(place), os.fstat(descriptor)):
                words = [Path(sys.argv[0] or "python").name, *sys.argv[1:]]
                holder = {
                    "pid": os.getpid(),
                    "host": socket.gethostname(),
                    "command": shlex.join(words)[:_LONGEST_COMMAND],
                    "since": datetime.now(UTC).isoformat(timespec="seconds"),
                }
                with suppress(OSError):  # a full disk; the lock holds without a name too
                    os.ftruncate(descriptor, 0)
                    os.pwrite(descriptor, json.dumps(holder).encode(), 0)
                return descriptor
        os.close(descriptor)  # its last holder has deleted it meanwhile


@cache
def _say_there_are_none(folder: Path) -> None:
    """Say once of a folder that its file system has no locks."""
    notice(
        f"the file system of {folder} has no locks: see to it that no two commands write the same file there"
    )


def _read_holder(descriptor: int) -> str:
    try:
        holder = json.loads(os.pread(descriptor, 1 << 16, 0))
        here = "" if holder["host"] == socket.gethostname() else f" on {holder['host']}"
        return f"process {holder['pid']}{here} (`{holder['command']}`, since {holder['since']})"
    except (OSError, ValueError, TypeError, KeyError):  # it has not written its name yet
        return "another process"
