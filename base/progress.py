"""Progress on stderr: bars in a terminal or a notebook, a few lines elsewhere; the run's log gets all of it."""

from __future__ import annotations

import contextvars
import io
import os
import sys
import time
from collections.abc import Mapping
from threading import RLock
from typing import Any

from rich import progress
from rich.console import Console
from rich.text import Text

from .run_log import record
from .text import shown

LINES_EVERY = 60.0
"""Minimum number of seconds between two progress lines of all chains, where there are no bars."""
SHOW_EVERY = 0.2
"""Minimum number of seconds between two updates of a notebook's output."""


class _TimeLeftColumn(progress.TimeRemainingColumn):
    """Column with the time left, for bars that are timed."""

    def render(self, task: progress.Task) -> Text:
        return super().render(task) if task.fields["timed"] else Text()


class ProgressBars:
    """Progress bars for several threads, or a few lines where bars cannot move; nothing if `enabled` is false.

    By default, bars are shown only where they can move. In a notebook, they are one output of plain text, which needs
    no widgets and keeps its last state.
    """

    def __init__(self, enabled: bool | None) -> None:
        console = Console(stderr=True)
        self._notebook = console.is_jupyter
        moves = self._notebook or _moves(sys.stderr.isatty(), os.environ)
        if enabled is None:
            enabled = moves and not _in_ci(os.environ)
        self._enabled = enabled
        self._seen = enabled and moves
        self._progress = progress.Progress(
            progress.SpinnerColumn(),
            progress.TextColumn("{task.description}", markup=False),
            progress.BarColumn(bar_width=8),  # A chain's line then fits into 80 columns.
            progress.MofNCompleteColumn(),
            _TimeLeftColumn(),
            console=console,
            disable=self._notebook or not self._seen,
            transient=True,
            speed_estimate_period=300.0,  # Chains advance in steps.
        )
        self._lock = RLock()
        self._message, self._shown_at = "", 0.0
        self._output: Any = None
        # Only the thread that runs a notebook's cell knows where its output belongs.
        self._cell = contextvars.copy_context()
        self._together: int | None = None
        self._name, self._each, self._total, self._done = "", 0, 0, dict[int, int]()
        self._begun = self._told_at = 0.0
        self._told = 0

    def __enter__(self) -> ProgressBars:
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()
        self._message = ""
        if self._progress.tasks:
            self._show_in_notebook(at_once=True)

    def expect(self, *, chains: int, warmup: int, draws: int) -> None:
        """Add a bar for all chains together, with the time left, before the first chain begins."""
        self._name = f"{chains} chains" if chains > 1 else "1 chain"
        self._each, self._total = warmup + draws, chains * (warmup + draws)
        self._begun = self._told_at = time.monotonic()
        self._together = self.add(self._name, self._total, timed=False)

    def taken(self, number: int) -> None:
        """Count a chain that an earlier run has already finished."""
        record(f"chain {number} was finished before")
        self.look(number, self._each)

    def chain(self, number: int, *, warmup: int, draws: int, done: int = 0) -> ChainBar:
        """Add a bar for a chain, numbered from 0; an earlier run has already done `done` of its iterations."""
        return ChainBar(self, number, warmup, draws, done)

    def look(self, number: int, done: int) -> None:
        """Update the number of iterations that a chain has done."""
        if self._together is None:
            return
        with self._lock:
            self._done[number] = done
            done, now = sum(self._done.values()), time.monotonic()
            task = self._progress.tasks[self._together]
            left = f", about {in_words(task.time_remaining)} left" if task.time_remaining else ""
            self.move(self._together, done, f"{self._name}{left}")
            tenths = 10 * done // self._total
            if self._told < tenths < 10 and now - self._told_at >= LINES_EVERY:
                self._told, self._told_at = tenths, now
                after = in_words(now - self._begun)
                self.note(f"{self._name}: {done:,} of {self._total:,} iterations after {after}")

    def add(self, description: str, total: int, *, timed: bool = True) -> int:
        """Add a bar, with the time left if it is `timed`, and return its number."""
        return int(self._progress.add_task(description, total=total, timed=timed))

    def move(self, bar: int, completed: int, description: str | None = None) -> None:
        """Update a bar and its description."""
        self._progress.update(progress.TaskID(bar), completed=completed, description=description)
        self._show_in_notebook()

    def say(self, message: str) -> None:
        """Print a line above the bars; in a notebook, show it below them until the next line."""
        record(message)
        if self._seen and self._notebook:
            self._message = shown(message)
            self._show_in_notebook(at_once=True)
        elif self._seen:
            self._print(message)

    def note(self, message: str) -> None:
        """Print a line where there are no bars, such as in a file or a pipe."""
        record(message)
        if self._enabled and not self._seen:
            self._print(message)

    def _print(self, message: str) -> None:
        console = self._progress.console
        console.print(shown(message), highlight=False, markup=False, soft_wrap=True)

    def _show_in_notebook(self, *, at_once: bool = False) -> None:
        if not (self._notebook and self._seen):
            return
        with self._lock:
            if at_once or time.monotonic() - self._shown_at >= SHOW_EVERY:
                page = io.StringIO()
                Console(file=page, width=100, color_system=None, force_jupyter=False).print(
                    self._progress.get_renderable()
                )
                text = "\n".join(line.rstrip() for line in page.getvalue().splitlines())
                text = f"{text}\n{self._message}".strip("\n")
                self._cell.run(self._publish, {"text/plain": text})
                self._shown_at = time.monotonic()

    def _publish(self, bundle: Mapping[str, str]) -> None:
        from IPython.display import display

        if self._output is None:
            self._output = display(bundle, raw=True, display_id=True)
        else:
            self._output.update(bundle, raw=True)


def _moves(terminal: bool, environment: Mapping[str, str]) -> bool:
    """Check whether stderr is a terminal that can move bars; colours that are forced in a pipe do not matter."""
    capable = environment.get("TERM") not in ("dumb", "unknown")
    return terminal and capable and not _in_ci(environment)


def _in_ci(environment: Mapping[str, str]) -> bool:
    """Check whether this process runs in CI, where nobody watches."""
    return environment.get("CI", "").lower() not in ("", "0", "false")


class ChainBar:
    """The progress of one chain: its phase, step size, acceptance rate, and divergences so far."""

    def __init__(
        self, bars: ProgressBars, number: int, warmup: int, draws: int, done: int = 0
    ) -> None:
        self._bars, self._warmup, self._total = bars, warmup, warmup + draws
        self._number, self._name = number, f"chain {number}"
        self._phase = self._phase_at(done)
        again = f" again after {done:,} of {self._total:,} iterations" if done else ""
        record(f"{self._name} begins{again}: {self._phase}")
        self._bar = bars.add(f"{self._name} {self._phase}", self._total, timed=False)
        if done:
            bars.move(self._bar, done)
            bars.look(number, done)

    def show(self, done: int, **facts: float | None) -> None:
        """Show facts after some iterations: `step_size`, `divergences`, and the mean `acceptance` probability."""
        self._bars.look(self._number, done)
        known = _known(**facts)
        before, phase = self._phase, self._phase_at(done)
        self._phase = phase
        if (before, phase) == ("warmup", "sampling"):  # A retry may go back to the warmup.
            record(f"{self._name} has warmed up{known and f':{known}'}")
        self._bars.move(self._bar, done, f"{self._name} {phase:<8}{known}".rstrip())

    def end(self, seconds: float, **facts: float | None) -> None:
        """Show the facts at the end."""
        self.show(self._total, **facts)
        self._bars.note(f"{self._name} is finished after {seconds:.1f} s:{_known(**facts)}")

    def _phase_at(self, done: int) -> str:
        return "warmup" if done < self._warmup else "sampling"


_FACTS = {"step_size": "step {:.3g}", "acceptance": "accept {:.2f}", "divergences": "{} divergent"}


def _known(**facts: float | None) -> str:
    known = {name: facts[name] for name in _FACTS if facts.get(name) is not None}
    return " " * bool(known) + ", ".join(_FACTS[n].format(v) for n, v in known.items())


def in_words(seconds: float) -> str:
    """Write a time, such as ``40 s``, ``12 min`` or ``2 h 10 min``."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"
