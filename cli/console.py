"""Output of the commands: tables and JSON on stdout, lines of progress on stderr.

Everything that comes from files goes through `shown` on its way: it is shown, never obeyed.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from onebasin.base.run_log import LOGGER
from onebasin.base.text import MARKS, pasteable, shown

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress
    from rich.text import Text

    from onebasin.base.card import Card
    from onebasin.base.table import Table

_PAGE = 80
"""Width where stdout is no terminal and nobody has said another."""
_COLOURS = {"good": "green", "warn": "yellow", "bad": "red"}


class _Notices(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        say(record.getMessage())


def show_notices() -> None:
    """Write notices to stderr, each in a line."""
    if not any(isinstance(handler, _Notices) for handler in LOGGER.handlers):
        LOGGER.addHandler(_Notices(logging.WARNING))


def say(text: str) -> None:
    """Write a line of progress to stderr."""
    typer.echo(shown(text), err=True)


def is_terminal() -> bool:
    """Tell whether somebody sees stderr as it is written."""
    return sys.stderr.isatty()


def complain(message: str, *, lines: bool = False) -> None:
    """Write what went wrong to stderr: a sentence, or lines where a program's own words are part of it."""
    typer.echo(f"onebasin: {shown(message, lines=lines)}", err=True)


@contextmanager
def _progress(*columns: Any, transient: bool = False) -> Iterator[Progress | None]:
    """Give bars on stderr, where that is a terminal."""
    if not is_terminal():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(*columns, console=Console(stderr=True), transient=transient) as progress:
        yield progress


@contextmanager
def stages() -> Iterator[Callable[[str], None]]:
    """Show the stages of something that takes minutes, each with its time; yields what begins one, by its name."""
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    text = TextColumn("{task.description}", markup=False)
    with _progress(SpinnerColumn(finished_text="✓"), text, TimeElapsedColumn()) as progress:
        if progress is None:
            yield say
            return

        def finish() -> None:
            for task in progress.task_ids:
                progress.update(task, total=1, completed=1)

        def begin(stage: str) -> None:
            finish()
            progress.add_task(shown(stage), total=None)

        yield begin
        finish()


@contextmanager
def alignment_bar() -> Iterator[Callable[[int, int], None] | None]:
    """Show how far an alignment is; yields what takes draws gone through and draws in all, None without a terminal."""
    with _progress(transient=True) as progress:
        if progress is None:
            yield None
            return
        task = progress.add_task("aligning draws", total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def write_json(value: Any) -> None:
    """Write a value to stdout as JSON; numbers that are not finite become null."""
    from onebasin.base.jsonable import json_text

    typer.echo(json_text(value))


def write_table(table: Table) -> None:
    """Write a table to stdout, in parts where it is wider than the terminal, or than a page where there is none."""
    from rich.text import Text

    from .tables import NO_BREAK, drawn

    out, columns = stdout(), table.headings
    rows: list[list[Text]] = []
    headings = [Text(plain(c.name) + (f"\n{plain(c.unit)}" if c.unit else "")) for c in columns]
    for cells in table.cells:
        rows.append([])
        for cell, column in zip(cells, columns, strict=True):
            text = Text(plain(column.write(cell.value)))
            if cell.flag:
                text.append(f"{NO_BREAK}{MARKS[cell.flag]}", _COLOURS[cell.flag])
            if cell.note:
                text.append(f" {plain(cell.note)}", "dim")
            rows[-1].append(text)
    title = Text(plain(table.caption)) if table.caption else None
    for part, least in drawn(headings, rows, table.numeric, title=title, width=out.width):
        out.width = max(out.width, least)
        out.print(part)


def write_headline(heading: str, sentence: str, flag: str) -> None:
    """Write an answer to stdout: a heading in the colour of its flag, and what it means."""
    _write_heading(heading, flag)
    if sentence:
        write_sentence(sentence)


def _write_heading(heading: str, flag: str) -> None:
    from rich.text import Text

    style = f"bold {_COLOURS.get(flag, '')}".rstrip()
    _write(Text(f"{MARKS[flag]} {plain(heading)}".lstrip(), style))


def write_rows(rows: Sequence[tuple[str, str, str]]) -> None:
    """Write lines of a flag (or none), a name and a text; texts wrap next to their names."""
    from rich.text import Text

    widest = max((len(plain(name)) for _, name, _ in rows), default=0)
    for flag, name, text in rows:
        mark = (MARKS[flag], _COLOURS[flag]) if flag else (" ", "")
        line = Text.assemble(mark, f" {plain(name):<{widest}} ", plain(text))
        _write(line, indent=widest + 3)


def write_card(card: Card, *, left_out: Sequence[str] = ()) -> None:
    """Write a card to stdout; see `write_columns`."""
    from onebasin.base.card import FactList, Words

    _write_heading(card.heading, card.flag)
    for part in card.parts:
        if isinstance(part, Words):
            write_remark(f"{part.name} {part.text}".lstrip(), part.flag)
        elif isinstance(part, FactList):
            stdout().print()
            write_rows([(row.flag, row.name, row.text) for row in part.rows])
        else:
            stdout().print()
            write_columns(part, left_out=left_out)


def write_columns(table: Table, *, left_out: Sequence[str] = (), longest: int = 32) -> None:
    """Write names with columns of numbers next to them; nothing is broken but names, which fold.

    Columns of `left_out` give way, in this order, where the terminal has no room for all and a name of `longest`.
    """
    import rich.box
    from rich.table import Table as RichTable
    from rich.text import Text

    rows = [[column.name for column in table.headings], *table.texts]
    columns = [[plain(text) for text in column] for column in zip(*rows, strict=True)]
    widths = [max(map(len, column)) for column in columns]
    chosen = list(range(len(columns)))
    for name in left_out:
        taken = min(widths[0], longest) + 3 + sum(widths[place] + 2 for place in chosen[1:])
        if taken <= stdout().width:
            break
        chosen = [place for place in chosen if columns[place][0] != name]
    title = Text(plain(table.caption))
    drawn = RichTable(
        box=rich.box.SIMPLE_HEAD, title=title, title_justify="left", padding=(0, 1, 0, 0)
    )
    drawn.add_column(columns[0][0], overflow="fold")
    for place in chosen[1:]:
        heading = Text(columns[place][0].rjust(widths[place]))
        drawn.add_column(heading, no_wrap=True, min_width=widths[place])
    for k, cells in enumerate(table.cells, start=1):
        numbers = (
            Text(columns[place][k].rjust(widths[place]), _COLOURS.get(cells[place].flag, ""))
            for place in chosen[1:]
        )
        drawn.add_row(Text(columns[0][k]), *numbers)
    stdout().print(drawn)


def write_remark(sentence: str, flag: str) -> None:
    """Write a sentence to stdout, with its mark if it has one."""
    from rich.text import Text

    if not flag:
        write_sentence(sentence)
        return
    _write(Text.assemble((f"{MARKS[flag]} ", _COLOURS[flag]), plain(sentence)), indent=2)


def write_sentence(sentence: str, *, indent: int = 0) -> None:
    """Write a sentence to stdout; lines after the first are indented."""
    from rich.text import Text

    _write(Text(plain(sentence)), indent=indent)


def _write(text: Text, *, indent: int = 0) -> None:
    """Write a text in lines of a terminal's width; as one line where nobody said how wide lines are."""
    from .tables import wrapped

    out = stdout()
    if sys.stdout.isatty() or "COLUMNS" in os.environ:
        text = wrapped(text, out.width, indent=indent)
    out.print(text, soft_wrap=True)


def plain(text: str) -> str:
    """Text of which a terminal obeys nothing, without a page's backticks, and with numbers that can be pasted."""
    return pasteable(text.replace("`", ""))


def stdout() -> Console:
    """Give a console that writes to stdout as it now is; what it is given is `plain` text, and `Text`, never markup.

    Its width is that of the terminal, or what COLUMNS says; a page of 80 columns where there is neither.
    """
    from rich.console import Console

    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(width=None if known else _PAGE, highlight=False, markup=False)
