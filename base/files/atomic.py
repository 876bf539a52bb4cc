"""Files, and folders of files that are one output as Zarr stores are: they appear whole or not at all."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain, count
from pathlib import Path

from ..errors import NameTaken, WriteError
from .leftovers import sweep, unfinished

_HERE = -100
"""Linux's number for the working folder where a path is relative (AT_FDCWD)."""
_EXCHANGE = 2
_TAKEN = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR)


@contextmanager
def replacing(path: Path, *, new: bool = False) -> Iterator[Path]:
    """Put a file, or a folder of files, in the place of `path` once it is written.

    A write that fails or is interrupted leaves what was there before, and nothing else. What is written is on the disk
    before it takes its name, and the name is there before this ends: after a power cut, too, there is the old one or
    the new one. Its permissions are those of any new file; those of `tempfile` would let nobody else read it. Where the
    system cannot exchange two folders at once, as Linux and macOS can, the old one is called NAME.old meanwhile.

    Yielded is where to write: a name in the same folder that is not taken. What killed writers left there is gone. With
    `new`, something that has appeared at `path` meanwhile stays, and this one gets another name next to it.

    Raises
    ------
    NameTaken
        If `new` is true and something is there at the end; it says which name this one has got.
    WriteError
        If it cannot be written, such as on a full disk; it names the file.
    """
    sweep(path.parent)
    part = unfinished(path)
    try:
        yield part
        for written in [part, *part.rglob("*")]:
            flush(written)
        place = _put(part, path, new=new)
    except BaseException as error:
        _remove(part)
        if isinstance(error, OSError) and not isinstance(error, WriteError):
            why = (
                f"cannot be written ({error.strerror or error}), and what was there before is as it was; make room, or "
                "name a file in another place."
                if path.parent.is_dir()
                else f"cannot be written: its folder {path.parent} has gone away since this began, with all that was "
                "in it. What lies elsewhere is as it was; begin again, in a folder that nobody clears."
            )
            raise WriteError(path, f"{path} {why}") from error
        raise
    # Some file systems cannot flush a folder; the file is whole all the same.
    with suppress(OSError):
        flush(path.parent)
    if place != path:
        raise NameTaken(path, place)


def flush(path: Path) -> None:
    """Wait until a file's content, or a folder's names, are on the disk."""
    # Windows flushes what is open for writing alone.
    descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _put(part: Path, path: Path, *, new: bool) -> Path:
    """Give what is written the name `path`; if it is to be new, the first of run-1.nc, run-2.nc, ... that is free."""
    if not new:
        if part.is_dir() and os.path.lexists(path):
            _exchange(part, path)
            _remove(part)
        else:
            os.replace(part, path)
        return path
    names = (path.with_name(f"{path.stem}-{number}{path.suffix}") for number in count(1))
    for place in chain([path], names):
        if os.path.lexists(place):  # an empty folder would be taken for none
            continue
        try:
            _name(part, place)
        except OSError as error:
            if error.errno not in _TAKEN:
                raise
            continue
        return place
    raise AssertionError("numbers have no end")


def _name(part: Path, place: Path) -> None:
    """Give a name that is free; one that appears amid it is refused where the file system has links."""
    if not part.is_dir():
        try:
            os.link(part, place)
        except FileExistsError:
            raise
        except OSError:
            pass
        else:
            part.unlink()
            return
    os.rename(part, place)


def _exchange(part: Path, path: Path) -> None:
    """Let two folders change their names."""
    names = os.fsencode(part.absolute()), os.fsencode(path.absolute())
    library = ctypes.CDLL(None, use_errno=True)
    try:
        if sys.platform == "darwin":
            failed = library.renamex_np(*names, _EXCHANGE)
        else:
            failed = library.renameat2(_HERE, names[0], _HERE, names[1], _EXCHANGE)
    except AttributeError:  # an older system
        failed = -1
    if failed:
        old = path.with_name(f"{path.name}.old")
        os.rename(path, old)
        os.rename(part, path)
        os.rename(old, part)


def _remove(part: Path) -> None:
    with suppress(OSError):  # the disk that failed may fail again; the first error tells more
        if part.is_dir():
            shutil.rmtree(part, ignore_errors=True)
        else:
            part.unlink(missing_ok=True)
