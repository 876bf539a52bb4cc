"""Running a compiled Stan program, so that it can be watched and stopped."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from onebasin.base.processes.children import run_guarded

from .home.errors import StanRunError
from .interpreter.process import ending
from .program import ReadyProgram
from .translation import in_own_names, last_words

_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(32 << 20), "MALLOC_TRIM_THRESHOLD_": str(128 << 20)}
"""Settings of glibc that keep memory with the program between gradients.

The driver of our homes does so itself, whoever runs it; executables of a CmdStan of the user's are told.
"""


def run_environment() -> dict[str, str]:
    """The environment variables of a program that runs: ours, and of its memory, where the user says nothing of it.

    A network's temporaries are larger than what glibc keeps; with a matrix of 404 x 50 a fifth of a program's time goes
    into pages that it gives back and asks for again. No draw depends on this.
    """
    return _MEMORY | os.environ


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
            [*program.command, *arguments],
            folder=folder,
            environment=run_environment(),
            cancel=cancel,
            watch=watch,
        )
    except OSError as error:
        raise StanRunError(
            f"{program.name} cannot be started: {error.strerror or error}."
        ) from error
    printed = in_own_names(done.printed, program.source)
    if done.code:
        if done.code < 0:
            raise StanRunError(f"{program.name} {ending(done.code)}.")
        raise StanRunError(
            f"{program.name} ended with exit code {done.code}:\n{last_words(printed)}"
        )
    return printed
