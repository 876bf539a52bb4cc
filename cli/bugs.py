"""A bug in onebasin: the traceback goes to a file, and one line says which."""

from __future__ import annotations

import os
import platform
import tempfile
import traceback
from pathlib import Path


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
        file, path = _new_file()
        with os.fdopen(file, "w", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(text)
    except OSError:
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno}"
        return f"This is a bug in onebasin ({place}). Please report it with what `--debug` shows."
    return (
        f"This is a bug in onebasin. The traceback is in {path}; please report it with that file."
    )


def _new_file() -> tuple[int, str]:
    from onebasin.base.errors import OnebasinError
    from onebasin.base.files.cache import make_user_cache

    try:
        return tempfile.mkstemp(prefix="onebasin-", suffix=".txt", dir=make_user_cache("bugs"))
    except (OSError, OnebasinError):
        # Not `tempfile.gettempdir()`, which is a folder that ends with this command.
        return tempfile.mkstemp(prefix="onebasin-bug-", suffix=".txt", dir=_SHARED)


_SHARED = os.environ.get("TEMP", "/var/tmp") if os.name == "nt" else "/var/tmp"
