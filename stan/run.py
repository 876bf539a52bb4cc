"""Running a compiled Stan program, so that it can be watched and stopped."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from onebasin.models.errors import RunCancelled

from .errors import StanRunError

POLL_SECONDS = 0.05
SHOWN_LINES = 12


def run(
    executable: str | Path,
    arguments: Sequence[str],
    console: Path,
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
    console : Path
        File that takes what the program prints.
    cancel : Event, optional
        Ends the program once it is set.
    watch : callable, optional
        Called now and then with the lines printed since the last call.

    Returns
    -------
    str
        Everything that was printed.

    Raises
    ------
    StanRunError
        If the program fails; the message holds its own last words.
    RunCancelled
        If it was stopped.
    """
    cancel = cancel or threading.Event()
    unfinished = ""
    with console.open("w") as out, console.open(errors="replace") as printed:
        process = subprocess.Popen(
            [str(executable), *arguments],
            stdout=out,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=console.parent,  # where CmdStan drops the profile.csv of programs with profile blocks
        )
        try:
            while process.poll() is None:
                if cancel.wait(POLL_SECONDS):
                    raise RunCancelled("The run was stopped.")
                if watch:
                    lines, newline, unfinished = (unfinished + printed.read()).rpartition("\n")
                    if newline:
                        watch(lines + newline)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    words = console.read_text(errors="replace")
    if process.returncode:
        raise StanRunError(_last_words(executable, process.returncode, words))
    return words


def _last_words(executable: str | Path, code: int, printed: str) -> str:
    lines = [line for line in printed.splitlines() if line.strip()]
    # Lines such as "Exception: ..." say what went wrong; without one, the last lines do.
    telling = [line for line in lines if line.startswith(("Er", "Ex", "Initialization"))]
    words = "\n".join((telling or lines)[-SHOWN_LINES:])
    return f"{Path(executable).name} ended with exit code {code}:\n{words}"
