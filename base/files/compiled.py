"""Keep JAX's compiled code on disk for later processes: compiling takes longer than sampling a small model."""

from __future__ import annotations

import os
from pathlib import Path

from ..arguments import checks_arguments
from ..checks import check_path
from .cache import make_user_cache, user_cache

FOLDER = "jax"
"""The folder's name in the user's cache."""


@checks_arguments
def keep_compiled(folder: str | os.PathLike[str] | None = None) -> Path:
    """Keep what JAX compiles from now on, so that the next process that needs the same compiles nothing.

    All commands do so by themselves. In Python it is your choice, as it sets JAX's own configuration for the whole
    process (`jax_compilation_cache_dir`), whoever uses JAX in it: call it once, before you sample.

    Parameters
    ----------
    folder : path, optional
        Where, made if it is not there; programs are run from it, so nobody else should be able to write to it. By
        default what was chosen for JAX already, as by ``JAX_COMPILATION_CACHE_DIR``, else a folder of the user's cache,
        which the commands use too.

    Returns
    -------
    Path
        The folder, which may be removed at any time.

    Raises
    ------
    TypeError, ValueError
        If `folder` is no path.
    CacheError
        If the user's cache belongs to another user, or any user may write to it.
    OSError
        If the folder cannot be made.

    Examples
    --------
    >>> ob.keep_compiled("compiled").name
    'compiled'
    """
    import jax
    from jax.experimental.compilation_cache import compilation_cache

    if folder is not None:
        chosen = check_path("folder", folder).resolve()
        chosen.mkdir(parents=True, exist_ok=True)
    elif jax.config.jax_compilation_cache_dir is not None:
        chosen = Path(jax.config.jax_compilation_cache_dir)
    else:
        make_user_cache(FOLDER)
        chosen = user_cache(FOLDER)
    if jax.config.jax_compilation_cache_dir != str(chosen):
        # What has been compiled before has settled for the whole process that there is no cache, or another.
        compilation_cache.reset_cache()
        jax.config.update("jax_compilation_cache_dir", str(chosen))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    return chosen
