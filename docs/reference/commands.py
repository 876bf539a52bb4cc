"""Write the command line's reference from the commands themselves: `python docs/reference/commands.py`."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from textwrap import fill
from typing import Any

import typer

from onebasin.cli.program import program

PAGE = Path(__file__).with_name("command-line.md")

HEAD = """<!-- Written by docs/reference/commands.py from the commands, which tests hold it to. -->

# The command line

`onebasin COMMAND --help` shows the same in a terminal, with examples. Data and tables go to stdout,
progress and errors to stderr; `--json` writes one JSON document to stdout. An error is one sentence
and an exit code:

| exit code | meaning |
| --- | --- |
| 0 | done |
| 1 | rejected or failed: a value out of range, a file that cannot be used |
| 2 | not understood: a missing or unknown word, text instead of a number |
| 3 | a bug in onebasin: please report it with the file that the message names |
| 130 | interrupted by Ctrl-C or a signal; finished work is kept |
"""


FEW = 2
"""Commands from which an argument or option is explained once, for all of them."""
METHODS = re.compile(r" For ((?:\w+, )*\w+)\.(?= |$)")
"""The methods that take an option of `onebasin sample`."""


def page() -> str:
    """The whole page."""
    commands = typer.main.get_command(program(["onebasin", "sample"]))
    users = defaultdict(list)
    for command in _every(commands):
        for row in _rows(command):
            users[row].append(f"`{command.name}`")
    shared = {row for row, names in users.items() if len(names) >= FEW}
    meanings = Counter(name for name, _ in shared)
    listed = [
        (f"{name} of {', '.join(users[name, text])}" if meanings[name] > 1 else name, text)
        for name, text in sorted(shared)
    ]
    common = ["## Arguments and options of several commands\n", *_list(listed)]
    return "\n".join([HEAD, *common, *_sections("onebasin", commands, shared)]).rstrip() + "\n"


def _every(command: Any) -> Iterator[Any]:
    yield command
    for inner in getattr(command, "commands", {}).values():
        yield from _every(inner)


def _rows(command: Any) -> list[tuple[str, str]]:
    """Name and meaning of every argument and option, arguments first."""
    rows = [
        (_option(p) if p.opts[0].startswith("-") else f"`{_argument(p)}`", _meaning(p))
        for p in command.params
        if not getattr(p, "hidden", False)
    ]
    return sorted(rows, key=lambda row: row[0].startswith("`-"))


def _sections(name: str, command: Any, shared: set[tuple[str, str]]) -> Iterator[str]:
    """A command's section, then those of the commands below it."""
    rows = _rows(command)
    yield f"## `{name}`\n\n{_filled(_escaped(command.help or ''))}\n"
    by_method: dict[str, list[tuple[str, str]]] = {}
    above = dict(shared)
    for option, meaning in (row for row in rows if row not in shared):
        meaning = _beyond(meaning, above.get(option, ""))
        methods = METHODS.search(meaning)
        found = by_method.setdefault(methods[1] if methods else "", [])
        found.append((option, METHODS.sub("", meaning)))
    for methods, some in by_method.items():
        if methods:
            yield f"For {methods}:\n"
        yield from _list(some)
    if also := ", ".join(row[0] for row in rows if row in shared):
        yield _filled(f"Also: {also}.") + "\n"
    for inner, below in getattr(command, "commands", {}).items():
        yield from _sections(f"{name} {inner}", below, shared)


def _beyond(meaning: str, above: str) -> str:
    """A meaning without the sentences with which it begins like that of several commands."""
    ours, theirs = (re.split(r"(?<=\.) ", text) for text in (meaning, above))
    same = len([*takewhile(lambda pair: pair[0] == pair[1], zip(ours, theirs, strict=False))])
    return " ".join(["As above.", *ours[same:]]) if same > 1 else meaning


def _list(rows: Sequence[tuple[str, str]]) -> Iterator[str]:
    for name, meaning in rows:
        yield _filled(f"- {name}: {meaning}", "  ")
    if rows:
        yield ""


def _filled(text: str, indent: str = "") -> str:
    return fill(text, 100, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)


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
    """Text on one line, without what Markdown takes for its own, and with options as code."""
    return (
        re.sub(r"(?<![`\w])--[a-z-]+", r"`\g<0>`", " ".join(text.split()))
        .replace("|", "\\|")
        .replace("*", "\\*")
        .replace("<", "&lt;")
        .replace("$", "\\$")
    )


if __name__ == "__main__":
    PAGE.write_text(page())
