"""Choose the precision of JAX computations for a block of code."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

VARIABLE = "JAX_ENABLE_X64"
"""The environment variable that JAX reads when it is imported."""


@contextmanager
def precision(dtype: str) -> Iterator[None]:
    """Run a block in ``"float64"`` or ``"float32"``, in the current thread only.

    JAX is not imported here, since that takes a second and Stan programs do not need it.
    """
    double = dtype == "float64"
    if "jaxlib" in sys.modules:  # `jax` itself may be a lazy module.
        import jax

        with jax.enable_x64(double):
            yield
        return
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = "1" if double else "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before
        if "jaxlib" in sys.modules:  # The block has imported JAX.
            import jax

            chosen = (before or "").lower() in ("1", "true", "yes", "on", "y", "t")
            jax.config.update("jax_enable_x64", chosen)
