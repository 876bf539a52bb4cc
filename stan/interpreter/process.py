"""A process that runs a Stan program: a bound on its memory, and how a signal ended it."""

from __future__ import annotations

import os
import signal

SHARE = 0.8
"""The share of the machine's memory that a program may take."""


_MEANINGS = {
    "SIGSEGV": ", a memory error or endless recursion",
    "SIGKILL": ", often for lack of memory",
    "SIGABRT": ", an error that nothing caught",
    "SIGFPE": ", a division of whole numbers by zero",
}


def bound_memory() -> None:
    """Limit this process to a share of the machine's memory, where it can be done: it fails before the machine does."""
    try:
        import resource

        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        limit = int(SHARE * total)
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        within = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(resource.RLIMIT_AS, (within, hard))
    except (ImportError, OSError, ValueError):  # Windows has none; macOS may refuse
        return


def ending(code: int) -> str:
    """Say how a process ended, from its negative exit code."""
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"was ended by {name}{_MEANINGS.get(name, '')}"
