"""Put the commands together, run one of them, and report its errors.

Data and tables go to stdout, progress and errors to stderr. An error gives one message and an exit code: 1 for a
failure, 2 for a wrong command, 3 for a bug in onebasin, and 130 for Ctrl-C and signals that end a command. The
traceback of a bug goes to a file. Warnings of libraries are hidden unless --debug is given. This module imports nothing
heavy, so that `--help` and mistyped commands answer at once.
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
    """Write an error to stderr and return its exit code."""
    if isinstance(error, typer.Abort):
        error = Interrupted(INTERRUPTION)
    cause = error.error if isinstance(error, CommandError) else error
    # Our own errors, and those of files and memory, are not bugs.
    ours = isinstance(cause, OnebasinError)
    of_system = isinstance(cause, MemoryError) or (isinstance(cause, OSError) and cause.strerror)
    if isinstance(cause, Interrupted):
        message, code = str(cause), INTERRUPTED
    elif hasattr(cause, "format_message"):  # The parser raised it.
        message, code = usage(cause), MISUSED
    elif not ours and not of_system:
        message, code = report_bug(cause, command), BUG
    else:
        message = str(error) if isinstance(error, CommandError) else message_of(error)
        code = MISUSED if isinstance(cause, UsageError) else FAILED
    with suppress(OSError):  # The terminal may be gone.
        console.complain(message, lines=code == MISUSED or getattr(cause, "has_lines", False))
    return code


def report_bug(error: Exception, command: str) -> str:
    """Write an error's traceback to a new file in the cache's folder ``bugs``, and return the message about it."""
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
        return (
            f"This is a bug in onebasin ({place}). Please report it with the output of `--debug`."
        )
    return f"This is a bug in onebasin. The traceback is in {path}; please report the bug with that file."


ASKS = "_ONEBASIN_COMPLETE"
"""The environment variable that a shell sets to request completions."""


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
    """Declare the options of all commands; `run` itself looks for --debug."""


def program(words: Sequence[str]) -> typer.Typer:
    """Put together the command that is called, or all commands for a list, without slow imports of settings."""
    app = typer.Typer(
        name="onebasin",
        help="Inference for models whose components are interchangeable, in NumPyro and in Stan.",
        cls=CommandGroup,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # Its tables leave little width for text.
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
    """Run one command and return its exit code."""
    words = list(arguments)
    debug, asked = "--debug" in words, ASKS in os.environ
    typed = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS", "")
    try:
        with warnings.catch_warnings():
            if not (debug or sys.warnoptions):
                warnings.simplefilter("ignore")
            app = program((typed.split() if asked else []) or words)
            code = typer.main.get_command(app).main(
                args=[word for word in words if word != "--debug"],
                prog_name="onebasin",
                standalone_mode=False,
                obj=command_line(words),
            )
    except SystemExit as end:  # Shell completion raises it.
        completes = asked or any(word.endswith("-completion") for word in words)
        if isinstance(end.code, int) and completes:
            return end.code
        raise
    except Exception as error:
        if debug:
            raise (error.error if isinstance(error, CommandError) else error) from None
        return explain(error, command_line(words))
    if code == INTERRUPTED:  # The command printed no message.
        return explain(typer.Abort(), command_line(words))
    return code if isinstance(code, int) else 0
