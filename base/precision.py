"""The precision of JAX computations, chosen for a block of code and not for the process."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

VARIABLE = "JAX_ENABLE_X64"
"""The variable that JAX reads as it is imported."""


@contextmanager
def precision(dtype: str) -> Iterator[None]:
    """Run a block in ``"float64"`` or ``"float32"``; holds for the current thread only.

    A block that does without JAX, such as one on a Stan program, does not import it, which takes a second.
    """
    double = dtype == "float64"
    if "jaxlib" in sys.modules:  # others enter JAX itself as a module that is yet to load
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
        if "jaxlib" in sys.modules:  # the block has imported it, for the process
            import jax

            chosen = (before or "").lower() in ("1", "true", "yes", "on", "y", "t")
            jax.config.update("jax_enable_x64", chosen)
