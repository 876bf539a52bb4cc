"""Output of the commands: tables and JSON on stdout, progress on stderr. Text from files is escaped."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import typer
from rich.cells import cell_len

from onebasin.base.run_log import LOGGER
from onebasin.base.text import MARKS, pasteable, shown

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from onebasin.base.card import Card, Shown
    from onebasin.base.table import Table

_NAME, _FRAME = 32, 2
"""Maximum width of a table's names, and width of a column's frame."""
_PAGE = 80
"""Width of the output if stdout is not a terminal and COLUMNS is not set."""
_COLOURS = {"good": "green", "warn": "yellow", "bad": "red"}


class _Notices(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        say(record.getMessage())


def show_notices() -> None:
    """Write notices to stderr."""
    if not any(isinstance(handler, _Notices) for handler in LOGGER.handlers):
        LOGGER.addHandler(_Notices(logging.WARNING))


def say(text: str) -> None:
    """Write a line of progress to stderr."""
    typer.echo(shown(text), err=True)


def complain(message: str, *, lines: bool = False) -> None:
    """Write an error to stderr, with several lines if it contains a program's output."""
    typer.echo(f"onebasin: {shown(message, lines=lines)}", err=True)


@contextmanager
def alignment_bar() -> Iterator[Callable[[int, int], None] | None]:
    """Show the progress of an alignment; yield a callback that takes the number of draws done and of all draws."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("aligning draws", total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def write_json(value: Any) -> None:
    """Write a value to stdout as JSON; non-finite numbers become null."""
    from onebasin.base.text import json_text

    typer.echo(json_text(value))


def write_table(table: Table, *, left_out: Sequence[str] = (), card: bool = False) -> None:
    """Write a table to stdout without breaking numbers or headings; in a `card`, all cells but the names are numbers.

    If it is too wide, notes go below their numbers, then the columns `left_out` are dropped in this order, then the
    table is cut into parts, each with the first column.
    """
    import rich.box
    from rich.table import Table as RichTable
    from rich.text import Text

    out, headings, numeric = stdout(), table.headings, table.numeric
    if card:
        numeric = (False, *[True] * (len(headings) - 1))
    title = Text(plain(table.caption)) if table.caption else None
    chosen = list(range(len(headings)))
    for note in (" ", "\n"):
        columns = [
            [plain(heading.name) + (f"\n{plain(heading.unit)}" if heading.unit else "")]
            + [
                plain(texts[k]) + (f"{note}{plain(cells[k].note)}" if cells[k].note else "")
                for texts, cells in zip(table.texts, table.cells, strict=True)
            ]
            for k, heading in enumerate(headings)
        ]
        least = [_least(*column) for column in zip(columns, numeric, strict=True)]
        if _taken(least) <= out.width:
            break
    for name in left_out:
        if _taken(least[k] for k in chosen) > out.width:
            chosen = [k for k in chosen if headings[k].name != name]
    parts = [[chosen[0]]]
    for k in chosen[1:]:
        if len(parts[-1]) > 1 and _taken(least[j] for j in (*parts[-1], k)) > out.width:
            parts.append([chosen[0]])
        parts[-1].append(k)
    for part in parts:
        drawn = RichTable(
            box=rich.box.SIMPLE_HEAD, title=title, title_justify="left", padding=(0, 1, 0, 0)
        )
        title = None
        for k in part:
            side: Any = "right" if numeric[k] else "left"
            drawn.add_column(Text(columns[k][0]), justify=side, min_width=least[k], overflow="fold")
        for row, cells in enumerate(table.cells, start=1):
            texts = (Text(columns[k][row], _COLOURS.get(cells[k].flag, "")) for k in part)
            drawn.add_row(*texts)
        out.width = max(out.width, _taken(least[k] for k in part))
        out.print(drawn)


def _least(texts: Sequence[str], numeric: bool) -> int:
    """Return the minimum width of a column: that of the widest number, or for texts at most 32 or the longest word."""
    widest = max(cell_len(line) for text in texts for line in text.split("\n"))
    if numeric:
        return widest
    return max(min(widest, _NAME), *(cell_len(word) for text in texts for word in text.split()), 1)


def _taken(widths: Iterable[int]) -> int:
    """Return the width of a table from the widths of its columns."""
    return 1 + sum(width + _FRAME for width in widths)


def write_rows(rows: Sequence[tuple[str, str, str]]) -> None:
    """Write lines that consist of a flag, a name and a text, which wraps next to the name."""
    from rich.text import Text

    widest = max((len(plain(name)) for _, name, _ in rows), default=0)
    for flag, name, text in rows:
        mark = (MARKS[flag], _COLOURS[flag]) if flag else (" ", "")
        line = Text.assemble(mark, f" {plain(name):<{widest}} ", plain(text))
        _write(line, indent=widest + 3)


def write_card(card: Card | Shown, *, left_out: Sequence[str] = ()) -> None:
    """Write a card, or the card of an object, to stdout; see `write_table` for `left_out`."""
    from rich.text import Text

    from onebasin.base.card import Card, FactList, Words

    card = card if isinstance(card, Card) else card._card()
    style = f"bold {_COLOURS.get(card.flag, '')}".rstrip()
    _write(Text(f"{MARKS[card.flag]} {plain(card.heading)}".lstrip(), style))
    for part in card.parts:
        if isinstance(part, Words):
            write_remark(f"{part.name} {part.text}".lstrip(), part.flag)
        elif isinstance(part, FactList):
            stdout().print()
            write_rows([(row.flag, row.name, row.text) for row in part.rows])
        else:
            stdout().print()
            write_table(part, left_out=left_out, card=True)


def write_remark(sentence: str, flag: str = "", *, indent: int = 0) -> None:
    """Write a sentence to stdout, with the mark of its flag; further lines are indented."""
    from rich.text import Text

    mark = [(f"{MARKS[flag]} ", _COLOURS[flag])] if flag else []
    _write(Text.assemble(*mark, plain(sentence)), indent=2 if flag else indent)


def _write(text: Text, *, indent: int = 0) -> None:
    """Write a text wrapped to the terminal's width, or in one line if no width is known."""
    from rich.text import Text

    out = stdout()
    if sys.stdout.isatty() or "COLUMNS" in os.environ:
        lines: list[Text] = []  # rich would break long words.
        margin, end = " " * indent, 0
        for line in wrap(
            text.plain,
            out.width,
            subsequent_indent=margin,
            break_long_words=False,
            break_on_hyphens=False,
        ):
            words = line.removeprefix(margin) if lines else line
            start = text.plain.index(words, end)
            end = start + len(words)
            lines.append(text[start:end])
        text = Text(f"\n{margin}").join(lines)
    out.print(text, soft_wrap=True)


def plain(text: str) -> str:
    """Escape a text, remove its backticks, and write numbers so that they can be pasted."""
    return pasteable(text.replace("`", ""))


def stdout() -> Console:
    """Return a console for the current stdout; its width is that of the terminal or COLUMNS, or else 80."""
    from rich.console import Console

    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(width=None if known else _PAGE, highlight=False, markup=False)
