"""What the commands write: tables and JSON on stdout, lines of progress on stderr.

Everything that comes from files goes through `shown` on its way: it is shown, never obeyed.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import typer

from onebasin.models.notices import LOGGER
from onebasin.models.text import shown

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console
    from rich.text import Text

    from onebasin.analysis.diagnostics.result import AlignedDiagnosis, Diagnosis
    from onebasin.analysis.report import Column, Table, TableCell

WORST_SHOWN = 10
_PLAIN_WIDTH = 160
"""Width where stdout is no terminal: a file or a pipe has none of its own."""
_MARKS = {"good": ("✓", "green"), "warn": ("!", "yellow"), "bad": ("✗", "red")}


def prepare_jax() -> None:
    """Set JAX's flags before anything uses it.

    Double precision; no remarks on missing GPUs; and every compiled kernel kept in the user's cache, the small ones
    too: a first run compiles for longer than it samples a small network. JAX's keys tell versions and processors
    apart, and a place that the user has chosen for JAX stays.
    """
    import jax

    from onebasin.models.storage.cache import make_user_cache, user_cache

    jax.config.update("jax_enable_x64", True)
    if jax.config.jax_compilation_cache_dir is None:
        with suppress(OSError):  # JAX does without, where it cannot be made
            make_user_cache("jax")
        jax.config.update("jax_compilation_cache_dir", str(user_cache("jax")))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    for name in ("jax", "jax._src.xla_bridge", "absl"):
        logging.getLogger(name).setLevel(logging.ERROR)


class _Notices(logging.Handler):
    """Writes notices as lines of progress."""

    def emit(self, record: logging.LogRecord) -> None:
        say(record.getMessage())


def show_notices() -> None:
    """Write notices to stderr, each in a line."""
    if not any(isinstance(handler, _Notices) for handler in LOGGER.handlers):
        LOGGER.addHandler(_Notices())


def quieten_stan() -> None:
    """Keep cmdstanpy's own log off the terminal; what goes wrong comes as an error."""
    logger = logging.getLogger("cmdstanpy")
    logger.setLevel(logging.CRITICAL)
    logger.propagate = False
    logger.addHandler(logging.NullHandler())


def say(text: str) -> None:
    """Write a line of progress to stderr."""
    typer.echo(shown(text), err=True)


def complain(message: str, *, lines: bool = False) -> None:
    """Write what went wrong to stderr: a sentence, or lines where a program's own words are part of it."""
    typer.echo(f"onebasin: {shown(message, lines=lines)}", err=True)


@contextmanager
def stages() -> Iterator[Callable[[str], None]]:
    """Show the stages of something that takes minutes, each with its time, on stderr.

    Yields
    ------
    callable
        To be called with the name of each stage as it begins.
    """
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    if not sys.stderr.isatty():
        yield say
        return
    columns = (
        SpinnerColumn(finished_text="✓"),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:

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
    """Show how far an alignment is, on stderr, where that is a terminal.

    Yields
    ------
    callable or None
        To be called with draws gone through and draws in all.
    """
    from rich.console import Console
    from rich.progress import Progress

    if not sys.stderr.isatty():
        yield None
        return
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("aligning draws", total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def write_json(value: Any) -> None:
    """Write a value to stdout as JSON; numbers that are not finite become null."""
    from onebasin.models.jsonable import json_text

    typer.echo(json_text(value))


def write_table(table: Table) -> None:
    """Write a table to stdout."""
    import rich.box
    from rich.table import Table as RichTable
    from rich.text import Text

    columns = table.headings
    drawn = RichTable(
        box=rich.box.SIMPLE_HEAD, title=Text(plain(table.caption)) or None, title_justify="left"
    )
    for column, numeric in zip(columns, table.numeric, strict=True):
        heading = plain(column.name) + (f"\n{column.unit}" if column.unit else "")
        drawn.add_column(Text(heading), justify="right" if numeric else "left", overflow="fold")
    for row in table.cells:
        drawn.add_row(*(_cell(cell, column) for cell, column in zip(row, columns, strict=True)))
    stdout().print(drawn)


def write_diagnosis(diagnosis: Diagnosis, *, name: str) -> None:
    """Write what the diagnostics say of one posterior: tables, then warnings and notes."""
    from onebasin.analysis.report import health_table, parameter_table

    write_table(health_table({name: diagnosis}))
    varying = len(diagnosis.parameters) - len(diagnosis.constants)
    shown = min(WORST_SHOWN, varying)
    caption = f"{shown} of {varying} parameters, worst first" if shown < varying else ""
    write_table(parameter_table(diagnosis, worst=WORST_SHOWN, caption=caption))
    for sentence in diagnosis.warnings:
        write_remark(sentence, "bad")
    for sentence in diagnosis.notes:
        write_remark(sentence, "warn")
    if diagnosis.outcome != "failed":
        write_remark(diagnosis.checks_in_words, "good" if diagnosis.passed else "warn")


def write_findings(
    file: Path, diagnosis: Diagnosis, aligned: AlignedDiagnosis | None, *, json: bool
) -> None:
    """Write what is known of one posterior file, raw and, where there is one, modulo its symmetry."""
    if json:
        also = {"aligned": aligned.to_dict()} if aligned else {}
        write_json({"file": str(file), **diagnosis.to_dict(), **also})
        return
    write_diagnosis(diagnosis, name=file.stem)
    if aligned:
        write_aligned(aligned)


def write_aligned(diagnosis: AlignedDiagnosis) -> None:
    """Write the diagnosis of draws in one labelling beside that of the draws as they came."""
    from onebasin.analysis.report import aligned_table, parameter_table

    write_table(aligned_table(diagnosis))
    shown = min(WORST_SHOWN, len(diagnosis.aligned.parameters))
    caption = f"aligned: {shown} of {len(diagnosis.aligned.parameters)} parameters, worst first"
    write_table(parameter_table(diagnosis.aligned, worst=WORST_SHOWN, caption=caption))
    for sentence in diagnosis.sentences:
        write_sentence(sentence)
    if diagnosis.caveat and diagnosis.caveat not in diagnosis.raw.notes:
        write_remark(diagnosis.caveat, "warn")
    for sentence in diagnosis.warnings:
        write_remark(sentence, "warn")


def write_remark(sentence: str, flag: str) -> None:
    """Write a sentence to stdout, with its mark."""
    from rich.text import Text

    mark, colour = _MARKS[flag]
    stdout().print(Text.assemble((f"{mark} ", colour), plain(sentence)))


def write_sentence(sentence: str) -> None:
    """Write a sentence to stdout."""
    from rich.text import Text

    stdout().print(Text(plain(sentence)))


def plain(text: str) -> str:
    """Text of which a terminal obeys nothing, without the backticks that set a name in code type on a page."""
    return shown(text.replace("`", ""))


def stdout() -> Console:
    """Give a console that writes to stdout as it now is; what it is given is `plain` text, and `Text`, never markup."""
    from rich.console import Console

    terminal = sys.stdout.isatty()
    return Console(width=None if terminal else _PLAIN_WIDTH, highlight=False, markup=False)


def _cell(cell: TableCell, column: Column) -> Text:
    from rich.text import Text

    parts: list[str | tuple[str, str]] = [plain(column.write(cell.value))]
    if cell.flag:
        mark, colour = _MARKS[cell.flag]
        parts.append((f" {mark}", colour))
    if cell.note:
        parts.append((f" {plain(cell.note)}", "dim"))
    return Text.assemble(*parts)
