"""The entry point of the command line `onebasin`: signals are heeded before the commands are imported."""

import gc
import sys
from collections.abc import Sequence

from onebasin.base.processes.command import run_as_process


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; `commands.program` says what goes where, and what exit codes mean.

    Parameters
    ----------
    arguments : sequence of str, optional
        The words after `onebasin`. Without them those of this process are taken, which the command then has to itself:
        see `process`.

    Returns
    -------
    int
        The exit code.
    """
    if arguments is None:
        gc.set_threshold(100_000)  # of objects that imports make, few are ever collected
        return run_as_process(lambda: _run(sys.argv[1:]))
    return _run(arguments)


def _run(arguments: Sequence[str]) -> int:
    from .program import run

    return run(arguments)
