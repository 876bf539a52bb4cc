"""The processor's cores that this process may use."""

from __future__ import annotations

import os

VARIABLE = "ONEBASIN_CORES"
"""A number of cores for a process that is to use no more, as where several share a machine."""


def available_cores() -> int:
    """Count them: those that ``ONEBASIN_CORES``, a scheduler or `taskset` has left to the process; at least 1."""
    given = os.environ.get(VARIABLE, "")
    return min(_cores(), int(given)) if given.isdigit() and int(given) else _cores()


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
