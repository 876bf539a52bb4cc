"""The commands joined, one of them run, and its error told.

Data and tables go to stdout, progress and errors to stderr. An error is one message and an exit code: 1 for what went
wrong, 2 for a command that was not understood, 3 for a bug in onebasin, whose traceback goes to a file, 130 for Ctrl-C
and signals that ask for an end. Libraries' warnings are for who writes programs: a command says itself what matters,
and --debug shows the rest. This module imports nothing heavy, so that `--help` and mistyped commands answer at once.
"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import traceback
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from onebasin.base.errors import Interrupted, OnebasinError, UsageError
from onebasin.base.files.cache import make_user_cache
from onebasin.base.processes.command import FAILED, INTERRUPTED, INTERRUPTION

from . import cmdstan, console
from .calibrate import calibrate
from .demo import demo
from .doctor import doctor
from .options import with_options
from .posteriors import align, compare, convert, diagnose, loo, predict, report
from .sample import sample, sample_with_settings
from .spelling import Command, CommandError, CommandGroup, command_line, message_of, usage
from .study import study
from .symmetry import symmetry

MISUSED, BUG = 2, 3


def explain(error: Exception, command: str) -> int:
    """Write an error to stderr and return the exit code that goes with it."""
    if isinstance(error, typer.Abort):
        error = Interrupted(INTERRUPTION)
    cause = error.error if isinstance(error, CommandError) else error
    # Named errors, and those of the system's files and memory, are not bugs.
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

    The file is in the cache's folder ``bugs``. Where none can be made, the line gives the last place that the error has
    passed.
    """
    from importlib.metadata import version

    where = (
        f"onebasin {version('onebasin')}, Python {platform.python_version()}, {platform.platform()}"
    )
    text = f"{command}\n{where}\n\n{''.join(traceback.format_exception(error))}"
    try:
        folder = make_user_cache("bugs")
        file, path = tempfile.mkstemp(prefix="onebasin-", suffix=".txt", dir=folder)
        with os.fdopen(file, "w", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(text)
    except (OSError, OnebasinError):
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno}"
        return f"This is a bug in onebasin ({place}). Please report it with what `--debug` shows."
    return (
        f"This is a bug in onebasin. The traceback is in {path}; please report it with that file."
    )


ASKS = "_ONEBASIN_COMPLETE"
"""The variable that a shell's script sets where it asks for completions."""


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(version("onebasin"))
        raise typer.Exit


def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
    debug: Annotated[
        bool,
        typer.Option(
            "--debug",
            help="Show the traceback of an error; may appear anywhere on the command line.",
        ),
    ] = False,
) -> None:
    """Take the options that all commands share."""
    # `main` looks for --debug itself, before anything can fail; it stands here for the help.


def program(words: Sequence[str]) -> typer.Typer:
    """Put the commands together: the one that is called, or all of them to be listed.

    Options that are fields of settings are left out where commands are only listed: to load settings takes long.
    """
    app = typer.Typer(
        name="onebasin",
        help="Inference for models whose components are interchangeable, in NumPyro and in Stan.",
        cls=CommandGroup,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # whose tables leave a third of a line for the texts
    )
    app.callback()(options)
    sampling = sample_with_settings(words) if "sample" in words else with_options(sample, [])
    files = (diagnose, align, compare, predict, loo, report, convert)
    commands = (demo, doctor, symmetry, sampling, *files, study, calibrate)
    groups = (cmdstan.app, cmdstan.bridgestan)
    named = [command.__name__ for command in commands] + [group.info.name for group in groups]
    called = next((word for word in words if not word.startswith("-")), None)
    shown = [called] if called in named else named
    for command in commands:
        if command.__name__ in shown:
            app.command(cls=Command)(command)
    for group in groups:
        if group.info.name in shown:
            app.add_typer(group)
    return app


def run(arguments: Sequence[str]) -> int:
    """Run one command, as a part of this process; return its exit code."""
    words = list(arguments)
    debug, asked = "--debug" in words, ASKS in os.environ
    typed = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS", "")
    try:
        with warnings.catch_warnings():
            if not (debug or sys.warnoptions):  # unless asked for by --debug or of Python itself
                warnings.simplefilter("ignore")
            app = program((typed.split() if asked else []) or words)
            code = typer.main.get_command(app).main(
                args=[word for word in words if word != "--debug"],
                prog_name="onebasin",
                standalone_mode=False,
                obj=command_line(words),
            )
    except SystemExit as end:  # what shells ask for completion, and users for its script
        completes = asked or any(word.endswith("-completion") for word in words)
        if isinstance(end.code, int) and completes:
            return end.code
        raise
    except Exception as error:
        if debug:
            raise (error.error if isinstance(error, CommandError) else error) from None
        return explain(error, command_line(words))
    if code == INTERRUPTED:  # by a command that has nothing to say of what it keeps
        return explain(typer.Abort(), command_line(words))
    return code if isinstance(code, int) else 0
