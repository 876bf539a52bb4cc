"""Commands that have examples in their help, and errors that name options instead of arguments.

A function's message begins with an argument in backticks (``var_names``), where a command has an option (``--var``) or
a file. `Command` replaces the argument in every error.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import typer
from typer import Abort, Exit
from typer.core import TyperArgument, TyperCommand, TyperGroup

from onebasin.base.errors import Interrupted, OnebasinError

ALIASES: Mapping[str, str] = {
    "client": "--scheduler",
    "data": "DATA.json",
    "path": "PROGRAM.stan",
    "posteriors": "RUN.nc",
    "symmetry": "--exchangeable",
    "var_names": "--var",
}
"""Command-line options and arguments, keyed by the function arguments that they set."""

_KINDS = {"int": "a whole number", "float": "a number", "bool": "true or false"}
_EXTRA = re.compile(r"Got unexpected extra arguments?\S* \((.*)\)")
_FIRST = re.compile(r"`(\w+)`")
_IN_PYTHON = {
    " (force=True)": "",
    "Give blocks, such as (Exchangeable({'mu': 0, 'sigma': 0}),).": "Give it, such as mu,sigma.",
}


def command_line(words: Sequence[str]) -> str:
    """Return the command that was typed, quoted for the shell."""
    return shlex.join(["onebasin", *words])


class CommandError(OnebasinError):
    """Raised when a command fails, with a message that names options; `error` is the original error."""

    def __init__(self, error: Exception, message: str) -> None:
        super().__init__(message)
        self.error = error


class _WithExamples:
    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        super().format_help(ctx, formatter)  # type: ignore[misc]
        formatter.write(examples_text(ctx.command_path))


class CommandGroup(_WithExamples, TyperGroup):
    """A group of commands."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands with their first sentences."""
        commands = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        rows = [
            (name, (found.help or "").partition("\n\n")[0]) for name, found in commands if found
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse arguments; `onebasin` alone shows the help."""
        if not args and ctx.parent is None and not ctx.resilient_parsing:
            typer.echo(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)


class Command(_WithExamples, TyperCommand):
    """A command."""

    def invoke(self, ctx: Any) -> Any:
        """Run it."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            of_parser = hasattr(error, "format_message")
            if of_parser or isinstance(error, (Interrupted, Abort, Exit, BrokenPipeError)):
                raise
            raise CommandError(error, _respelt(message_of(error), ctx)) from error


def _respelt(message: str, ctx: Any) -> str:
    """Replace a function's arguments in a message by options, or `posterior` by the file.

    The first name in the message is the wrong argument. Later names may be those of variables, so only aliases are
    replaced there.
    """
    names = {
        str(each.name): str(each.metavar or each.name).strip("[]").removesuffix("...")
        if isinstance(each, TyperArgument)
        else each.opts[0]
        for each in ctx.command.params
    }
    names |= {
        function: there
        for function, there in ALIASES.items()
        if function not in names and there in names.values()
    }
    if "run" in ctx.params:
        first, *more = ctx.params["run"]
        named = f"{first} and {len(more)} more" if more else str(first)
        names |= {"posterior": named, "run": named}
    for python, words in _IN_PYTHON.items():
        message = message.replace(python, words)
    for function in ALIASES:
        if function in names:
            message = message.replace(f"`{function}`", f"`{names[function]}`")
    return _FIRST.sub(lambda found: f"`{names.get(found[1], found[1])}`", message, count=1)


def usage(error: Any) -> str:
    """Return the parser's message about a wrong command, in onebasin's words."""
    said = str(error.format_message()) or "Missing command."
    said = _EXTRA.sub(r"There is no place for \1", said)
    beneath = error.__cause__
    if beneath is not None and hasattr(beneath, "errors"):
        found = beneath.errors()[0]
        kind = _KINDS.get(str(found["type"]).partition("_")[0], "a name that a file can have")
        said = said.replace(str(error.message), f"{found['input']!r} is not {kind}")
    where = error.ctx.command_path if error.ctx is not None else "onebasin"
    stop = "" if said.endswith((".", "?", "!")) else "."
    return f"{said}{stop} See `{where} --help`."


def message_of(error: Exception) -> str:
    """Return the message of an error that is not a bug."""
    if isinstance(error, OSError) and error.strerror and not isinstance(error, OnebasinError):
        place = f"`{error.filename}`" if error.filename else "a file"
        return f"{place} cannot be used: {error.strerror}."
    if isinstance(error, MemoryError):
        return "out of memory; use fewer `--draws`, smaller files or fewer points."
    return str(error)


Examples = tuple[tuple[str, str], ...]
"""Pairs of a description and a command."""
_TEXT = """
onebasin
    a demonstration of half a minute | onebasin demo
    sample a Stan program | onebasin sample mixture.stan data.json --out run.nc
    may the draws be used? | onebasin diagnose run.nc
    a page with tables and pictures | onebasin report run.nc --out report.html
onebasin doctor
    also build CmdStan if it is missing | onebasin doctor --build
onebasin sample
    components whose labels may switch | onebasin sample mixture.stan data.json --exchangeable mu,sigma
    a NumPyro model: the function `model` of a file | onebasin sample model.py:model data.json
    approximate it in seconds | onebasin sample mixture.stan data.json --method pathfinder
onebasin symmetry
    of a NumPyro model | onebasin symmetry model.py:model data.json
    also checked at draws, for a Stan program | onebasin symmetry any.stan --draws run.nc --json
onebasin calibrate
    a NumPyro model, which draws what it observes | onebasin calibrate model.py:model data.json --observed y
    a Stan program against a simulator in Python | onebasin calibrate any.stan --simulator sim.py:simulate --out ranks
    how far off is an approximation? with a picture | onebasin calibrate mixture-2 --method meanfield --figure ranks.png
onebasin diagnose
    with labels that may switch | onebasin diagnose run.nc --exchangeable mu,sigma,theta
    chains as CmdStan wrote them | onebasin diagnose chain_1.csv chain_2.csv
onebasin align
    with a symmetry that you declare here | onebasin align run.nc --exchangeable mu,sigma --out aligned.nc
onebasin compare
    the first file is the reference | onebasin compare nuts.nc advi.nc
    with a reference posterior | onebasin compare run.nc --truth eight-schools
onebasin predict
    with a NumPyro model, written to a file | onebasin predict run.nc new.json --program model.py:model -o predicted.nc
onebasin loo
    which model predicts better? | onebasin loo one.nc two.nc
onebasin report
    several posteriors side by side | onebasin report nuts.nc advi.nc --out both.html
onebasin convert
    chains from CmdStan into one file | onebasin convert chain_1.csv chain_2.csv --out run.nc
    runs from many machines, each with its own seed | onebasin convert 'run-*.nc' --out run.nc
onebasin study
    a small version of one study | onebasin study relu-teacher --quick
    to resume a stopped run, repeat the command | onebasin study relu-teacher --quick --out runs/mine
onebasin cmdstan path
    for cmdstanpy, cmdstanr and brms | export CMDSTAN=$(onebasin cmdstan path)
onebasin bridgestan path
    for bridgestan and nutpie | export BRIDGESTAN=$(onebasin bridgestan path)
"""


def _read(text: str) -> dict[str, Examples]:
    found: dict[str, Examples] = {}
    for line in text.strip().splitlines():
        what, example, typed = line.strip().partition(" | ")
        if not example:
            command = what
        found[command] = (*found.get(command, ()), (what, typed)) if example else ()
    return found


EXAMPLES: Mapping[str, Examples] = _read(_TEXT)


def examples_text(path: str) -> str:
    """Return the examples in the help of a command."""
    lines = [f"  # {what}\n  {line}\n" for what, line in EXAMPLES.get(path, ())]
    return "".join(["\nExamples:\n", *lines]) if lines else ""
