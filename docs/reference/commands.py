"""Write the command line's reference from the commands themselves: `python docs/reference/commands.py`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
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


FEW = 3
"""Commands from which an option is explained once, for all of them."""


def page() -> str:
    """The whole page."""
    commands = typer.main.get_command(program(["sample"]))
    counts = Counter(row for command in _every(commands) for row in map(_row, _options(command)))
    shared = {row for row, count in counts.items() if count >= FEW}
    common = ["## Options of several commands\n", *_list(sorted(shared))]
    return "\n".join([HEAD, *common, *_sections("onebasin", commands, shared)]).rstrip() + "\n"


def _every(command: Any) -> Iterator[Any]:
    yield command
    for inner in getattr(command, "commands", {}).values():
        yield from _every(inner)


def _options(command: Any) -> list[Any]:
    return [p for p in command.params if p.opts[0].startswith("-") and not p.hidden]


def _row(parameter: Any) -> tuple[str, str]:
    return _option(parameter), _meaning(parameter)


def _sections(name: str, command: Any, shared: set[tuple[str, str]]) -> Iterator[str]:
    """A command's section, then those of the commands below it."""
    arguments = [p for p in command.params if not p.opts[0].startswith("-")]
    rows = list(map(_row, _options(command)))
    own = [row for row in rows if row not in shared]
    also = ", ".join(option for option, _ in rows if (option, _) in shared)
    words = [name, *(_argument(p) for p in arguments)]
    if hasattr(command, "commands"):
        words.append("COMMAND")
    yield f"## `{name}`\n\n{fill(_escaped(command.help or ''), 100, break_on_hyphens=False)}\n"
    yield "```text\n" + " ".join([*words, "[OPTIONS]"]) + "\n```\n"
    if EXAMPLES.get(name):
        yield from _table("to", "type", ((what, f"`{line}`") for what, line in EXAMPLES[name]))
    yield from _list([(f"`{_argument(p)}`", _meaning(p)) for p in arguments])
    yield from _list(own)
    if also:
        yield fill(f"Also: {also}.", 100, break_on_hyphens=False, break_long_words=False) + "\n"
    for inner, below in getattr(command, "commands", {}).items():
        yield from _sections(f"{name} {inner}", below, shared)


def _list(rows: Sequence[tuple[str, str]]) -> Iterator[str]:
    for name, meaning in rows:
        item = f"- {name}: {meaning}"
        yield fill(
            item, 100, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False
        )
    if rows:
        yield ""


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
