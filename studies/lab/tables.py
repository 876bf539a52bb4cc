"""The tables of a study: what the paper prints, what was found here, and the interval of that.

A number of a table is the mean of a measure over rows of a frame (data sets, splits, seeds), or of its change between
two levels of a factor, pair by pair. The interval is Student's, at 95 %; that of a ratio is of the mean logarithm,
and that of a share of rows (a measure that is true or false) is Wilson's.

Random splits of one data set share rows, so that the plain interval is too narrow: `overlap` widens it by the
correction of Nadeau and Bengio 2003, Inference for the generalization error, Machine Learning 52, equation 7.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal

import numpy as np

from onebasin.base.table import Column, Table

from .cells import ENGINE_WORDS, METHOD_WORDS
from .frames import Frames, Row, Source, rows_of

CONFIDENCE = 0.95
Measure = str | Callable[[Row], Any]
"""A column, or a function of the row: a number, or a list of numbers (of seeds, of fits) to average over."""
Printed = float | str | None
"""A number that the paper prints, or what it says instead: ``lower``."""


@dataclass(frozen=True)
class Change:
    """Two levels of a factor that are compared pair by pair, the second with the first."""

    factor: str
    levels: tuple[tuple[Any, Any], ...]
    pair: str = ""
    """The column that pairs have in common; empty where a measure is a list, whose entries are paired."""
    scale: Literal["difference", "ratio"] = "difference"


@dataclass(frozen=True)
class Summary:
    """A table of a study."""

    caption: str
    measures: Mapping[str, Measure]  # By their name in the table.
    by: tuple[str, ...] = ("label",)  # There is a number for every combination of these columns.
    over: Source = "cells"  # The rows: the name of a frame, or a function of all frames.
    printed: Callable[[Row], Mapping[str, Printed]] = lambda row: {}
    """From the first row behind a number to what the paper prints, by the name of the measure."""
    change: Change | None = None
    trusted: Callable[[Frames, Row], bool] = lambda frames, row: True
    """Rows that are not trusted (chains that disagree) are left out, and counted."""
    overlap: float = 0.0
    """The test part over the training part of random splits."""

    def rows(self, frames: Frames) -> list[dict[str, Any]]:
        """Give the table's rows as plain values: what is missing or not trusted is left out and counted."""
        return [
            {"of": name, "measure": heading, "printed": self.printed(first).get(heading), **found}
            for name, first, sides in self._groups(frames)
            for heading, measure in self.measures.items()
            if (found := self._found(frames, measure, sides)) is not None
        ]

    def __call__(self, frames: Frames) -> Table:
        """Make the table."""
        columns = ("of", "measure", "printed", "here", "95 % interval", "numbers", "left out")
        rows = tuple(
            (*(r[n] for n in columns[:4]), _write(r["low"], r["high"]), r["numbers"], r["left out"])
            for r in self.rows(frames)
        )
        headings = tuple(Column(name, digits=4) for name in columns)
        return Table(headings, rows, self.caption).without_empty_columns()

    def _groups(self, frames: Frames) -> Iterator[tuple[str, Row, list[list[Row]]]]:
        """Give the name of each group, its first row, and the rows behind it: one each, or two that are paired."""
        every, change = rows_of(self.over, frames), self.change
        if change is None:
            for group in _grouped(every, self.by):
                yield self._name(group[0]), group[0], [[row] for row in group]
            return
        for levels in change.levels:
            some = [row for row in every if row[change.factor] in levels]
            for group in _grouped(some, self.by):
                first, second = (
                    {row.get(change.pair): row for row in group if row[change.factor] == level}
                    for level in levels
                )
                pairs = [[first[key], second[key]] for key in first if key in second]
                if pairs:
                    compared = " to ".join(map(_word, levels))
                    yield f"{compared}, {self._name(pairs[0][1])}".strip(", "), pairs[0][1], pairs

    def _name(self, row: Row) -> str:
        return ", ".join(_named(name, row[name]) for name in self.by if row[name] is not None)

    def _found(
        self, frames: Frames, measure: Measure, groups: Sequence[Sequence[Row]]
    ) -> dict[str, Any] | None:
        """Average a measure, or its change; None where no row has it."""
        numbers: list[float] = []
        left_out, seen = 0, False
        ratio = self.change is not None and self.change.scale == "ratio"
        for group in groups:
            sides = [_values(measure, row) for row in group]
            seen |= any(value is not None for side in sides for value in side)
            trusted = all(self.trusted(frames, row) for row in group)
            for values in zip_longest(*sides):  # a list may be missing
                known = [v for v in values if v is not None and math.isfinite(v)]
                if trusted and len(known) == len(values) and (not ratio or min(known) > 0):
                    numbers.append(_compare(known, ratio=ratio))
                else:
                    left_out += 1
        if not seen:
            return None
        here, low, high = mean_with_interval(numbers, self.overlap)
        if ratio:
            here, low, high = (None if v is None else math.exp(v) for v in (here, low, high))
        ends = {"here": here, "low": low, "high": high}
        return {**ends, "numbers": len(numbers), "left out": left_out}


def _grouped(rows: Sequence[Row], by: Sequence[str]) -> list[list[Row]]:
    """Divide the rows into those that have the same values in these columns, in order of appearance."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in by), []).append(row)
    return list(groups.values())


def mean_with_interval(
    values: Sequence[float], overlap: float = 0.0
) -> tuple[float | None, float | None, float | None]:
    """Average numbers, with the ends of their interval; None of none, and no ends of a single number."""
    from scipy.stats import binomtest, sem, t

    if not len(values):
        return None, None, None
    mean, num = float(np.mean(values)), len(values)
    if all(isinstance(value, bool) for value in values):
        ends = binomtest(sum(values), num).proportion_ci(CONFIDENCE, method="wilson")
        return mean, float(ends.low), float(ends.high)
    if num == 1:
        return mean, None, None
    error = float(sem(values)) * math.sqrt(1 + num * overlap)
    half = float(t.ppf((1 + CONFIDENCE) / 2, num - 1)) * error
    return mean, mean - half, mean + half


def tables_of(summaries: Sequence[Summary], frames: Frames) -> tuple[Table, ...]:
    """Make the tables that have rows, the cells that failed last."""
    failed = tuple((row["label"], row["reason"]) for row in rows_of("failures", frames))
    words = Table(("cell", "why it failed"), failed, "Cells without a posterior")
    every = (*(summary(frames) for summary in summaries), words)
    return tuple(table for table in every if table.rows)


def _values(measure: Measure, row: Row) -> list[float | None]:
    value = row.get(measure) if isinstance(measure, str) else _ask(measure, row)
    return list(value) if isinstance(value, list | tuple | np.ndarray) else [value]


def _ask(measure: Callable[[Row], Any], row: Row) -> Any:
    """Ask a function of a row; a number that it needs may be missing."""
    try:
        return measure(row)
    except TypeError:
        if any(value is None for value in row.values()):
            return None
        raise


def _compare(values: Sequence[float], *, ratio: bool) -> float:
    if len(values) == 1:
        return values[0]
    first, second = values
    return math.log(second / first) if ratio else float(second - first)


def _write(low: float | None, high: float | None) -> str | None:
    return None if low is None or high is None else f"{low:.4g} to {high:.4g}"


def _word(value: Any) -> str:
    return str({**METHOD_WORDS, **ENGINE_WORDS}.get(value, value))


def _named(column: str, value: Any) -> str:
    """Write the value of a column; a number after the column's name."""
    if isinstance(value, str):
        return _word(value)
    number = f"{value:g}" if isinstance(value, float) else str(value)
    return f"{column.replace('_', ' ')} {number}"
