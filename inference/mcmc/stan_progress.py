"""How far a chain of CmdStan is: by the iterations that it prints, and by the draws that it has written."""

from __future__ import annotations

import re
from pathlib import Path

from ..progress import ChainBar

_ITERATION = re.compile(r"Iteration:\s+(\d+) /")
_STEP, _DIVERGENT, _ACCEPT = b"stepsize__", b"divergent__", b"accept_stat__"


class ChainWatch:
    """Moves the bar of a chain as its program prints.

    Where the bar is seen, what has been added to the CSV file since the last time is read: divergences, step sizes and
    probabilities of acceptance stand in the first columns of its rows. Nothing is asked of the program, and nothing is
    slower for it.

    Parameters
    ----------
    bar : ChainBar
        The bar.
    csv : Path
        The file of draws, which need not be there yet.
    before : int
        Iterations of the chain that programs before this one have done.
    """

    def __init__(self, bar: ChainBar, csv: Path, before: int = 0) -> None:
        self._bar, self._csv, self._before = bar, csv, before
        self._place = 0
        self._columns: list[bytes] | None = None
        self._step_size: float | None = None
        self._divergences: int | None = None
        self._accepted, self._rows = 0.0, 0

    def __call__(self, printed: str) -> None:
        """Take in what was printed."""
        numbers = _ITERATION.findall(printed)
        if not numbers:
            return
        if self._bar.moving:
            self._look()
        self._bar.show(
            self._before + int(numbers[-1]),
            step_size=self._step_size,
            divergences=self._divergences,
            acceptance=self._accepted / self._rows if self._rows else None,
        )

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
        values = dict(zip(self._columns, line.split(b",", 7), strict=False))
        if _STEP in values:
            self._step_size = float(values[_STEP])
        if _ACCEPT in values:
            self._accepted, self._rows = self._accepted + float(values[_ACCEPT]), self._rows + 1
        if _DIVERGENT in values:
            self._divergences = (self._divergences or 0) + int(float(values[_DIVERGENT]))
