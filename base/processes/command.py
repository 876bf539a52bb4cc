"""Run a command as the only task of its process: handle signals, streams and temporary files.

Signals that ask a process to end, such as SIGTERM, SIGHUP and those of schedulers, do what Ctrl-C does. While the
command cleans up, further signals are ignored for `PATIENCE_SECONDS`; after that, a signal ends it at once. If compiled
code does not return within `UNHEARD_SECONDS`, the first signal ends the command at once. That is safe: programs that it
started end too, and unfinished files are removed later. All temporary files, even those of libraries and compilers, are
in one folder; if this command is killed, the next one removes it. This module imports nothing heavy, so that signals
work from the start.
"""

from __future__ import annotations

import atexit
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import NoReturn

DONE, FAILED, INTERRUPTED = 0, 1, 130
INTERRUPTION = "interrupted; files are written completely or not at all"
PATIENCE_SECONDS = 5.0
UNHEARD_SECONDS = 2.0
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGXCPU", "SIGALRM")
_SIGNALS = tuple(getattr(signal, name) for name in _NAMES if hasattr(signal, name))


def run_as_process(command: Callable[[], int]) -> int:
    """Run a command that has this process to itself; return its exit code."""
    # Replace a closed stdin, stdout or stderr by the null device, so that no other file gets its number.
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - open until the process ends
    stopping = _Stopping()
    stopping.install()
    try:
        stopping.folder = _keep_temporary_files_together()
        code = command()
        stopping.end()
    except KeyboardInterrupt:
        code = INTERRUPTED
        with suppress(OSError):
            os.write(2, f"onebasin: {INTERRUPTION}\n".encode())
    except SystemExit as end:  # A library raises it when the reader of a pipe is gone.
        stopping.end()
        code = end.code if isinstance(end.code, int) else FAILED
        # A command writes to stdout after its work, so `onebasin diagnose run.nc | head -1` has not failed. Progress
        # goes to stderr: if its reader is gone too, the work was not finished.
        if end.code == FAILED and hasattr(select, "poll"):  # Windows lacks it.
            poll = select.poll()
            poll.register(2, 0)
            code = FAILED if poll.poll(0) else DONE
    code = _flush_streams(code)
    if code == INTERRUPTED:
        _leave(code, stopping.folder)
    return code


class _Stopping:
    """Handler of the signals that end a command."""

    def __init__(self) -> None:
        self.folder: str | None = None
        self._since: float | None = None

    def install(self) -> None:
        """Handle the signals from now on, except those that are already ignored, such as under `nohup`."""
        for number in _SIGNALS:
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._stop)
        if os.name != "nt":
            read_end, write_end = os.pipe()
            os.set_blocking(write_end, False)
            signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
            threading.Thread(target=self._leave_if_unheard, args=(read_end,), daemon=True).start()

    def end(self) -> None:
        """Ignore signals from now on, as the command has ended."""
        self._since = time.monotonic()
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._since is None:
            self._since = now
            raise KeyboardInterrupt
        if now - self._since > PATIENCE_SECONDS:
            if sys.stderr.isatty():
                os.write(2, b"\x1b[?25h")  # Show the cursor again.
            os._exit(INTERRUPTED)

    def _leave_if_unheard(self, read_end: int) -> None:
        """End the process if compiled code keeps Python from handling a signal."""
        while os.read(read_end, 1):  # Every signal writes a byte at once.
            time.sleep(UNHEARD_SECONDS)
            if self._since is None:
                with suppress(OSError):
                    os.write(2, f"onebasin: {INTERRUPTION}\n".encode())
                _leave(INTERRUPTED, self.folder)


def _leave(code: int, folder: str | None) -> NoReturn:
    """End the process at once: threads of a library may abort it while the interpreter shuts down."""
    import shutil

    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(code)


def _keep_temporary_files_together() -> str | None:
    """Make a folder for the temporary files of this process and of those that it starts."""
    import shutil
    import tempfile

    from ..files.writing import temporary_folder

    try:
        folder = str(temporary_folder("onebasin"))
    except OSError:
        return None
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    tempfile.tempdir = os.environ["TMPDIR"] = folder
    return folder


def _flush_streams(code: int) -> int:
    """Flush stdout and stderr, and report it if stdout cannot be written."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            _silence(stream.fileno())
        except (OSError, ValueError) as error:
            with suppress(OSError, ValueError):
                _silence(stream.fileno())
            if stream is sys.stdout:
                reason = getattr(error, "strerror", None) or error
                with suppress(OSError):
                    os.write(2, f"onebasin: stdout cannot be written: {reason}.\n".encode())
                code = code or FAILED
    return code


def _silence(descriptor: int) -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)
