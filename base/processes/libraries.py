"""Settings of libraries that a process makes before it uses them."""

from __future__ import annotations

import logging
import os
import sys
from contextlib import suppress


def prepare_jax() -> None:
    """Set JAX's flags before anything uses it: double precision, a persistent cache, no remarks on missing GPUs.

    A first run compiles for longer than it samples a small network, so that small kernels are cached too. JAX itself
    distinguishes versions and processors. A cache folder that the user has chosen for JAX stays. JAX is not imported
    here, which takes a second: unless it is loaded, variables set the flags.
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


def leave_jax_unloaded() -> None:
    """Remove the lazy module `jax` that ArviZ has put among the loaded modules, for a process that draws figures.

    Matplotlib asks the module for its class of arrays, which would load it and take a second. A later import of JAX
    works as usual, but ArviZ's converter of NumPyro's results does not.
    """
    import arviz_base  # noqa: F401 - it adds the module

    if "jaxlib" not in sys.modules:
        sys.modules.pop("jax", None)


def quieten_stan() -> None:
    """Keep cmdstanpy's log off the terminal; failures come as errors anyway."""
    logger = logging.getLogger("cmdstanpy")
    logger.setLevel(logging.CRITICAL)
    logger.propagate = False
    logger.addHandler(logging.NullHandler())
