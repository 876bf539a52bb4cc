"""Settings of libraries that a process makes before it uses them."""

from __future__ import annotations

import logging
import os
import sys
from contextlib import suppress


def prepare_jax() -> None:
    """Set JAX's flags before anything uses it.

    Double precision; no remarks on missing GPUs; and every compiled kernel kept in the user's cache, the small ones
    too: a first run compiles for longer than it samples a small network. JAX's keys tell versions and processors
    apart, and a place that the user has chosen for JAX stays.
    """
    import jax

    from ..files.cache import keep_compiled

    jax.config.update("jax_enable_x64", True)
    with suppress(OSError):  # JAX does without, where no folder can be made
        keep_compiled()
    _quieten_jax()


def prepare_jax_if_used() -> None:
    """Set the same flags for a process that may never import JAX, which takes a second: by JAX's variables."""
    if "jaxlib" in sys.modules:  # others enter JAX itself as a module that is yet to load
        prepare_jax()
        return
    from ..files.cache import COMPILED, make_user_cache, user_cache

    os.environ["JAX_ENABLE_X64"] = "1"
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    if not os.environ.get("JAX_COMPILATION_CACHE_DIR"):
        with suppress(OSError):
            make_user_cache(COMPILED)
            os.environ["JAX_COMPILATION_CACHE_DIR"] = str(user_cache(COMPILED))
    _quieten_jax()


def _quieten_jax() -> None:
    """Drop remarks on missing GPUs."""
    for name in ("jax", "jax._src.xla_bridge", "absl"):
        logging.getLogger(name).setLevel(logging.ERROR)


def leave_jax_unloaded() -> None:
    """Remove the module `jax` that ArviZ enters without loading it, for a process that draws figures and ends.

    Matplotlib asks every such module for its class of arrays, which would load it and take a second. Whoever imports
    JAX afterwards gets it as usual; ArviZ's own converter of NumPyro's results must not be used then.
    """
    import arviz_base  # noqa: F401 - which enters it

    if "jaxlib" not in sys.modules:
        sys.modules.pop("jax", None)


def quieten_stan() -> None:
    """Keep cmdstanpy's own log off the terminal; what goes wrong comes as an error."""
    logger = logging.getLogger("cmdstanpy")
    logger.setLevel(logging.CRITICAL)
    logger.propagate = False
    logger.addHandler(logging.NullHandler())
