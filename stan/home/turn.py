"""One process at a time at what is made once for all: a home, a compiled program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .directory import Progress


@contextmanager
def turn(made: Path, report: Progress | None = None) -> Iterator[None]:
    """Wait until nobody else makes it, and say so where somebody does.

    The kernel lets go of the lock of a process that has ended, however it ended.

    Parameters
    ----------
    made : Path
        What is made; the lock lies beside it, and stays.
    report : callable, optional
        Called with a line of text before waiting.
    """
    from filelock import FileLock, Timeout

    made.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(f"{made}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        if report is not None:
            report("waiting for another process, which is building it")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
