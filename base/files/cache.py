"""The user's cache: a folder that nobody else may write to, since programs are run from it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import platformdirs

from ..errors import OnebasinError

_PRIVATE = 0o700
_ADVICE = "remove it, or set XDG_CACHE_HOME to a folder of your own"


class CacheError(OnebasinError, RuntimeError):
    """A cache from which nothing is run, since others may have put it there."""


def user_cache(part: str = "") -> Path:
    """Return the path of a folder of the user's cache, such as ``programs``, or of all of it, whether it exists or not.

    What is there of the cache and the folder is made private to the user, where others could look into it.

    Raises
    ------
    CacheError
        If it, or the whole cache, belongs to another user, or any user may write to it.
    """
    top = platformdirs.user_cache_path("onebasin")
    for place in {top, top / part}:
        _make_private(place)
    return top / part


def make_user_cache(part: str) -> Path:
    """Make a folder of the user's cache that nobody else can look into, or find it there; may raise `CacheError`."""
    folder = user_cache(part)
    folder.parent.parent.mkdir(parents=True, exist_ok=True)
    for place in (folder.parent, folder):
        place.mkdir(mode=_PRIVATE, exist_ok=True)
    return folder


def _make_private(folder: Path) -> None:
    if not hasattr(os, "geteuid"):  # Windows, where a user's folders are private
        return
    try:
        found = folder.stat()
    except OSError:  # not there, or not to be seen
        return
    # What the machine's administrator has put there is as good as the programs of the system.
    if found.st_uid not in (os.geteuid(), 0):
        raise CacheError(
            f"The cache {folder} belongs to another user (number {found.st_uid}), and programs are run from it; "
            f"{_ADVICE}."
        )
    if found.st_mode & stat.S_IWOTH:
        raise CacheError(
            f"Any user may write to the cache {folder}, and programs are run from it; {_ADVICE}."
        )
    if found.st_mode & 0o777 & ~_PRIVATE and found.st_uid == os.geteuid():
        folder.chmod(_PRIVATE)
