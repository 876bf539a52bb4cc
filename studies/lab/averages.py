"""Averages: a row is what several rows of a frame have in common, its numbers are means or extremes over them."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from .frame import Frames, Row, Rows, read


def averages(
    rows: Rows, factors: Sequence[str], mean: Sequence[str] = (), largest: Sequence[str] = ()
) -> Callable[[Frames], Iterable[Row]]:
    """Give a row for each combination of the columns `factors`.

    It has these, `datasets` (how many rows are behind it), means under the columns' names, and the largest values as
    `max_...`; None of a column that no row knows.
    """

    def over(frames: Frames) -> Iterable[Row]:
        found = read(rows, frames)
        for alike in dict.fromkeys(tuple(row[name] for name in factors) for row in found):
            common = dict(zip(factors, alike, strict=True))
            group = found.where(**common)
            row = common | {"datasets": len(group)}
            row |= {name: _mean(group.column(name)) for name in mean}
            yield row | {f"max_{name}": max(group.column(name), default=None) for name in largest}

    return over


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None
