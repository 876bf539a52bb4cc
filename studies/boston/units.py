"""Which units the paper's mean squared errors are in: what every reading of them would mean here.

The paper says neither how the target was scaled nor what a prediction without any inputs would score. Its text calls
the numbers of Table 1 mean squared errors. Read so, in units of a standardised target, its networks are worse than a
straight line. Read as their roots, they are what such networks score in many papers (2.5 to 3.5 thousand dollars).
"""

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from ..lab import Field, Frames, Row, View, at_most
from . import paper

READINGS: tuple[tuple[str, str, Callable[[Row], float | None]], ...] = (
    ("MSE, standardised", "the paper's word, target standardised", lambda row: row["mse"]),
    ("root of it", "a root mean square, in sds of the target", lambda row: _root(row["mse"])),
    ("MSE, ($1,000)²", "the data's own units", lambda row: row["mse_data_units"]),
    ("root of it", "in $1,000", lambda row: _root(row["mse_data_units"])),
)
"""Name and meaning of a reading, and the number that it is of a row."""


def readings(frames: Frames) -> Iterable[Row]:
    """Give means over splits in every reading: of straight lines, of our networks by NUTS, and the paper's."""
    lines, cells = frames["lines"], frames["cells"].where(method="nuts")
    (low, high), mean = _range(paper.MSE["free"]), float(np.mean(paper.MSE["free"]))
    for name, meaning, number in READINGS:
        ours = {p: _mean(cells.where(problem=p), number) for p in ("free", "givens")}
        line = _mean(lines, number)
        yield {"reading": name, "meaning": meaning, "line": line, **ours} | {
            "paper": f"{mean:.2f} ({low:.2f} to {high:.2f})",
            "over_line": None if line is None else mean / line,
        }


def _root(value: float | None) -> float | None:
    return None if value is None else math.sqrt(value)


def _mean(rows: Iterable[Row], number: Callable[[Row], float | None]) -> float | None:
    """Average over splits; in a split first over engines, which may have run unlike numbers of them."""
    splits: dict[int, list[float]] = {}
    for row in rows:
        if (value := number(row)) is not None:
            splits.setdefault(row["split"], []).append(value)
    return float(np.mean([np.mean(values) for values in splits.values()])) if splits else None


def _range(values: Sequence[float]) -> tuple[float, float]:
    return min(values), max(values)


UNITS = View(
    "The paper's free networks, its numbers read in several units, beside a straight line and our networks; means over "
    "splits. Above 1 in the last column: worse than a straight line",
    (
        Field("read as", "reading"),
        Field("which is", "meaning"),
        Field("straight line", "line"),
        Field("free", "free", unit="here, NUTS"),
        Field("givens", "givens", unit="here, NUTS"),
        Field("free", "paper", unit="the paper's number, range"),
        Field("over the line", "over_line", 2, unit="the paper's", flag=at_most(1, otherwise="warn")),
    ),
    over=readings,
)  # fmt: skip


def units(frames: Frames) -> str:
    """Say in a sentence what units the paper's numbers can be in; empty where nothing was measured."""
    lines = frames["lines"]
    cells = frames["cells"].where(method="nuts", problem="free")
    if not lines or not cells:
        return ""
    line, ours = (_mean(rows, lambda row: row["mse"]) or 0.0 for rows in (lines, cells))
    theirs = float(np.mean(paper.MSE["free"]))
    return (
        f"In units of a standardised target a straight line has a test MSE of {line:.2f} and our free network "
        f"{ours:.2f}; the paper's {theirs:.2f} is {'above' if theirs > line else 'below'} the line's. As the root of "
        f"an MSE it stands beside {math.sqrt(line):.2f} and {math.sqrt(ours):.2f}; the tables have both readings."
    )
