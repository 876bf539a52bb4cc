"""The user's cache. Nobody else may write to it, since onebasin runs programs from it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import platformdirs

from ..errors import OnebasinError

_PRIVATE = 0o700
_ADVICE = "remove the cache, or set XDG_CACHE_HOME to a folder of your own"
COMPILED = "jax"
"""Folder for JAX's compiled code."""


class CacheError(OnebasinError, RuntimeError):
    """Raised when other users may write to the cache, so nothing is run from it."""


def user_cache(part: str = "") -> Path:
    """Return the path of a folder in the user's cache, such as ``programs``, whether it exists or not.

    The cache and the folder are made private. Raise `CacheError` if one of them belongs to another user, or if any user
    may write to it.
    """
    top = platformdirs.user_cache_path("onebasin")
    for place in {top, top / part}:
        if os.name == "nt" or not os.access(place, os.F_OK):  # Windows keeps them private.
            continue
        found = place.stat()
        # Trust root (user 0), who also owns the system's programs.
        if found.st_uid not in (os.geteuid(), 0):
            raise CacheError(
                f"The cache {place} belongs to another user (ID {found.st_uid}), but onebasin runs programs from it: "
                f"{_ADVICE}."
            )
        if found.st_mode & stat.S_IWOTH:
            raise CacheError(
                f"Any user can write to the cache {place}, but onebasin runs programs from it: {_ADVICE}."
            )
        if found.st_mode & 0o777 & ~_PRIVATE and found.st_uid == os.geteuid():
            place.chmod(_PRIVATE)
    return top / part


def make_user_cache(part: str) -> Path:
    """Return a private folder in the user's cache, and create it if needed; may raise `CacheError`."""
    folder = user_cache(part)
    folder.parent.parent.mkdir(parents=True, exist_ok=True)
    for place in (folder.parent, folder):
        place.mkdir(mode=_PRIVATE, exist_ok=True)
    return folder


def keep_compiled(folder: str | os.PathLike[str] | None = None) -> Path:
    """Keep the programs that JAX compiles from now on, so that later processes need not compile them again.

    All commands do so automatically. In Python, call it once before you sample. It sets JAX's configuration for the
    whole process (`jax_compilation_cache_dir`).

    Parameters
    ----------
    folder : path, optional
        The folder, created if it does not exist. JAX runs programs from it, so nobody else should be able to write to
        it. By default the folder already set for JAX, such as by ``JAX_COMPILATION_CACHE_DIR``, or else the folder in
        the user's cache that the commands use.

    Returns
    -------
    Path
        The folder, which may be removed at any time.

    Raises
    ------
    TypeError, ValueError
        If `folder` is not a path.
    CacheError
        If the user's cache belongs to another user, or any user may write to it.
    OSError
        If the folder cannot be created.

    Examples
    --------
    >>> ob.keep_compiled("compiled").name
    'compiled'
    """
    import jax
    from jax.experimental.compilation_cache import compilation_cache

    if folder is not None:
        from ..checks import check_path  # Imported late, because it loads NumPy.

        chosen = check_path("folder", folder).resolve()
        chosen.mkdir(parents=True, exist_ok=True)
    elif jax.config.jax_compilation_cache_dir is not None:
        chosen = Path(jax.config.jax_compilation_cache_dir)
    else:
        chosen = make_user_cache(COMPILED)
    if jax.config.jax_compilation_cache_dir != str(chosen):
        # JAX opened its cache, or found none, when it first compiled.
        compilation_cache.reset_cache()
        jax.config.update("jax_compilation_cache_dir", str(chosen))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    return chosen
