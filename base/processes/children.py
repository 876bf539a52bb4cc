"""Programs that are started, and end with us.

A program is started in a process group of its own, whose leader is a small shell that reads from a pipe which only this
process can write to. Nothing is ever written: once this process ends, however it ends, the pipe is closed, and the
shell kills the group. So compilers that `make` has started end as well, and nothing is left behind by a
`kill -9`, on any Unix. The shell is there before the program is, so that there is no moment without it.

Windows has neither such groups nor that shell. There the program alone ends with the block, and none is ended when this
process is killed.

What a program prints is read as it comes; beginning and end are kept in memory, nothing on disk.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ..errors import RunCancelled

KEPT_BYTES = 256 * 1024
"""Bytes of a program's output that are kept from its beginning, and from its end."""

_GUARD = ("/bin/sh", "-c", "trap '' HUP INT TERM; read -r nothing; kill -KILL 0")
_LOOK_SECONDS = 0.05
_GATHER_SECONDS = 0.001
_PIPE_BYTES = 64 * 1024


@dataclass(frozen=True)
class Finished:
    """A program that came to its end: its exit code, negative for a signal that ended it, and what it printed.

    Of more than `2 * KEPT_BYTES` bytes that it printed, on stdout and stderr, the beginning and the end are kept.
    """

    code: int
    printed: str


@contextmanager
def started(
    command: Sequence[str | Path], *, folder: Path, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a program; it and all that it started ends with the block, or with this process.

    No shell sees the command. `environment` is ours if not given. The program's `stdout` is a pipe with what it prints
    on stdout and stderr, its stdin is empty.

    Raises
    ------
    OSError
        If it cannot be started.
    """
    if os.name == "nt":
        with _started_alone(command, folder, environment) as process:
            yield process
        return
    read_end, write_end = os.pipe()  # neither is inherited but where it is handed on
    try:
        guard = subprocess.Popen(
            _GUARD,
            stdin=read_end,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )
        try:
            with _popen(command, folder, environment, group=guard.pid) as process:
                try:
                    yield process
                finally:
                    _kill(guard.pid)
        finally:
            _kill(guard.pid)
            guard.wait()
    finally:
        os.close(read_end)
        os.close(write_end)


@contextmanager
def _started_alone(
    command: Sequence[str | Path], folder: Path, environment: Mapping[str, str] | None
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a program that ends with the block, without a group and a guard."""
    with _popen(command, folder, environment) as process:
        try:
            yield process
        finally:
            process.kill()


def _popen(
    command: Sequence[str | Path],
    folder: Path,
    environment: Mapping[str, str] | None,
    group: int | None = None,
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [str(word) for word in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=folder,
        env=environment,
        process_group=group,
    )


def run_guarded(
    command: Sequence[str | Path],
    *,
    folder: Path,
    environment: Mapping[str, str] | None = None,
    cancel: threading.Event | None = None,
    watch: Callable[[str], None] | None = None,
) -> Finished:
    """Run a program to its end; see `started`.

    It ends, and all that it started, once `cancel` is set. `watch` is called with whole lines as they are printed,
    several at a time; a line longer than a pipe's buffer comes in pieces.

    Raises
    ------
    OSError
        If it cannot be started.
    RunCancelled
        If it was stopped.
    """
    cancel = cancel or threading.Event()
    console, lines = Console(), _WholeLines(watch)
    with started(command, folder=folder, environment=environment) as process:
        assert process.stdout is not None
        for piece in _pieces(process.stdout.fileno(), cancel):
            console.add(piece)
            lines.add(piece)
        lines.end()
        while True:  # a program may close its stdout and go on
            try:
                code = process.wait(_LOOK_SECONDS)
            except subprocess.TimeoutExpired:
                _look(cancel)
            else:
                return Finished(code, console.text())


class Console:
    """The beginning and the end of what a program prints, so many bytes of each."""

    def __init__(self, kept: int = KEPT_BYTES) -> None:
        self._kept = kept
        self._head, self._tail, self._dropped = bytearray(), bytearray(), 0

    def add(self, piece: bytes) -> None:
        """Take what comes next."""
        room = max(0, self._kept - len(self._head))
        self._head += piece[:room]
        self._tail += piece[room:]
        if len(self._tail) > 2 * self._kept:
            self._dropped += len(self._tail) - self._kept
            del self._tail[: -self._kept]

    def text(self) -> str:
        """All of it, or beginning and end with a line between them that says how much is left out."""
        head, tail = bytes(self._head), bytes(self._tail[-self._kept :])
        dropped = self._dropped + len(self._tail) - len(tail)
        between = f"\n... {dropped} bytes are left out ...\n".encode() if dropped else b""
        return (head + between + tail).decode(errors="replace")


class _WholeLines:
    """Hands on whole lines."""

    def __init__(self, watch: Callable[[str], None] | None) -> None:
        self._watch, self._unfinished = watch, b""

    def add(self, piece: bytes) -> None:
        if self._watch is None:
            return
        lines, newline, self._unfinished = (self._unfinished + piece).rpartition(b"\n")
        if newline:
            self._watch((lines + newline).decode(errors="replace"))
        if len(self._unfinished) >= _PIPE_BYTES:
            self.end()

    def end(self) -> None:
        if self._unfinished and self._watch:
            self._watch(self._unfinished.decode(errors="replace") + "\n")
        self._unfinished = b""


def _pieces(pipe: int, cancel: threading.Event) -> Iterator[bytes]:
    """Yield the output of a program, until it closes its stdout; a thread waits for it, as Windows cannot otherwise."""
    pieces: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    own = os.dup(pipe)  # the caller may close the other first

    def read() -> None:
        while piece := os.read(own, _PIPE_BYTES):
            pieces.put(piece)
            if len(piece) < _PIPE_BYTES:
                time.sleep(_GATHER_SECONDS)  # many short lines come together
        pieces.put(b"")
        os.close(own)

    threading.Thread(target=read, daemon=True).start()
    while True:
        _look(cancel)
        with suppress(queue.Empty):
            piece = pieces.get(timeout=_LOOK_SECONDS)
            if not piece:
                return
            yield piece


def _look(cancel: threading.Event) -> None:
    if cancel.is_set():
        raise RunCancelled("The run was stopped.")


def _kill(group: int) -> None:
    # Nobody may be left; macOS says so by PermissionError. The leader is not waited for yet, so its number is not
    # another's.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
