"""Follow a chain of CmdStan by the iterations that it prints, and by the draws that it has written."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from onebasin.base.progress import ChainBar
from onebasin.stan.home.errors import StanRunError

_ITERATION = re.compile(r"Iteration:\s+(\d+) /")
_STEP, _DIVERGENT, _ACCEPT = b"stepsize__", b"divergent__", b"accept_stat__"


BUFFERED = 2**18
"""Bytes of draws that may wait in a program's buffers: where more of them have not come to the file, none will."""
FEWEST_BYTES = 2
"""Bytes of a number in a file of draws, with its comma."""


class NotWritten(StanRunError):
    """Draws that do not reach their file, as on a full disk: CmdStan itself does not look, and goes on for nothing."""


class ChainWatch:
    """Moves the bar of a chain as its program prints.

    Where the bar is seen, what has been added to the CSV file since the last time is read: divergences, step sizes and
    probabilities of acceptance stand in the first columns of its rows. Nothing is asked of the program, and nothing is
    slower for it.

    The program takes `warmup` iterations without draws, of which its file begins with `saved` rows, after `before` ones
    that programs before it have done. After its warmup `warmed` is called once, with the seconds since the beginning.
    `grows` says whether the file grows with every draw; the interpreter writes it at the end.
    """

    def __init__(
        self,
        bar: ChainBar,
        csv: Path,
        *,
        warmup: int,
        saved: int = 0,
        before: int = 0,
        warmed: Callable[[float], None] = lambda _: None,
        grows: bool = True,
    ) -> None:
        self._bar, self._csv, self._before = bar, csv, before
        self._warmup, self._warmed, self._began = warmup, warmed, time.monotonic()
        self._grows, self._unseen = grows, saved
        self._place = self._size = 0
        self._grew: int | None = None  # the iteration at which the file was last seen to have grown
        self._columns: list[bytes] | None = None
        self._step_size: float | None = None
        self._divergences: int | None = None
        self._accepted, self._rows = 0.0, 0

    def __call__(self, printed: str) -> None:
        """Take in what was printed."""
        numbers = _ITERATION.findall(printed)
        if not numbers:
            return
        if (iteration := int(numbers[-1])) > self._warmup:
            self._check_grows(iteration)
        if self._bar.moving:
            self._look()
        self._bar.show(
            self._before + iteration,
            step_size=self._step_size,
            divergences=self._divergences,
            acceptance=self._accepted / self._rows if self._rows else None,
        )

    def _check_grows(self, iteration: int) -> None:
        """Look whether rows have come, as far as they do not wait in a buffer: those of small models do for long."""
        if self._grew is None:
            self._grew = self._warmup
            if self._warmup:
                self._warmed(time.monotonic() - self._began)
        if not self._grows:
            return
        size = self._csv.stat().st_size if self._csv.exists() else 0
        if size != self._size:
            self._size, self._grew = size, iteration
        elif (iteration - self._grew) * self._row_bytes() > BUFFERED:
            raise NotWritten(f"Stan's draws are no longer written to {self._csv}.")

    def _row_bytes(self) -> int:
        """The fewest bytes that a row of the file has."""
        with suppress(OSError), self._csv.open("rb") as file:
            for line in file:
                if not line.startswith(b"#"):
                    return FEWEST_BYTES * (line.count(b",") + 1)
        return FEWEST_BYTES

    def _look(self) -> None:
        """Read the whole lines that have been added."""
        try:
            with self._csv.open("rb") as file:
                file.seek(self._place)
                for line in file:
                    if not line.endswith(b"\n"):
                        break  # still being written
                    self._place += len(line)
                    self._read(line)
        except OSError:  # not there yet
            return

    def _read(self, line: bytes) -> None:
        if line.startswith(b"#"):
            return
        if self._columns is None:
            self._columns = [name for name in line.split(b",", 7)[:7] if name.endswith(b"__")]
            return
        if self._unseen:
            self._unseen -= 1
            return
        values = dict(zip(self._columns, line.split(b",", 7), strict=False))
        if _STEP in values:
            self._step_size = float(values[_STEP])
        if _ACCEPT in values:
            self._accepted, self._rows = self._accepted + float(values[_ACCEPT]), self._rows + 1
        if _DIVERGENT in values:
            self._divergences = (self._divergences or 0) + int(float(values[_DIVERGENT]))
