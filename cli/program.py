"""The commands put together, and one of them run.

Data and tables go to stdout, progress and errors to stderr. An error is one message and an exit
code: 1 for what went wrong, 2 for a command that was not understood, 3 for a bug in onebasin, 130 for
Ctrl-C and signals that ask for an end. Libraries' warnings are for who writes programs: a command says itself what
matters, and --debug shows the rest. This module imports nothing heavy, so that `--help` and mistyped commands
answer at once.
"""

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Annotated

import typer

from onebasin.base.errors import Interrupted, OnebasinError, UsageError
from onebasin.base.files.leftovers import lost_folder
from onebasin.base.processes.command import FAILED, INTERRUPTED, INTERRUPTION

from . import cmdstan, console, truth
from .bugs import report_bug
from .calibrate import calibrate
from .compare import compare
from .completion import asked_words
from .console import show_notices
from .demo import demo
from .doctor import doctor
from .loo import loo
from .options import with_options
from .posteriors import align, convert, diagnose, report
from .predict import predict
from .sample import sample, sample_with_settings
from .spelling import Command, CommandError, CommandGroup, command_line, is_bug, message_of, usage
from .study import study
from .symmetry import symmetry

MISUSED, BUG = 2, 3


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(version("onebasin"))
        raise typer.Exit


def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show it.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show where an error comes from; goes anywhere.")
    ] = False,
) -> None:
    """Take the options that all commands share."""
    # `main` looks for --debug itself, before anything can fail; it stands here for the help.


def program(words: Sequence[str]) -> typer.Typer:
    """Put the commands together; the options that are fields of settings, where their command is called.

    They are left out where commands are only listed, since settings take as long to load as all the rest.
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
    for command in (demo, doctor, symmetry, sampling, *files, study, calibrate):
        app.command(cls=Command)(command)
    for group in (cmdstan.app, cmdstan.bridgestan, truth.app):
        app.add_typer(group)
    return app


def run(arguments: Sequence[str]) -> int:
    """Run one command, as a part of this process; return its exit code."""
    words = list(arguments)
    debug = "--debug" in words
    show_notices()
    try:
        with _warnings_as_asked(debug):
            code = typer.main.get_command(program(asked_words() or words)).main(
                args=[word for word in words if word != "--debug"],
                prog_name="onebasin",
                standalone_mode=False,
                obj=command_line(words),
            )
    except SystemExit as end:  # of what shells ask for completion
        if isinstance(end.code, int) and _is_completion(words):
            return end.code
        raise
    except Exception as error:
        if debug:
            raise (error.error if isinstance(error, CommandError) else error) from None
        return _explain(error, command_line(words))
    if code == INTERRUPTED:  # by a command that has nothing to say of what it keeps
        return _explain(Interrupted(INTERRUPTION), command_line(words))
    return code if isinstance(code, int) else 0


def _is_completion(words: Sequence[str]) -> bool:
    """Tell whether a shell asks for completions, or the user for the script that makes it ask."""
    return asked_words() is not None or any(word.endswith("-completion") for word in words)


@contextmanager
def _warnings_as_asked(debug: bool) -> Iterator[None]:
    """Keep libraries' warnings off the terminal, unless they were asked for by --debug or of Python itself."""
    with warnings.catch_warnings():
        if not (debug or sys.warnoptions):
            warnings.simplefilter("ignore")
        yield


def _explain(error: Exception, command: str) -> int:
    """Write an error to stderr and return the exit code that goes with it."""
    if isinstance(error, typer.Abort):
        error = Interrupted(INTERRUPTION)
    cause = error.error if isinstance(error, CommandError) else error
    if isinstance(cause, Interrupted):
        message, code = str(cause), INTERRUPTED
    elif hasattr(cause, "format_message"):  # the parser's own
        message, code = usage(cause), MISUSED
    elif not isinstance(cause, OnebasinError) and (lost := lost_folder(cause)):
        message, code = f"{lost}; outputs appear whole or not at all: begin again.", FAILED
    elif is_bug(cause):
        message, code = report_bug(cause, command), BUG
    else:
        message = str(error) if isinstance(error, CommandError) else message_of(error)
        code = MISUSED if isinstance(cause, UsageError) else FAILED
    with suppress(OSError):  # the terminal may be gone, and its signal the reason
        console.complain(message, lines=code == MISUSED or getattr(cause, "has_lines", False))
    return code
