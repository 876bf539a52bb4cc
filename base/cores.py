"""Count the processor cores that this process may use."""

from __future__ import annotations

import os

VARIABLE = "ONEBASIN_CORES"
"""Environment variable with the maximum number of cores per process, for shared machines."""


def available_cores() -> int:
    """Return the number of cores that ``ONEBASIN_CORES``, a scheduler and `taskset` allow; at least 1."""
    given = os.environ.get(VARIABLE, "")
    most = int(given) if given.isdigit() else 0
    own = hasattr(os, "sched_getaffinity")  # macOS lacks this function.
    cores = len(os.sched_getaffinity(0)) if own else os.cpu_count() or 1
    return min(cores, most or cores)
