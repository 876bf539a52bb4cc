"""Bars in a notebook: one output for a run, rewritten in place, which ends as a few lines of text.

A notebook keeps what it shows, so that what stays in the saved file is what the bars said last, without bars and times.
No widgets are needed: any front end that shows HTML shows them.
"""

from __future__ import annotations

import contextvars
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

from .html import framed, text
from .time_left import in_words

EVERY = 0.2
"""Seconds between two looks of the output."""
MOST = 8
"""Bars that are shown; what more there are is counted together."""


@dataclass(frozen=True)
class Bar:
    """One bar: what it says, and how much of it is done.

    A bar that is not `timed` does not count where the time left is taken from how much of all bars is done.
    """

    description: str
    total: int
    done: int = 0
    timed: bool = True

    @property
    def count(self) -> str:
        """Such as ``1,200 / 2,000``."""
        return f"{self.done:,} / {self.total:,}"


class NotebookBars:
    """Bars in a notebook's cell; several threads may move them."""

    def __init__(self) -> None:
        self._bars: list[Bar] = []
        self._message, self._shown_at, self._started = "", 0.0, time.monotonic()
        self._handle: Any = None
        self._lock = Lock()
        # The cell that an output belongs to is known to the thread that runs the cell alone.
        self._cell = contextvars.copy_context()

    def start(self) -> None:
        """Begin to count the time."""
        self._started = time.monotonic()

    def stop(self) -> None:
        """Leave what the bars said last."""
        with self._lock:
            if self._bars or self._message:
                self._show(moving=False)

    def add(self, description: str, total: int, *, timed: bool = True) -> int:
        """Add a bar; returns its number."""
        with self._lock:
            self._bars.append(Bar(description, total, timed=timed))
            self._look()
            return len(self._bars) - 1

    def move(self, bar: int, completed: int, description: str | None) -> None:
        """Set how much of a bar is done, and what it says."""
        with self._lock:
            known = self._bars[bar]
            words = known.description if description is None else description
            self._bars[bar] = replace(known, done=completed, description=words)
            self._look()

    def say(self, message: str) -> None:
        """Say something under the bars, until something else is said."""
        with self._lock:
            self._message = message
            self._show(moving=True)

    def _look(self) -> None:
        if time.monotonic() - self._shown_at >= EVERY:
            self._show(moving=True)

    def _show(self, *, moving: bool) -> None:
        seconds = time.monotonic() - self._started
        message = self._message if moving or not self._bars else ""
        bundle = {
            "text/html": in_html(self._bars, message, seconds if moving else None),
            "text/plain": in_text(self._bars, message),
        }
        self._cell.run(self._publish, bundle)
        self._shown_at = time.monotonic()

    def _publish(self, bundle: Mapping[str, str]) -> None:
        from IPython.display import display

        if self._handle is None:
            self._handle = display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)


def in_html(bars: list[Bar], message: str, seconds: float | None) -> str:
    """Write bars, and a message under them, as HTML; `seconds` is how long they move, None where they no longer do."""
    rows = ""
    for bar in _few(bars):
        moving = f'<td><progress max="{bar.total}" value="{bar.done}"></progress></td>'
        drawn = "" if seconds is None else moving
        rows += f'<tr><td>{text(bar.description)}</td>{drawn}<td class="n">{bar.count}</td></tr>'
    said = [message] if message else []
    timed = [bar for bar in bars if bar.timed]
    total, done = sum(bar.total for bar in timed), sum(bar.done for bar in timed)
    if seconds is not None and seconds >= 2 and total and 0.02 < done / total < 1:
        said.append(f"about {in_words(seconds * (total - done) / done)} left")
    words = f"<p><small>{text('; '.join(said))}</small></p>" if said else ""
    return framed(f"<table>{rows}</table>{words}" if rows else words)


def in_text(bars: list[Bar], message: str) -> str:
    """Write bars as plain text."""
    lines = [f"{bar.description}  {bar.count}" for bar in _few(bars)]
    return "\n".join([*lines, message] if message else lines)


def _few(bars: list[Bar]) -> list[Bar]:
    if len(bars) <= MOST:
        return bars
    rest = bars[MOST:]
    total, done = sum(bar.total for bar in rest), sum(bar.done for bar in rest)
    return [*bars[:MOST], Bar(f"and {len(rest)} more", total, done)]
