"""How numbers over fits are written in tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..lab import Row


def mean_of(measure: str) -> Callable[[Row], float | None]:
    """Take the mean of a row's list; None where there is none."""
    return lambda row: None if row[measure] is None else float(np.mean(row[measure]))


def spread(values: Sequence[float], decimals: int) -> str:
    """Write mean and standard deviation."""
    sd = f" ± {np.std(values, ddof=1):.{decimals}f}" if len(values) > 1 else ""
    return f"{np.mean(values):.{decimals}f}{sd}"
