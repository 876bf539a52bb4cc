"""Progress on stderr: bars in a terminal or a notebook, few lines anywhere else; and all of it in a run's log."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from threading import RLock

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

from .notices import record
from .progress_notebook import NotebookBars
from .text import shown
from .time_left import TimeLeft, in_words


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
    """Bars that several threads may move; few lines where nothing can move, silent when `enabled` is false.

    By default they are shown where bars move; a run's log is told in any case.
    """

    def __init__(self, enabled: bool | None) -> None:
        console = Console(stderr=True)
        moves = console.is_jupyter or _moves(sys.stderr.isatty(), os.environ)
        if enabled is None:
            enabled = moves and not _in_ci(os.environ)
        self._enabled = enabled
        self._seen = enabled and moves
        self._bars: NotebookBars | TerminalBars = (
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
        """Tell whether bars are seen to move."""
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
    """Tell whether somebody sees bars move: in a `terminal` that can, but not in one that a CI has for its log.

    Rich's own answer is yes in a pipe too where colours are forced, as they often are in a CI.
    """
    capable = environment.get("TERM") not in ("dumb", "unknown")
    return terminal and capable and not _in_ci(environment)


def _in_ci(environment: Mapping[str, str]) -> bool:
    """Tell whether a CI runs this process, as its variable says: then nobody watches, in a notebook either."""
    return environment.get("CI", "").lower() not in ("", "0", "false")


LINES_EVERY = 60.0
"""Seconds that pass at least between two lines of how far all chains are, where no bar can say it."""


class AllChains:
    """The progress of several chains together, of which none has begun."""

    def __init__(self, bars: ProgressBars, clock: TimeLeft) -> None:
        self._bars, self._clock, self._lock = bars, clock, RLock()
        self._started = self._told_at = time.monotonic()
        self._told = 0
        self._bar = bars.add(self._name, clock.total, timed=False)

    @property
    def iterations(self) -> int:
        """The number of iterations of one chain."""
        return self._clock.warmup + self._clock.draws

    @property
    def _name(self) -> str:
        return f"{self._clock.chains} chains" if self._clock.chains > 1 else "1 chain"

    def begin(self, number: int, done: int) -> None:
        """Begin a chain with what it has kept from before."""
        with self._lock:
            self._clock.begin(number, done, time.monotonic())
            self._told = max(self._told, self._tenths)
            self._show()

    def look(self, number: int, done: int) -> None:
        """Take in that so many iterations of a chain are done."""
        with self._lock:
            self._clock.look(number, done, time.monotonic())
            self._show()

    @property
    def _tenths(self) -> int:
        return 10 * self._clock.done // self._clock.total

    def _show(self) -> None:
        now, done = time.monotonic(), self._clock.done
        seconds = self._clock.left(now) if done < self._clock.total else None
        left = "" if seconds is None else f", about {in_words(seconds)} left"
        self._bars.move(self._bar, done, f"{self._name}{left}")
        if left and self._told < self._tenths and now - self._told_at >= LINES_EVERY:
            self._told, self._told_at = self._tenths, now
            self._bars.note(
                f"{self._name}: {done:,} of {self._clock.total:,} iterations after "
                f"{in_words(now - self._started)}{left}"
            )


class ChainBar:
    """The progress of one chain, by its number from 0: its phase, step size, acceptance rate, and divergences so far.

    `done` of its iterations were done before.
    """

    def __init__(
        self, bars: ProgressBars, number: int, warmup: int, draws: int, done: int = 0
    ) -> None:
        self._bars, self._warmup, self._total = bars, warmup, warmup + draws
        self._number, self._name = number, f"chain {number + 1}"
        self._phase = self._phase_at(done)
        again = f" again after {done:,} of {self._total:,} iterations" if done else ""
        record(f"{self._name} begins{again}: {self._phase}")
        self._bar = bars.add(f"{self._name} {self._phase}", self._total, timed=False)
        if done:
            bars.move(self._bar, done)

    @property
    def moving(self) -> bool:
        """Tell whether anybody sees it: if not, nothing needs to be found out for it."""
        return self._bars.moving

    def show(self, done: int, **facts: float | None) -> None:
        """Say after some iterations what is known: `step_size`, `divergences`, and `acceptance`, a mean probability."""
        self._bars.look(self._number, done)
        known = _known(**facts)
        before, phase = self._phase, self._phase_at(done)
        self._phase = phase
        if (before, phase) == ("warmup", "sampling"):  # a second try may begin again
            record(
                f"{self._name} has warmed up:{known}" if known else f"{self._name} has warmed up"
            )
        self._bars.move(self._bar, done, f"{self._name} {phase:<8}{known}".rstrip())

    def end(self, seconds: float, **facts: float | None) -> None:
        """Say how it ended, and the same."""
        self.show(self._total, **facts)
        self._bars.note(f"{self._name} is finished after {seconds:.1f} s:{_known(**facts)}")

    def _phase_at(self, done: int) -> str:
        return "warmup" if done < self._warmup else "sampling"


def _known(
    step_size: float | None = None,
    acceptance: float | None = None,
    divergences: float | None = None,
) -> str:
    parts = [
        "" if step_size is None else f"step {step_size:.3g}",
        "" if acceptance is None else f"accept {acceptance:.2f}",
        "" if divergences is None else f"{divergences} divergent",
    ]
    known = ", ".join(part for part in parts if part)
    return f" {known}" if known else ""
