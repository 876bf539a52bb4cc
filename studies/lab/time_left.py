"""Estimate the time that a study still takes, from the time that its cells took so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean

from onebasin.base.time_left import in_words

from .cells import Cell
from .making import MadeCell

LEAST_SECONDS = 60.0
"""Shortest remaining time that is shown."""


@dataclass
class StudyTimeLeft:
    """Foretells when the last cell will have ended.

    A cell that is still to be made takes as long as others of its problem, method and engine took, or else as all did;
    how many are made at once is known by how much of their time has passed.
    """

    cells: Sequence[Cell]  # All of the study.
    started: float  # When the first began, in seconds on any clock.
    _prices: dict[tuple[str, str, str], list[float]] = field(default_factory=dict)
    _ended: set[str] = field(default_factory=set)
    _made: float = 0.0

    def end(self, made: MadeCell) -> None:
        """Take in what became of a cell; what an earlier run has made tells its price too."""
        self._ended.add(made.cell.key)
        if made.failure is None and made.seconds > 0:
            self._prices.setdefault(_kind(made.cell), []).append(made.seconds)
        if not made.found:
            self._made += made.seconds

    def left(self, at: float) -> float | None:
        """Seconds until all cells have ended; None while nothing is known of any."""
        known = [price for prices in self._prices.values() for price in prices]
        if not known:
            return None
        waiting = [cell for cell in self.cells if cell.key not in self._ended]
        work = sum(fmean(self._prices.get(_kind(cell), known)) for cell in waiting)
        return work * ((at - self.started) / self._made if self._made else 1.0)

    def words(self, at: float) -> str:
        """Such as ``, about 25 min left``; empty where it is too little to be said, or nothing is known."""
        seconds = self.left(at)
        if seconds is None or seconds < LEAST_SECONDS:
            return ""
        return f", about {in_words(seconds)} left"


def _kind(cell: Cell) -> tuple[str, str, str]:
    return cell.problem, cell.method, cell.engine
