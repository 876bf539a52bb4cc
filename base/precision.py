"""The precision of JAX computations, chosen for a block of code and not for the process."""

from __future__ import annotations

from contextlib import AbstractContextManager

import jax


def precision(dtype: str) -> AbstractContextManager:
    """Run a block in ``"float64"`` or ``"float32"``; holds for the current thread only."""
    return jax.enable_x64(dtype == "float64")
