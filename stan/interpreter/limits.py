"""A bound on the memory of a process that runs a Stan program, so that it fails before the machine does."""

from __future__ import annotations

import os

SHARE = 0.8
"""Of the machine's memory, which a program may take."""


def bound_memory() -> None:
    """Limit this process to a share of the machine's memory, where the operating system can do so."""
    try:
        import resource

        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        limit = int(SHARE * total)
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        within = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(resource.RLIMIT_AS, (within, hard))
    except (ImportError, OSError, ValueError):  # Windows has none; macOS may refuse
        return
