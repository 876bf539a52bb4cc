"""Errors of a command: one message and an exit code; a bug's traceback goes to a file, and one line says which."""

from __future__ import annotations

import os
import platform
import tempfile
import traceback
from contextlib import suppress
from pathlib import Path

import typer

from onebasin.base.errors import Interrupted, OnebasinError, UsageError
from onebasin.base.files.cache import make_user_cache
from onebasin.base.processes.command import FAILED, INTERRUPTED, INTERRUPTION

from . import console
from .spelling import CommandError, message_of, usage

MISUSED, BUG = 2, 3
_SHARED = os.environ.get("TEMP", "/var/tmp") if os.name == "nt" else "/var/tmp"


def explain(error: Exception, command: str) -> int:
    """Write an error to stderr and return the exit code that goes with it."""
    if isinstance(error, typer.Abort):
        error = Interrupted(INTERRUPTION)
    cause = error.error if isinstance(error, CommandError) else error
    # Named errors, and those of the system's files and memory, are no bugs.
    ours = isinstance(cause, OnebasinError)
    of_system = isinstance(cause, MemoryError) or (isinstance(cause, OSError) and cause.strerror)
    if isinstance(cause, Interrupted):
        message, code = str(cause), INTERRUPTED
    elif hasattr(cause, "format_message"):  # the parser's own
        message, code = usage(cause), MISUSED
    elif not ours and not of_system:
        message, code = report_bug(cause, command), BUG
    else:
        message = str(error) if isinstance(error, CommandError) else message_of(error)
        code = MISUSED if isinstance(cause, UsageError) else FAILED
    with suppress(OSError):  # the terminal may be gone, and its signal the reason
        console.complain(message, lines=code == MISUSED or getattr(cause, "has_lines", False))
    return code


def report_bug(error: Exception, command: str) -> str:
    """Write an error's traceback to a new file, which stays, and return the line that says so.

    The file is in the cache's folder ``bugs``, or in the folder of temporary files where the cache cannot be used.
    Where no file can be made, the line gives the last place that the error has passed.
    """
    from importlib.metadata import version

    where = (
        f"onebasin {version('onebasin')}, Python {platform.python_version()}, {platform.platform()}"
    )
    text = f"{command}\n{where}\n\n{''.join(traceback.format_exception(error))}"
    try:
        try:
            folder = make_user_cache("bugs")
            file, path = tempfile.mkstemp(prefix="onebasin-", suffix=".txt", dir=folder)
        except (OSError, OnebasinError):
            # Not `tempfile.gettempdir()`, which is a folder that ends with this command.
            file, path = tempfile.mkstemp(prefix="onebasin-bug-", suffix=".txt", dir=_SHARED)
        with os.fdopen(file, "w", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(text)
    except OSError:
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno}"
        return f"This is a bug in onebasin ({place}). Please report it with what `--debug` shows."
    return (
        f"This is a bug in onebasin. The traceback is in {path}; please report it with that file."
    )
