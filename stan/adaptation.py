"""What CmdStan's warmup came to: step size and metric, read from a CSV file and given to another run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

_METRICS = {
    "Diagonal elements of inverse mass matrix:": 1,
    "Elements of inverse mass matrix:": 2,
    "No free parameters for unit metric": 0,
}
"""How the comments announce a metric, and its number of axes; of a unit metric nothing follows."""


@dataclass(frozen=True)
class Adaptation:
    """What a run without warmup needs of one with it.

    Attributes
    ----------
    step_size : float
        Of the draws.
    inverse_metric : array
        Diagonal or whole matrix; empty of a unit metric. CmdStan writes six figures of it.
    """

    step_size: float
    inverse_metric: np.ndarray

    def write(self, folder: Path) -> Path | None:
        """Write the metric for CmdStan; None where it is the unit."""
        from stanio import write_stan_json

        if not self.inverse_metric.size:
            return None
        path = folder / "metric.json"
        write_stan_json(str(path), {"inv_metric": self.inverse_metric})
        return path


def read_adaptation(comments: Sequence[str], step_size: float) -> Adaptation | None:
    """Find the metric in the comments of a CSV file; None where the warmup had not ended."""
    for place, line in enumerate(comments):
        axes = _METRICS.get(line)
        if axes is None:
            continue
        rows = [_numbers(row) for row in comments[place + 1 :][: _rows(comments, place, axes)]]
        metric = np.array(rows, dtype=np.float64)
        return Adaptation(step_size, metric[0] if axes == 1 else metric)
    return None


def _rows(comments: Sequence[str], place: int, axes: int) -> int:
    """Lines of a metric: one of a diagonal, of a matrix as many as its first line has numbers."""
    return axes if axes < 2 else len(_numbers(comments[place + 1]))


def _numbers(line: str) -> list[float]:
    return [float(number) for number in line.split(",")]
