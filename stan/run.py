"""Running a compiled Stan program, so that it can be watched and stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from .errors import StanRunError
from .processes import run_guarded

SHOWN_LINES, SHOWN_WIDTH = 12, 400


def run(
    executable: str | Path,
    arguments: Sequence[str],
    folder: Path,
    *,
    cancel: threading.Event | None = None,
    watch: Callable[[str], None] | None = None,
) -> str:
    """Run a program to its end.

    Parameters
    ----------
    executable : path
        The compiled program.
    arguments : sequence of str
        As `command` composes them.
    folder : Path
        Where it runs, and where CmdStan drops the profile.csv of programs with profile blocks.
    cancel : Event, optional
        Ends the program once it is set.
    watch : callable, optional
        Called with lines as they are printed, several at a time.

    Returns
    -------
    str
        What was printed; of a program that prints much, the beginning and the end.

    Raises
    ------
    StanRunError
        If the program fails; the message holds its own last words.
    RunCancelled
        If it was stopped.
    """
    try:
        done = run_guarded([executable, *arguments], folder=folder, cancel=cancel, watch=watch)
    except OSError as error:
        raise StanRunError(
            f"{Path(executable).name} cannot be started: {error.strerror or error}."
        ) from error
    if done.code:
        raise StanRunError(_last_words(executable, done.code, done.printed))
    return done.printed


def _last_words(executable: str | Path, code: int, printed: str) -> str:
    lines = [line[:SHOWN_WIDTH] for line in printed.splitlines() if line.strip()]
    # Lines such as "Exception: ..." say what went wrong; without one, the last lines do.
    telling = [line for line in lines if line.startswith(("Er", "Ex", "Initialization"))]
    words = "\n".join((telling or lines)[-SHOWN_LINES:])
    return f"{Path(executable).name} ended with exit code {code}:\n{words}"
