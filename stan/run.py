"""Running a compiled Stan program, so that it can be watched and stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from .errors import StanRunError
from .processes import run_guarded
from .program import ReadyProgram
from .translation import in_own_names
from .words import last_words


def run(
    program: ReadyProgram,
    arguments: Sequence[str],
    folder: Path,
    *,
    cancel: threading.Event | None = None,
    watch: Callable[[str], None] | None = None,
) -> str:
    """Run a program to its end.

    Parameters
    ----------
    program : ReadyProgram
        The compiled program; what it says of itself is given in its own names.
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
        done = run_guarded(
            [program.executable, *arguments], folder=folder, cancel=cancel, watch=watch
        )
    except OSError as error:
        raise StanRunError(
            f"{program.name} cannot be started: {error.strerror or error}."
        ) from error
    printed = in_own_names(done.printed, program.source)
    if done.code:
        raise StanRunError(
            f"{program.name} ended with exit code {done.code}:\n{last_words(printed)}"
        )
    return printed
