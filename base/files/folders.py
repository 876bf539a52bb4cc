"""Folders of files that are one output, as Zarr stores are: they appear whole or not at all."""

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
from .atomic import flush
from .leftovers import sweep, unfinished

_HERE = -100
"""Linux's number for the working folder where a path is relative (AT_FDCWD)."""
_EXCHANGE = 2
_TAKEN = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR)


@contextmanager
def replacing_folder(path: Path, *, new: bool = False) -> Iterator[Path]:
    """Put a folder in the place of `path` once it is written; what `atomic.replacing` promises of files holds.

    Where the system can exchange two names at once (Linux, macOS), there is the old folder or the new one at every
    moment; elsewhere the old one is called NAME.old meanwhile.

    Parameters
    ----------
    path : Path
        The folder, there already or not.
    new : bool
        Whether something that has appeared there meanwhile stays: then this one gets another name next to it.

    Yields
    ------
    Path
        Where to write: a name in the same folder that is not taken.

    Raises
    ------
    NameTaken
        If `new` is true and something is there at the end; it says which name the folder has got.
    WriteError
        If it cannot be written, such as on a full disk.
    """
    sweep(path.parent)
    part = unfinished(path)
    try:
        yield part
        for file in part.rglob("*"):
            flush(file)
        place = _put(part, path, new=new)
    except BaseException as error:
        shutil.rmtree(part, ignore_errors=True)
        if isinstance(error, OSError) and not isinstance(error, WriteError):
            raise WriteError(
                path,
                f"{path} cannot be written ({error.strerror or error}), and what was there before is as it was; make "
                "room, or name another place.",
            ) from error
        raise
    with suppress(OSError):
        flush(path.parent)
    if place != path:
        raise NameTaken(path, place)


def _put(part: Path, path: Path, *, new: bool) -> Path:
    if not new and os.path.lexists(path):
        _exchange(part, path)
        shutil.rmtree(part, ignore_errors=True)
        return path
    names = (path.with_name(f"{path.stem}-{number}{path.suffix}") for number in count(1))
    for place in chain([path], names):
        if os.path.lexists(place):  # an empty folder would be taken for none
            continue
        try:
            os.rename(part, place)
        except OSError as error:
            if error.errno not in _TAKEN:
                raise
            continue
        return place
    raise AssertionError("numbers have no end")


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
