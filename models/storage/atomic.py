"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .leftovers import sweep, unfinished


def prepare_folder(path: Path) -> None:
    """Make the folder that a file is to lie in, and see that files can be written there.

    Raises
    ------
    OSError
        If it cannot be made or written to.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    tempfile.TemporaryFile(dir=path.parent).close()


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Put a file in the place of `path` once it is written.

    A write that fails or is interrupted leaves what was there before, and nothing else. The file is on the disk before
    it takes its name, and the name is there before this ends: after a power cut, too, there is the old file or the
    new one. The file's permissions are those of any new file; those of `tempfile` would let nobody else read it.

    Parameters
    ----------
    path : Path
        The file, there already or not; its folder exists.

    Yields
    ------
    Path
        Where to write: a name in the same folder that is not taken. What killed writers left in that folder is gone.
    """
    sweep(path.parent)
    part = unfinished(path)
    try:
        yield part
        _flush(part)
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    with suppress(
        OSError
    ):  # some file systems cannot flush a folder; the file is whole all the same
        _flush(path.parent)


def _flush(path: Path) -> None:
    """Wait until a file's content, or a folder's names, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
