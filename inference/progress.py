"""Progress bars on stderr, one a chain."""

from __future__ import annotations

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from onebasin.models.text import shown


class ProgressBars:
    """Bars that several threads may move; silent when `enabled` is false or stderr is no terminal.

    Parameters
    ----------
    enabled : bool
        Whether to show anything.
    """

    def __init__(self, enabled: bool) -> None:
        console = Console(stderr=True)
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
            disable=not (enabled and console.is_terminal),
            transient=True,
        )

    def __enter__(self) -> ProgressBars:
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

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
        if not self._progress.disable:
            self._progress.console.print(shown(message), highlight=False, markup=False)
