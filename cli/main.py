"""The entry point of `onebasin`, which handles signals even before the commands are imported."""

import gc
import sys
from collections.abc import Sequence

from onebasin.base.processes.command import run_as_process


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, by default the command of this process, and return its exit code."""
    if arguments is None:
        gc.set_threshold(100_000)  # Imports create many objects, and few are ever freed.
        return run_as_process(lambda: _run(sys.argv[1:]))
    return _run(arguments)


def _run(arguments: Sequence[str]) -> int:
    from .console import show_notices
    from .program import run

    show_notices()
    return run(arguments)
