"""Notices for the user, and the log of a run: a file of lines with their times, stored next to the run's output.

Both use Python's logger "onebasin". A script shows notices on stderr; your program may redirect or silence them.
Records that go only to the log, such as the end of a chain, have the level INFO. Lines are appended, so that the log of
a resumed run is complete. If the log cannot be written, as on a full disk, the run continues.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .errors import Interrupted
from .text import shown

LOGGER = logging.getLogger("onebasin")


def notice(text: str) -> None:
    """Show the user a notice in one line; characters that a terminal would obey are escaped."""
    LOGGER.warning("%s", shown(text))


def record(text: str) -> None:
    """Write a line only to the run's log."""
    LOGGER.info("%s", shown(text))


NAME = "run.log"
"""Name of the log in a run's folder."""
PRINTED_BYTES = 2**20
"""Maximum number of bytes of programs' output in a log."""
_LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ ")


class _Lines(logging.Handler):
    """Handler that adds a line to a file for every record."""

    def __init__(self, path: Path) -> None:
        super().__init__(logging.INFO)
        self._path, self._room = path, PRINTED_BYTES

    def emit(self, record: logging.LogRecord) -> None:
        if record.name != LOGGER.name:  # The user's program printed this.
            if self._room <= 0:
                return
            self._room -= len(record.getMessage())
            if self._room <= 0:
                record.msg, record.args = "further output of programs is omitted", ()
        at = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        with suppress(OSError), self._path.open("a", encoding="utf-8") as file:
            file.write(f"{at} {shown(record.getMessage())}\n")


@contextmanager
def logged_to(path: Path) -> Iterator[None]:
    """Append the records and notices of this process to a log; each line begins with its time.

    An existing file that is not a log is left unchanged, and nothing is logged.
    """
    ours = not path.exists() and not path.is_symlink()
    with suppress(OSError), path.open(encoding="utf-8", errors="replace") as file:
        first = file.readline(200)
        ours = not first or _LINE.match(first) is not None
    if not ours:
        notice(f"{path} is not the log of a run: it was left unchanged, and this run has no log.")
        yield
        return
    handler, level = _Lines(path), LOGGER.level
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    try:
        yield
    finally:
        LOGGER.setLevel(level)
        LOGGER.removeHandler(handler)
        handler.close()


@contextmanager
def story(command: str, **what: Mapping[str, Any]) -> Iterator[None]:
    """Record how a command begins, with a line for each of `what` (versions, settings), and how it ends."""
    record(f"begins: {command}")
    for name, facts in what.items():
        record(f"{name}: {', '.join(f'{k} {v}' for k, v in facts.items())}")
    try:
        yield
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            record("interrupted")
        else:
            how = "" if isinstance(error, Interrupted) else f"ended by {type(error).__name__}: "
            record(f"{how}{error}")
        raise
    record("ended well")
