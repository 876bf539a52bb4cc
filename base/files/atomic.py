"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain, count
from pathlib import Path

from ..errors import NameTaken, WriteError
from .leftovers import sweep, unfinished


@contextmanager
def replacing(path: Path, *, new: bool = False) -> Iterator[Path]:
    """Put a file in the place of `path` once it is written.

    A write that fails or is interrupted leaves what was there before, and nothing else. The file is on the disk before
    it takes its name, and the name is there before this ends: after a power cut, too, there is the old file or the
    new one. The file's permissions are those of any new file; those of `tempfile` would let nobody else read it.

    Parameters
    ----------
    path : Path
        The file, there already or not; its folder exists.
    new : bool
        Whether a file that has appeared there meanwhile stays: then this one gets another name next to it.

    Yields
    ------
    Path
        Where to write: a name in the same folder that is not taken. What killed writers left in that folder is gone.

    Raises
    ------
    NameTaken
        If `new` is true and something is there at the end; it says which name the file has got.
    WriteError
        If the file cannot be written, such as on a full disk; it names the file.
    """
    sweep(path.parent)
    part = unfinished(path)
    try:
        yield part
        flush(part)
        if new:
            place = _put_beside(part, path)
        else:
            os.replace(part, path)
            place = path
    except BaseException as error:
        with suppress(OSError):  # the disk that failed may fail again; the first error tells more
            part.unlink(missing_ok=True)
        if isinstance(error, OSError) and not isinstance(error, WriteError):
            raise WriteError(path, _failure(path, error)) from error
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


def _put_beside(part: Path, path: Path) -> Path:
    """Give a file the name `path`, or the first of run-1.nc, run-2.nc, ... that is free."""
    names = (path.with_name(f"{path.stem}-{number}{path.suffix}") for number in count(1))
    for place in chain([path], names):
        try:
            os.link(part, place)
        except FileExistsError:
            continue
        except (
            OSError
        ):  # a file system without links, where there is a moment between look and move
            if os.path.lexists(place):
                continue
            os.replace(part, place)
            return place
        part.unlink()
        return place
    raise AssertionError("numbers have no end")


def _failure(path: Path, error: OSError) -> str:
    return (
        f"{path} cannot be written ({error.strerror or error}), and what was there before is as it was; make room, or "
        "name a file in another place."
    )
