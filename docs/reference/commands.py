"""Write the command line's reference from the commands themselves: `python docs/reference/commands.py`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from textwrap import fill
from typing import Any

import typer

from onebasin.cli.examples import EXAMPLES
from onebasin.cli.program import program

PAGE = Path(__file__).with_name("command-line.md")

HEAD = """<!-- Written by docs/reference/commands.py from the commands, which tests hold it to. -->

# The command line

`onebasin COMMAND --help` shows the same in a terminal. Data and tables go to stdout, progress and
errors to stderr; `--json` writes one JSON document to stdout. An error is one sentence and an exit
code:

| exit code | meaning |
| --- | --- |
| 0 | done |
| 1 | refused or failed: a value out of range, options that do not go together, a file that cannot be used |
| 2 | not understood: a word that is missing, unknown or one too many, or a text where a number belongs |
| 3 | a bug in onebasin: the message names the file with the traceback; please report it with that file |
| 130 | interrupted: Ctrl-C, `--timeout`, or a signal as SIGTERM; what was finished is kept |
"""


def page() -> str:
    """The whole page."""
    commands = typer.main.get_command(program(["sample"]))
    return "\n".join([HEAD, *_sections("onebasin", commands)]).rstrip() + "\n"


def _sections(name: str, command: Any) -> Iterator[str]:
    """A command's section, then those of the commands below it."""
    arguments = [p for p in command.params if not p.opts[0].startswith("-")]
    options = [p for p in command.params if p.opts[0].startswith("-") and not p.hidden]
    words = [name, *(_argument(p) for p in arguments)]
    if hasattr(command, "commands"):
        words.append("COMMAND")
    yield f"## `{name}`\n\n{fill(_escaped(command.help or ''), 100, break_on_hyphens=False)}\n"
    yield "```text\n" + " ".join([*words, "[OPTIONS]"]) + "\n```\n"
    if EXAMPLES.get(name):
        yield from _table("to", "type", ((what, f"`{line}`") for what, line in EXAMPLES[name]))
    if arguments:
        rows = ((f"`{_argument(p)}`", _meaning(p)) for p in arguments)
        yield from _table("argument", "meaning", rows)
    if options:
        yield from _table("option", "meaning", ((_option(p), _meaning(p)) for p in options))
    for inner, below in getattr(command, "commands", {}).items():
        yield from _sections(f"{name} {inner}", below)


def _table(left: str, right: str, rows: Any) -> Iterator[str]:
    yield f"| {left} | {right} |\n| --- | --- |"
    for row in rows:
        yield f"| {row[0]} | {row[1]} |"
    yield ""


def _argument(parameter: Any) -> str:
    name = (parameter.metavar or parameter.name.upper()).strip("[]{}").rstrip(".")
    name += "..." if parameter.nargs == -1 else ""
    return name if parameter.required else f"[{name}]"


def _option(parameter: Any) -> str:
    names = "`, `".join([*parameter.opts, *parameter.secondary_opts])
    return f"`{names}{'' if parameter.is_flag else f' {_kind(parameter)}'}`"


def _kind(parameter: Any) -> str:
    """What stands after an option: its own word, or what kind of value it takes."""
    if parameter.metavar:
        return parameter.metavar.strip("[]") if "=" not in parameter.metavar else parameter.metavar
    annotation = parameter.type_descriptor.annotation
    annotation = getattr(annotation, "__args__", (annotation,))[0]
    return {int: "INT", float: "FLOAT", Path: "PATH"}.get(annotation, "TEXT")


def _meaning(parameter: Any) -> str:
    text = _escaped(parameter.help or "")
    default = parameter.default
    if parameter.required and parameter.opts[0].startswith("-"):
        return f"{text} Required."
    if parameter.secondary_opts and isinstance(default, bool):
        default = f"`{(parameter.opts if default else parameter.secondary_opts)[0]}`"
    if default is None or default is False or default == ():
        return text
    return f"{text} By default {default}."


def _escaped(text: str) -> str:
    """Text for a cell: one line, without what Markdown takes for its own."""
    return (
        " ".join(text.split())
        .replace("|", "\\|")
        .replace("*", "\\*")
        .replace("<", "&lt;")
        .replace("$", "\\$")
    )


if __name__ == "__main__":
    PAGE.write_text(page())
