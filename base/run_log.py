"""Notices for whoever started a run, and the log of a run: a file of lines with their times, next to its output.

Both go through Python's logging, under the name "onebasin": a script shows notices on stderr, your own program may
direct or silence them, and the command line writes them as it writes its progress. Records for a run's log alone (a
chain begins, a chain has ended) have the level INFO, which nobody sees who has not asked for it. A log is added to,
never replaced, so that a run that was stopped and continues tells its whole story. What cannot be written to it, as on
a full disk, is lost: a log ends no run.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .errors import Interrupted
from .text import shown

LOGGER = logging.getLogger("onebasin")


def notice(text: str) -> None:
    """Say something in a line, whatever characters are in what a file or a user named."""
    LOGGER.warning("%s", shown(text))


def record(text: str) -> None:
    """Say something to a run's log alone."""
    LOGGER.info("%s", shown(text))


NAME = "run.log"
"""The log's name in a run's folder."""

PRINTED_BYTES = 2**20
"""Bytes of programs' output that a log takes."""
_LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ ")


class _Lines(logging.Handler):
    """Adds a line to a file for every record."""

    def __init__(self, path: Path, prefix: str) -> None:
        super().__init__(logging.INFO)
        self._path, self._prefix = path, prefix
        self._room = PRINTED_BYTES

    def emit(self, record: logging.LogRecord) -> None:
        if record.name != LOGGER.name:  # output of the user's program
            if self._room <= 0:
                return
            self._room -= len(record.getMessage())
            if self._room <= 0:
                record.msg, record.args = "further output of programs is omitted", ()
        at = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        with suppress(OSError), self._path.open("a", encoding="utf-8") as file:
            file.write(f"{at} {self._prefix}{shown(record.getMessage())}\n")


@contextmanager
def logged_to(path: Path, *, prefix: str = "") -> Iterator[None]:
    """Add what is recorded meanwhile in this process, notices too, to a log, which is made where there is none.

    Every line begins with its time and `prefix`. A file that is not a log of ours is left unchanged, and nothing is
    logged.
    """
    ours = not path.exists() and not path.is_symlink()
    with suppress(OSError), path.open(encoding="utf-8", errors="replace") as file:
        first = file.readline(200)
        ours = not first or _LINE.match(first) is not None
    if not ours:
        notice(f"{path} is not the log of a run: it was left unchanged, and this run has no log.")
        yield
        return
    handler, level = _Lines(path, prefix), LOGGER.level
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    try:
        yield
    finally:
        LOGGER.setLevel(level)
        LOGGER.removeHandler(handler)
        handler.close()


@contextmanager
def story(command: str, **what: Mapping[str, Any] | str) -> Iterator[None]:
    """Record how a command begins, with what else is said then, a line each (versions, settings), and how it ends."""
    record(f"begins: {command}")
    for name, said in what.items():
        words = said if isinstance(said, str) else ", ".join(f"{k} {v}" for k, v in said.items())
        record(f"{name}: {words}")
    try:
        yield
    except KeyboardInterrupt:
        record("interrupted")
        raise
    except Interrupted as end:
        record(str(end))
        raise
    except Exception as error:
        record(f"ended by {type(error).__name__}: {error}")
        raise
    record("ended well")


def telling(say: Callable[[str], None]) -> Callable[[str], None]:
    """Say lines and record them as well."""

    def tell(text: str) -> None:
        record(text.strip())
        say(text)

    return tell
