"""How a process ended that a signal ended, in words."""

from __future__ import annotations

import signal

_MEANINGS = {
    "SIGSEGV": ", a memory error or endless recursion",
    "SIGKILL": ", often for lack of memory",
    "SIGABRT": ", an error that nothing caught",
    "SIGFPE": ", a division of whole numbers by zero",
}


def ending(code: int) -> str:
    """Say how a process ended, from its negative exit code."""
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"was ended by {name}{_MEANINGS.get(name, '')}"
