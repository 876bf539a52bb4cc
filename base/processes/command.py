"""A command as a separate process: signals, streams, temporary files.

Signals that ask a process to end, SIGTERM, SIGHUP, SIGQUIT and those that schedulers and clocks send, do what Ctrl-C
does. Further signals are passed over while the command cleans up, and end it at once when it takes longer than
`PATIENCE_SECONDS`; so does the first one where compiled code does not return within `UNHEARD_SECONDS`. That is safe,
since programs end with us and unfinished files are swept later. Temporary files, those of libraries and compilers too,
go to one folder, which the next command removes if this one is killed. This module imports nothing heavy, so that
signals are heeded from the beginning.
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
"""Message of an interrupted command that reports nothing else about its files."""

PATIENCE_SECONDS = 5.0
UNHEARD_SECONDS = 2.0
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGXCPU", "SIGALRM")
_SIGNALS = tuple(getattr(signal, name) for name in _NAMES if hasattr(signal, name))
"""Those that end a command; Windows has few of them."""
_SHOW_CURSOR = b"\x1b[?25h"


def run_as_process(command: Callable[[], int]) -> int:
    """Run a command that has this process to itself; both it and this return the exit code."""
    # The null device where stdin, stdout or stderr was closed, so that no file of ours gets its number.
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - for as long as the process lives
    stopping = _Stopping()
    stopping.install()
    try:
        stopping.folder = _keep_temporary_files_together()
        code = command()
        stopping.end()
    except KeyboardInterrupt:  # before a command could say what it keeps
        code = INTERRUPTED
        with suppress(OSError):
            os.write(2, f"onebasin: {INTERRUPTION}\n".encode())
    except SystemExit as end:  # a library's way to end when the reader of a pipe has gone
        stopping.end()
        code = end.code if isinstance(end.code, int) else FAILED
        # What a command writes to stdout comes after its work, which is done: `onebasin diagnose run.nc | head -1` has
        # not failed. It has where stderr's reader is gone too, since progress goes there.
        if end.code == FAILED and hasattr(select, "poll"):  # not on Windows
            poll = select.poll()
            poll.register(2, 0)
            code = FAILED if poll.poll(0) else DONE
    code = _flush_streams(code)
    if code == INTERRUPTED:
        _leave(code, stopping.folder)
    return code


class _Stopping:
    """Takes the signals that end a command."""

    def __init__(self) -> None:
        self.folder: str | None = None
        self._since: float | None = None

    def install(self) -> None:
        """Take them from now on, but those that this process was told to ignore, as by `nohup`."""
        for number in _SIGNALS:
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._stop)
        sys.unraisablehook = self._again_if_lost
        if os.name != "nt":
            read_end, write_end = os.pipe()
            os.set_blocking(write_end, False)
            signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
            threading.Thread(target=self._leave_if_unheard, args=(read_end,), daemon=True).start()

    def end(self) -> None:
        """Pass over signals from now on: there is nothing left to stop, and the interpreter winds up without us."""
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
                os.write(2, _SHOW_CURSOR)
            os._exit(INTERRUPTED)

    def _leave_if_unheard(self, read_end: int) -> None:
        """Leave where compiled code keeps the interpreter from handling a signal, but lets this thread run."""
        while os.read(read_end, 1):  # the kernel's part of the handler writes here at once
            time.sleep(UNHEARD_SECONDS)
            if self._since is None:
                with suppress(OSError):
                    os.write(2, f"onebasin: {INTERRUPTION}\n".encode())
                _leave(INTERRUPTED, self.folder)

    def _again_if_lost(self, unraisable: sys.UnraisableHookArgs) -> None:
        """Stop a little later when a signal has come amid a finaliser, which lets no exception out."""
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            self._since = None
            main = threading.main_thread().ident or 0
            threading.Timer(0.05, signal.pthread_kill, (main, signal.SIGINT)).start()
        else:
            sys.__unraisablehook__(unraisable)


def _leave(code: int, folder: str | None) -> NoReturn:
    """End the process at once: a library's threads, still at work, may abort it while the interpreter winds up."""
    import shutil

    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(code)


def _keep_temporary_files_together() -> str | None:
    """Make a folder for temporary files, and let this process and those that it starts use it."""
    import shutil
    import tempfile

    from ..files.writing import temporary_folder

    try:
        folder = str(temporary_folder("onebasin"))
    except OSError:  # commands that need one say so
        return None
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    tempfile.tempdir = os.environ["TMPDIR"] = folder
    return folder


def _flush_streams(code: int) -> int:
    """Write what is still in buffers, which the interpreter would do too late for a message of ours."""
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
