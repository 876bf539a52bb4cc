"""Programs that are started, and end with us.

A program is started in a process group of its own, whose leader is a small shell that reads from a pipe which only this
process can write to. Nothing is ever written: once this process ends, however it ends, the pipe is closed, and the
shell kills the group. So compilers that `make` has started end as well, and nothing is left behind by a `kill -9`, on
any Unix. Windows has neither: there the program alone ends with the block.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..errors import RunCancelled

KEPT_BYTES = 256 * 1024
"""Bytes of a program's output that are kept at least from its beginning, and from its end."""

_GUARD = ("/bin/sh", "-c", "trap '' HUP INT TERM; read -r nothing; kill -KILL 0")
_LOOK_SECONDS = 0.05
_LONGEST_LINE = 64 * 1024
_MEANINGS = {
    "SIGSEGV": ", a memory error or endless recursion",
    "SIGKILL": ", often for lack of memory",
    "SIGABRT": ", an error that nothing caught",
    "SIGFPE": ", a division of whole numbers by zero",
}


@dataclass(frozen=True)
class Finished:
    """A program that came to its end: its exit code, negative for a signal that ended it, and what it printed.

    Of much that it printed, on stdout and stderr, the beginning and the end are kept; see `KEPT_BYTES`.
    """

    code: int
    printed: str


@contextmanager
def started(
    command: Sequence[str | Path], *, folder: Path, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a program; it and all that it started ends with the block, or with this process.

    No shell sees the command. `environment` is ours if not given. The program's `stdout` is a pipe with what it prints
    on stdout and stderr, its stdin is empty. It is an `OSError` if it cannot be started.
    """
    with ExitStack() as ends:
        group = None if os.name == "nt" else ends.enter_context(_guarded_group())
        process = ends.enter_context(
            subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=environment,
                process_group=group,
            )
        )
        ends.callback(process.kill if group is None else partial(_kill, group))
        yield process


@contextmanager
def _guarded_group() -> Iterator[int]:
    """Start the shell that kills its group once this process or the block has ended; yields the group's number."""
    read_end, write_end = os.pipe()  # neither is inherited but where it is handed on
    null = subprocess.DEVNULL
    try:
        guard = subprocess.Popen(_GUARD, stdin=read_end, stdout=null, stderr=null, process_group=0)
        try:
            yield guard.pid
        finally:
            _kill(guard.pid)
            guard.wait()
    finally:
        os.close(read_end)
        os.close(write_end)


def ending(code: int) -> str:
    """Say how a process ended, from its negative exit code."""
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"was ended by {name}{_MEANINGS.get(name, '')}"


def _kill(group: int) -> None:
    # Nobody may be left; macOS says so by PermissionError. The leader is not waited for yet, so its number is not
    # another's.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def run_guarded(
    command: Sequence[str | Path],
    *,
    folder: Path,
    environment: Mapping[str, str] | None = None,
    cancel: threading.Event | None = None,
    watch: Callable[[str], None] | None = None,
) -> Finished:
    """Run a program to its end; see `started`.

    It ends, and all that it started, once `cancel` is set, with `RunCancelled`. `watch` is called with each line as
    it is printed; one longer than a pipe's buffer comes in pieces.
    """
    lines, head, tail, count = queue.SimpleQueue[bytes](), bytearray(), bytearray(), 0
    with started(command, folder=folder, environment=environment) as process:
        assert process.stdout is not None
        own = os.dup(process.stdout.fileno())  # the block may close the other first
        threading.Thread(target=_read, args=(own, lines), daemon=True).start()
        for line in _printed(lines, cancel):
            count += len(line)
            (head if len(head) < KEPT_BYTES else tail).extend(line)
            if len(tail) > 2 * KEPT_BYTES:
                del tail[:-KEPT_BYTES]
            if watch:
                watch(line.decode(errors="replace").removesuffix("\n") + "\n")
        left_out = count - len(head) - len(tail)
        between = f"\n... {left_out} bytes are left out ...\n".encode() if left_out else b""
        text = (head + between + tail).decode(errors="replace")
        while True:  # a program may close its stdout and continue
            _look(cancel)
            with suppress(subprocess.TimeoutExpired):
                return Finished(process.wait(_LOOK_SECONDS), text)


def _printed(lines: queue.SimpleQueue[bytes], cancel: threading.Event | None) -> Iterator[bytes]:
    """Yield the lines that have come until the program closes its stdout."""
    while True:
        _look(cancel)
        with suppress(queue.Empty):
            if not (line := lines.get(timeout=_LOOK_SECONDS)):
                return
            yield line


def _look(cancel: threading.Event | None) -> None:
    if cancel is not None and cancel.is_set():
        raise RunCancelled("The run was stopped.")


def _read(pipe: int, lines: queue.SimpleQueue[bytes]) -> None:
    """Put the lines that a program prints into a queue, and "" at the end; in a thread, as Windows cannot otherwise."""
    with os.fdopen(pipe, "rb") as file:
        while line := file.readline(_LONGEST_LINE):
            lines.put(line)
    lines.put(b"")
