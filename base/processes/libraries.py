"""Settings that a process makes before it uses certain libraries."""

from __future__ import annotations

import logging
import os
import sys
from contextlib import suppress


def prepare_libraries() -> None:
    """Set JAX's flags before anything uses it (double precision, a persistent cache), and quieten JAX and cmdstanpy.

    Small kernels are cached too, because compiling a small network takes longer than sampling it. JAX keeps the code of
    different versions and processors apart. If the user has chosen a cache folder for JAX, it is used. Importing JAX
    takes a second, so if it is not loaded yet, environment variables set the flags.
    """
    from ..files.cache import COMPILED, keep_compiled, make_user_cache

    with suppress(OSError):  # JAX works without a cache.
        if "jaxlib" in sys.modules:  # `jax` itself may be a lazy module.
            import jax

            jax.config.update("jax_enable_x64", True)
            keep_compiled()
        else:
            os.environ["JAX_ENABLE_X64"] = "1"
            os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
            if not os.environ.get("JAX_COMPILATION_CACHE_DIR"):
                os.environ["JAX_COMPILATION_CACHE_DIR"] = str(make_user_cache(COMPILED))
    for name in ("jax", "jax._src.xla_bridge", "absl"):
        logging.getLogger(name).setLevel(logging.ERROR)
    # Keep cmdstanpy's log off the terminal; failures raise errors anyway.
    logger = logging.getLogger("cmdstanpy")
    logger.setLevel(logging.CRITICAL)
    logger.propagate = False
    logger.addHandler(logging.NullHandler())


def leave_jax_unloaded() -> None:
    """Remove the lazy module `jax` that ArviZ adds to the loaded modules, in a process that draws figures.

    Matplotlib asks the module for its class of arrays, which would load it and take a second. A later import of JAX
    works as usual, but ArviZ's converter of NumPyro's results does not.
    """
    import arviz_base  # noqa: F401 - it adds the module

    if "jaxlib" not in sys.modules:
        sys.modules.pop("jax", None)
