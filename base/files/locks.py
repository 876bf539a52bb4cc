"""Locks of outputs and run folders: one writer at a time, whom the next one can name.

A lock is a hidden file that is held by `flock`: next to an output (``.run.nc.lock``), inside a folder (``.lock``). The
kernel lets go of it when its holder ends, however it ends, so that a file left by a killed process blocks nobody. It
tells who holds it, which a lock of `filelock` cannot, as that empties the file first. Where a file system has no locks,
nothing is locked, which a notice says once; nor is it on Windows.
"""

from __future__ import annotations

import errno
import os
import shlex
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from ..errors import InUse
from ..run_log import notice

if sys.platform != "win32":
    import fcntl

_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)
_LONGEST_COMMAND = 200


@contextmanager
def locked(path: Path, *, argument: str, alongside: bool = False) -> Iterator[None]:
    """Hold the lock of a file that is to be written, in a folder that exists, or of a folder that is there.

    Messages call it `argument`. With `alongside` the lock lies next to it even where it is a folder, as that of an
    output does. It is `InUse`, at once, if somebody else holds it; the message says who.
    """
    inside = path.is_dir() and not alongside
    place = path / ".lock" if inside else path.with_name(f".{path.name}.lock")
    descriptor = None if sys.platform == "win32" else _acquire(place, path, argument)
    try:
        yield
    finally:
        if descriptor is not None:
            # While it is held: who opened it to wait finds it gone, and makes another (see `_acquire`).
            with suppress(OSError):
                place.unlink()
            os.close(descriptor)


def _acquire(place: Path, path: Path, argument: str) -> int | None:
    """Open and lock; None where the file system has no locks."""
    while True:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(place, flags, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            by = os.pread(descriptor, 1 << 12, 0).decode(errors="replace") or "another process"
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
                with suppress(OSError):  # a full disk; the lock holds without a name too
                    os.ftruncate(descriptor, 0)
                    os.pwrite(descriptor, _own_name().encode(errors="replace"), 0)
                return descriptor
        os.close(descriptor)  # its last holder has deleted it meanwhile


def _own_name() -> str:
    words = shlex.join([Path(sys.argv[0] or "python").name, *sys.argv[1:]])[:_LONGEST_COMMAND]
    since = datetime.now(UTC).isoformat(timespec="seconds")
    return f"process {os.getpid()} (`{words}` on {socket.gethostname()}, since {since})"


@cache
def _say_there_are_none(folder: Path) -> None:
    """Say once of a folder that its file system has no locks."""
    notice(
        f"the file system of {folder} has no locks: see to it that no two commands write the same file there"
    )
