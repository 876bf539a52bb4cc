"""Outputs: files that are to be written, refused or claimed before any work is done.

`check_output` refuses what cannot or must not be written; `claim` also holds the output's lock until the work is done.
Writing itself is `atomic.replacing`, with ``new=not force``: there a file that appeared meanwhile is seen.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from .leftovers import sweep
from .locks import locked

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_LONGEST_NAME = 255 - len("..lock")
"""In bytes: file systems allow 255, and the lock of a file has a longer name."""


@contextmanager
def claim(
    path: Path, *, error: type[Exception], argument: str = "path", **how: Any
) -> Iterator[Path]:
    """Hold an output from before the work until it is written, and yield it; keywords are those of `check_output`.

    Raises
    ------
    InUse
        If somebody else is writing it.
    """
    how |= {"error": error, "argument": argument, "inputs": tuple(how.get("inputs", ()))}
    check_output(path, **how)
    with ExitStack() as held:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            held.enter_context(locked(path, argument=argument, alongside=True))
        except OSError as reason:
            raise error(_unwritable(path, argument, reason)) from reason
        sweep(path.parent)
        # Again, now that nobody else writes it: who held the lock a moment ago has written it.
        check_output(path, **how)
        yield path


def check_output(
    path: Path,
    *,
    force: bool,
    error: type[Exception],
    argument: str = "path",
    inputs: Iterable[Path] = (),
    make_folder: bool = True,
    replaces: Callable[[Path], bool] | None = None,
) -> None:
    """Refuse a file that cannot or must not be written, before any work is done; nothing is made or changed.

    `error` is raised, and calls the file by the name `argument`. With `force` one that is there may be replaced, but
    never one of `inputs`, which the work reads. A folder that is not there is refused unless `make_folder`. For an
    output that is a folder of files itself, `replaces` tells which folders it may take the place of.
    """
    if not make_folder and not path.parent.is_dir():
        raise error(
            f"`{argument}` is {path}, which lies in a folder that does not exist: make {path.parent} first."
        )
    try:
        try:
            kind = stat.S_IFMT(os.lstat(path).st_mode)
        except FileNotFoundError:
            kind = 0
        same = None
        for given in inputs:
            try:
                alike = path.samefile(given)  # by links too
            except OSError:  # one of them is not there
                alike = os.path.realpath(path) == os.path.realpath(given)
            same = given if alike and same is None else same
        if replaces is not None and kind in (stat.S_IFREG, stat.S_IFDIR):
            wrong = "a file, and a folder is written" if kind == stat.S_IFREG else ""
            if not wrong and not replaces(path):
                wrong = "a folder of something else"
            if wrong:
                raise error(f"`{argument}` is {path}, which is {wrong}: give another name.")
            kind = stat.S_IFREG
        if kind == 0 or (kind == stat.S_IFREG and force and same is None):
            # The folder of the file, or the nearest above it that is there.
            above = next(parent for parent in path.absolute().parents if os.path.lexists(parent))
            tempfile.TemporaryFile(dir=above).close()
    except OSError as reason:
        raise error(_unwritable(path, argument, reason)) from reason
    if same is not None:
        raise error(f"`{argument}` is {path}, which is also the input {same}; name another file.")
    if kind in _KINDS:
        raise error(
            f"`{argument}` is {path}, which is {_KINDS[kind]}, and a file is needed: give another name."
        )
    if kind and not force:
        raise error(
            f"`{argument}` is {path}, which exists; name another file, or overwrite it with --force (force=True)."
        )
    if len(os.fsencode(path.name)) > _LONGEST_NAME:
        raise error(
            f"`{argument}` is {path}, whose name is too long: {_LONGEST_NAME} bytes are allowed."
        )


def _unwritable(path: Path, argument: str, reason: OSError) -> str:
    return (
        f"`{argument}` is {path}, but its folder cannot be written to: {reason.strerror or reason}; "
        "name a file in a folder of yours."
    )
