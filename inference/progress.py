"""Progress on stderr: bars in a terminal or a notebook, few lines anywhere else; and all of it in a run's log."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from onebasin.models.notices import record
from onebasin.models.text import shown

from .progress_chains import AllChains, ChainBar
from .progress_notebook import NotebookBars
from .time_left import TimeLeft


class Bars(Protocol):
    """Where bars are seen."""

    def start(self) -> None:
        """Begin to show them."""

    def stop(self) -> None:
        """Show them no more."""

    def add(self, description: str, total: int, *, timed: bool = True) -> int:
        """Add a bar, which says itself how long it takes if it is `timed`; returns its number."""

    def move(self, bar: int, completed: int, description: str | None) -> None:
        """Set how much of a bar is done, and what it says."""

    def say(self, message: str) -> None:
        """Say something beside the bars."""


class _TimeLeftColumn(TimeRemainingColumn):
    """The time left by the bar's own speed, where it is timed."""

    def render(self, task: Task) -> Text:
        return super().render(task) if task.fields["timed"] else Text()


class TerminalBars:
    """Bars in a terminal, which go when they have ended; nothing where nobody sees them."""

    def __init__(self, console: Console, *, seen: bool) -> None:
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=8),  # a chain's line is to fit into 80 columns
            MofNCompleteColumn(),
            _TimeLeftColumn(),
            console=console,
            disable=not seen,
            transient=True,
        )
        self.start, self.stop = self._progress.start, self._progress.stop

    def add(self, description: str, total: int, *, timed: bool = True) -> int:
        """Add a bar; returns its number."""
        return int(self._progress.add_task(description, total=total, timed=timed))

    def move(self, bar: int, completed: int, description: str | None) -> None:
        """Set how much of a bar is done, and what it says."""
        self._progress.update(TaskID(bar), completed=completed, description=description)

    def say(self, message: str) -> None:
        """Print a line above the bars."""
        self._progress.console.print(shown(message), highlight=False, markup=False, soft_wrap=True)


class ProgressBars:
    """Bars that several threads may move; silent when `enabled` is false, and few lines where nothing can move.

    Parameters
    ----------
    enabled : bool or None
        Whether to show anything, by default where bars move; a run's log is told in any case.
    """

    def __init__(self, enabled: bool | None) -> None:
        console = Console(stderr=True)
        moves = console.is_jupyter or _moves(sys.stderr.isatty(), os.environ)
        self._enabled = enabled = moves if enabled is None else enabled
        self._seen = enabled and moves
        self._bars: Bars = (
            NotebookBars()
            if enabled and console.is_jupyter
            else TerminalBars(console, seen=self._seen)
        )
        self._all: AllChains | None = None

    def __enter__(self) -> ProgressBars:
        self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bars.stop()

    @property
    def moving(self) -> bool:
        """Whether bars are seen to move."""
        return self._seen

    def expect(self, *, chains: int, warmup: int, draws: int, at_once: int) -> None:
        """Add a bar of several chains together, which says how long they still take; before any of them begins."""
        self._all = AllChains(self, TimeLeft(chains, warmup, draws, at_once))

    def taken(self, number: int) -> None:
        """Count a chain that was finished before."""
        record(f"chain {number + 1} was finished before")
        if self._all is not None:
            self._all.begin(number, self._all.iterations)

    def chain(self, number: int, *, warmup: int, draws: int, done: int = 0) -> ChainBar:
        """Add a bar of a chain, whose number counts from 0; so many of its iterations were done before."""
        if self._all is not None:
            self._all.begin(number, done)
        return ChainBar(self, number, warmup, draws, done)

    def look(self, number: int, done: int) -> None:
        """Take in that so many iterations of a chain are done."""
        if self._all is not None:
            self._all.look(number, done)

    def add(self, description: str, total: int, *, timed: bool = True) -> int:
        """Add a bar, which says by its own speed how long it takes if it is `timed`; returns its number."""
        return self._bars.add(description, total, timed=timed)

    def move(self, bar: int, completed: int, description: str | None = None) -> None:
        """Set how much of a bar is done, and what it says."""
        self._bars.move(bar, completed, description)

    def say(self, message: str) -> None:
        """Print a line above the bars."""
        record(message)
        if self.moving:
            self._bars.say(message)

    def note(self, message: str) -> None:
        """Print a line where no bar can say it: in a file or a pipe."""
        record(message)
        if self._enabled and not self.moving:
            self._bars.say(message)


def _moves(terminal: bool, environment: Mapping[str, str]) -> bool:
    """Whether somebody sees bars move: in a `terminal` that can, but not in one that a CI has for its log.

    Rich's own answer is yes in a pipe too where colours are forced, as they often are in a CI.
    """
    quiet = environment.get("CI", "").lower() not in ("", "0", "false")
    return terminal and not quiet and environment.get("TERM") not in ("dumb", "unknown")
