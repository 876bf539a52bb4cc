"""Progress on stderr: bars in a terminal or a notebook, a line for each chain that has ended anywhere else."""

from __future__ import annotations

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
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=12),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=console,
            disable=not (enabled and (console.is_terminal or console.is_jupyter)),
            transient=True,
        )

    def __enter__(self) -> ProgressBars:
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    @property
    def moving(self) -> bool:
        """Whether bars are seen to move."""
        return not self._progress.disable

    def chain(self, number: int, *, warmup: int, draws: int) -> ChainBar:
        """Add a bar of a chain, whose number counts from 0."""
        return ChainBar(self, number, warmup, draws)

    def add(self, description: str, total: int) -> TaskID:
        """Add a bar; returns its number."""
        return self._progress.add_task(description, total=total)

    def move(self, bar: TaskID, completed: int, description: str | None = None) -> None:
        """Set how much of a bar is done, and what it says."""
        if description is None:
            self._progress.update(bar, completed=completed)
        else:
            self._progress.update(bar, completed=completed, description=description)

    def say(self, message: str) -> None:
        """Print a line above the bars."""
        if self.moving:
            self._print(message)

    def note(self, message: str) -> None:
        """Print a line where no bar can say it: in a file or a pipe."""
        if self._enabled and not self.moving:
            self._print(message)

    def _print(self, message: str) -> None:
        console = self._progress.console
        console.print(shown(message), highlight=False, markup=False, soft_wrap=True)


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
