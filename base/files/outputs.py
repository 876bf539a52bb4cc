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
from functools import partial
from pathlib import Path

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
    path: Path,
    *,
    force: bool,
    error: type[Exception],
    argument: str = "path",
    inputs: Iterable[Path] = (),
    make_folder: bool = True,
    replaces: Callable[[Path], bool] | None = None,
) -> Iterator[Path]:
    """Hold an output from before the work until it is written; the parameters are those of `check_output`.

    Yields
    ------
    Path
        The output.

    Raises
    ------
    Exception
        What `check_output` raises.
    InUse
        If somebody else is writing it.
    """
    inputs = tuple(inputs)
    check = partial(
        check_output,
        path,
        force=force,
        error=error,
        argument=argument,
        inputs=inputs,
        make_folder=make_folder,
        replaces=replaces,
    )
    check()
    with ExitStack() as held:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            held.enter_context(locked(path, argument=argument, alongside=True))
        except OSError as reason:
            raise error(_unwritable(path, argument, reason)) from reason
        sweep(path.parent)
        check()  # again, now that nobody else writes it: who held the lock a moment ago has written it
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

    Parameters
    ----------
    path : Path
        The file.
    force : bool
        Whether one that is there may be replaced.
    error : type
        What is raised.
    argument : str
        What the message calls the file.
    inputs : iterable of Path
        Files that the work reads, none of which the output may be.
    make_folder : bool
        Whether a folder that is not there would be made; refused otherwise.
    replaces : callable, optional
        For an output that is a folder of files itself: tells which folders it may take the place of.

    Raises
    ------
    Exception
        If it is no plain file, is an input, exists and `force` is false, or its folder cannot be written to; of the
        type `error`.
    """
    if not make_folder and not path.parent.is_dir():
        raise error(
            f"`{argument}` is {path}, which lies in a folder that does not exist: make {path.parent} first."
        )
    try:
        kind = _kind(path)
        same = next((given for given in inputs if _is_same(path, given)), None)
        if replaces is not None and (kind == stat.S_IFREG or kind == stat.S_IFDIR):
            kind = _kind_of_folder(path, argument, replaces, error)
        if kind == 0 or (kind == stat.S_IFREG and force and same is None):
            tempfile.TemporaryFile(dir=_nearest_folder(path)).close()
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


def _kind_of_folder(
    path: Path, argument: str, replaces: Callable[[Path], bool], error: type[Exception]
) -> int:
    """Take a folder that may be replaced for a file that may; refuse any other, and a file."""
    if not path.is_dir():
        raise error(
            f"`{argument}` is {path}, which is a file, and a folder is written: give another name."
        )
    if not replaces(path):
        raise error(
            f"`{argument}` is {path}, which is a folder of something else: give another name."
        )
    return stat.S_IFREG


def _kind(path: Path) -> int:
    """Return the type of the file at a path, as `stat.S_IFMT` gives it; 0 for none."""
    try:
        return stat.S_IFMT(os.lstat(path).st_mode)
    except FileNotFoundError:
        return 0


def _is_same(path: Path, given: Path) -> bool:
    """Tell whether two names are of one file, by links too."""
    try:
        return path.samefile(given)
    except OSError:  # one of them is not there
        return path.resolve() == given.resolve()


def _nearest_folder(path: Path) -> Path:
    """The folder of a file, or the nearest above it that is there."""
    return next(parent for parent in path.absolute().parents if os.path.lexists(parent))


def _unwritable(path: Path, argument: str, reason: OSError) -> str:
    return (
        f"`{argument}` is {path}, but its folder cannot be written to: {reason.strerror or reason}; "
        "name a file in a folder of yours."
    )
