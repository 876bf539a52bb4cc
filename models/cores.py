"""The processor's cores that this process may use."""

from __future__ import annotations

import os


def available_cores() -> int:
    """Count them: those that a scheduler or `taskset` has left to the process, where the system says so; at least 1."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
