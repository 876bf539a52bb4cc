"""Entries that are finite in some draws and not in others."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float


def first_broken(values: Float[np.ndarray, "chain draw"]) -> tuple[int, int]:
    """Chain and draw of the first value that is not finite, by draw."""
    bad = ~np.isfinite(values)
    draw = int(bad.any(axis=0).argmax())
    return int(bad[:, draw].argmax()), draw
