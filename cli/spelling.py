"""Errors in the command line's spelling: the option or the file where a function names its argument.

Functions begin their messages with the argument in backticks (``var_names``); whoever typed a command knows an option
(``--var``) or a file. `Command` puts the one in the place of the other, for every error of the command.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from typer import Abort, Exit
from typer.core import TyperArgument, TyperCommand

from onebasin.base.errors import Interrupted, OnebasinError

from .examples import examples_text

if TYPE_CHECKING:
    from typer import Context

ALIASES: Mapping[str, str] = {
    "data": "DATA.json",
    "path": "PROGRAM.stan",
    "posteriors": "RUN.nc",
    "symmetry": "--exchangeable",
    "var_names": "--var",
}
"""Options and arguments of commands by the arguments of functions that they become."""

_KINDS = {"int": "a whole number", "float": "a number", "bool": "true or false"}
_EXTRA = re.compile(r"Got unexpected extra arguments?\S* \((.*)\)")
_FIRST = re.compile(r"`(\w+)`")
_IN_PYTHON = {
    " (force=True)": "",
    "Give blocks, such as (Exchangeable({'mu': 0, 'sigma': 0}),).": "Give it, such as mu,sigma.",
}


def command_line(words: Sequence[str]) -> str:
    """What was typed, in the shell's spelling."""
    return shlex.join(["onebasin", *words])


class CommandError(OnebasinError):
    """What a command failed by, and how it spells its arguments.

    Attributes
    ----------
    error : Exception
        What was raised.
    spell : callable
        Turns a message of the error into one of the command line.
    """

    def __init__(self, error: Exception, spell: Callable[[str], str]) -> None:
        super().__init__(str(error))
        self.error = error
        self.spell = spell


class Command(TyperCommand):
    """A command whose errors are in its own spelling, and whose help ends with examples."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        super().format_help(ctx, formatter)
        formatter.write(examples_text(ctx.command_path))

    def invoke(self, ctx: Any) -> Any:
        """Run it."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            if isinstance(error, (Interrupted, Abort, Exit, BrokenPipeError)) or hasattr(
                error, "format_message"
            ):
                raise
            names = spellings(ctx)
            raise CommandError(error, lambda message: respell(message, names)) from error


def spellings(ctx: Context) -> dict[str, str]:
    """What stands on a command's line for each argument of the functions behind it.

    An option that is named like the argument, an alias of one, or for `posterior` the file that was given.
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
    return names


def respell(message: str, names: Mapping[str, str]) -> str:
    """Put the command line's words in the place of a function's.

    The first name of the message is the argument at fault; names later on may well be of variables that are called
    alike, so that of those only the aliases are replaced.
    """
    for python, words in _IN_PYTHON.items():
        message = message.replace(python, words)
    for function in ALIASES:
        if function in names:
            message = message.replace(f"`{function}`", f"`{names[function]}`")
    return _FIRST.sub(lambda found: f"`{names.get(found[1], found[1])}`", message, count=1)


def usage(error: Any) -> str:
    """What the parser says of a command that was not understood, without the words of the library beneath it."""
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


def is_bug(error: Exception) -> bool:
    """Return whether an error is onebasin's own: not a named one, nor one of the system's files or memory."""
    if isinstance(error, (OnebasinError, MemoryError)):
        return False
    return not (isinstance(error, OSError) and error.strerror)


def message_of(error: Exception) -> str:
    """Return the sentence for an error that is no bug."""
    if isinstance(error, OSError) and error.strerror and not isinstance(error, OnebasinError):
        place = f"`{error.filename}`" if error.filename else "a file"
        return f"{place} could not be used: {error.strerror}."
    if isinstance(error, MemoryError):
        return "there was not enough memory; give `--draws`, files or points that take less."
    return str(error)
