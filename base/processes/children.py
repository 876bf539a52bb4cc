"""Start programs that end with this process.

Each program runs in its own process group, led by a small shell. The shell reads from a pipe that only this process can
write to. When this process ends, even by `kill -9`, the pipe closes, and the shell kills the group with everything that
the program has started. Windows has no process groups, so only the program itself ends with the block.
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
"""Minimum number of bytes that are kept from the beginning and from the end of a program's output."""

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
    """The result of a program."""

    code: int  # Exit code; negative if a signal ended the program.
    printed: str  # Output on stdout and stderr; only the beginning and the end if it is long.


@contextmanager
def started(
    command: Sequence[str | Path], *, folder: Path, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a program; it ends with the block or with this process, together with everything that it has started.

    The process's `stdout` is a pipe for both stdout and stderr; its stdin is empty. Raise `OSError` if the program
    cannot be started.
    """
    with ExitStack() as ends:
        group = None
        if os.name != "nt":
            # The shell kills its process group when this process or the block ends.
            read_end, write_end = os.pipe()
            ends.callback(os.close, read_end)
            ends.callback(os.close, write_end)
            null = subprocess.DEVNULL
            guard = subprocess.Popen(
                _GUARD, stdin=read_end, stdout=null, stderr=null, process_group=0
            )
            group = guard.pid
            ends.callback(guard.wait)
            ends.callback(_kill, group)
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


def ending(code: int) -> str:
    """Describe how a process ended, by its negative exit code."""
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"was ended by {name}{_MEANINGS.get(name, '')}"


def _kill(group: int) -> None:
    # On macOS, an empty group raises PermissionError.
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

    If `cancel` is set, kill it and raise `RunCancelled`. `watch` is called with each line, or with pieces of a long
    one.
    """
    lines, head, tail, count = queue.SimpleQueue[bytes](), bytearray(), bytearray(), 0
    with started(command, folder=folder, environment=environment) as process:
        assert process.stdout is not None
        own = os.dup(process.stdout.fileno())  # The block may close the original.
        threading.Thread(target=_read, args=(own, lines), daemon=True).start()
        while True:
            _check(cancel)
            try:
                line = lines.get(timeout=_LOOK_SECONDS)
            except queue.Empty:
                continue
            if not line:  # The program has closed its stdout.
                break
            count += len(line)
            (head if len(head) < KEPT_BYTES else tail).extend(line)
            if len(tail) > 2 * KEPT_BYTES:
                del tail[:-KEPT_BYTES]
            if watch:
                watch(line.decode(errors="replace").removesuffix("\n") + "\n")
        left_out = count - len(head) - len(tail)
        between = f"\n... {left_out} bytes are left out ...\n".encode() if left_out else b""
        text = (head + between + tail).decode(errors="replace")
        while True:  # A program may close its stdout and continue.
            _check(cancel)
            with suppress(subprocess.TimeoutExpired):
                return Finished(process.wait(_LOOK_SECONDS), text)


def _check(cancel: threading.Event | None) -> None:
    if cancel is not None and cancel.is_set():
        raise RunCancelled("The run was stopped.")


def _read(pipe: int, lines: queue.SimpleQueue[bytes]) -> None:
    """Put the lines that a program prints into a queue, then an empty line."""
    with os.fdopen(pipe, "rb") as file:
        while line := file.readline(_LONGEST_LINE):
            lines.put(line)
    lines.put(b"")
