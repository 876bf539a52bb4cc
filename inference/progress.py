"""Progress on stderr: bars in a terminal or a notebook, a line for each chain that has ended anywhere else."""

from __future__ import annotations

from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from onebasin.models.text import shown

from .progress_notebook import NotebookBars


class Bars(Protocol):
    """Where bars are seen."""

    def start(self) -> None:
        """Begin to show them."""

    def stop(self) -> None:
        """Show them no more."""

    def add(self, description: str, total: int) -> int:
        """Add a bar; returns its number."""

    def move(self, bar: int, completed: int, description: str | None) -> None:
        """Set how much of a bar is done, and what it says."""

    def say(self, message: str) -> None:
        """Say something beside the bars."""


class TerminalBars:
    """Bars in a terminal, which go when they have ended; nothing where nobody sees them."""

    def __init__(self, console: Console, *, seen: bool) -> None:
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=12),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=console,
            disable=not seen,
            transient=True,
        )
        self.start, self.stop = self._progress.start, self._progress.stop

    def add(self, description: str, total: int) -> int:
        """Add a bar; returns its number."""
        return int(self._progress.add_task(description, total=total))

    def move(self, bar: int, completed: int, description: str | None) -> None:
        """Set how much of a bar is done, and what it says."""
        self._progress.update(TaskID(bar), completed=completed)
        if description is not None:
            self._progress.update(TaskID(bar), description=description)

    def say(self, message: str) -> None:
        """Print a line above the bars."""
        self._progress.console.print(shown(message), highlight=False, markup=False, soft_wrap=True)


class ProgressBars:
    """Bars that several threads may move; silent when `enabled` is false, and few lines where nothing can move.

    Parameters
    ----------
    enabled : bool
        Whether to show anything.
    """

    def __init__(self, enabled: bool) -> None:
        console = Console(stderr=True)
        self._enabled = enabled
        self._seen = enabled and (console.is_terminal or console.is_jupyter)
        self._bars: Bars = (
            NotebookBars()
            if enabled and console.is_jupyter
            else TerminalBars(console, seen=self._seen)
        )

    def __enter__(self) -> ProgressBars:
        self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bars.stop()

    @property
    def moving(self) -> bool:
        """Whether bars are seen to move."""
        return self._seen

    def chain(self, number: int, *, warmup: int, draws: int) -> ChainBar:
        """Add a bar of a chain, whose number counts from 0."""
        return ChainBar(self, number, warmup, draws)

    def add(self, description: str, total: int) -> int:
        """Add a bar; returns its number."""
        return self._bars.add(description, total)

    def move(self, bar: int, completed: int, description: str | None = None) -> None:
        """Set how much of a bar is done, and what it says."""
        self._bars.move(bar, completed, description)

    def say(self, message: str) -> None:
        """Print a line above the bars."""
        if self.moving:
            self._bars.say(message)

    def note(self, message: str) -> None:
        """Print a line where no bar can say it: in a file or a pipe."""
        if self._enabled and not self.moving:
            self._bars.say(message)


class ChainBar:
    """How far one chain is: its phase, its step size, and how many divergences there were so far.

    Parameters
    ----------
    bars : ProgressBars
        Where it is shown.
    number : int
        Of the chain, from 0.
    warmup, draws : int
        Iterations of the chain.
    """

    def __init__(self, bars: ProgressBars, number: int, warmup: int, draws: int) -> None:
        self._bars, self._warmup, self._total = bars, warmup, warmup + draws
        self._name = f"chain {number + 1}"
        self._bar = bars.add(f"{self._name} warmup", self._total)

    @property
    def moving(self) -> bool:
        """Whether anybody sees it: if not, nothing needs to be found out for it."""
        return self._bars.moving

    def show(
        self, done: int, *, step_size: float | None = None, divergences: int | None = None
    ) -> None:
        """Say what is known after some iterations."""
        phase = "warmup" if done < self._warmup else "sampling"
        text = f"{self._name} {phase:<8}{_known(step_size, divergences)}"
        self._bars.move(self._bar, done, text.rstrip())

    def end(
        self, seconds: float, *, step_size: float | None = None, divergences: int | None = None
    ) -> None:
        """Say how it ended."""
        self.show(self._total, step_size=step_size, divergences=divergences)
        known = _known(step_size, divergences)
        self._bars.note(f"{self._name} is finished after {seconds:.1f} s:{known}")


def _known(step_size: float | None, divergences: int | None) -> str:
    step = "" if step_size is None else f" step {step_size:.3g}"
    if divergences is None:
        return step
    return f"{step}{',' if step else ''} {divergences} divergent"
