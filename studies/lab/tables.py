"""Frames of measures, as pandas has them, and tables: what the paper prints, what was found, its interval.

A frame has a row a cell, or a row a cell and something else. Its columns are factors (problem, method, engine, split,
seed, ...) and measures, of the type object: values are those that JSON keeps unchanged, and None for all that is
missing or not finite. So a table is the same from the run as from the record.

A number of a table is the mean of a measure over rows of a frame (data sets, splits, seeds), or of its change between
two levels of a factor, pair by pair. The interval is Student's, at 95 %; that of a ratio is of the mean logarithm,
and that of a share of rows (a measure that is true or false) is Wilson's.

Random splits of one data set share rows, so that the plain interval is too narrow: `overlap` widens it by the
correction of Nadeau and Bengio 2003, Inference for the generalization error, Machine Learning 52, equation 7.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal

import numpy as np
import pandas as pd

from onebasin.base.jsonable import json_safe
from onebasin.base.table import Column, Table

METHOD_WORDS = {
    "nuts": "NUTS",
    "mclmc": "MCLMC",
    "meanfield": "mean-field ADVI",
    "fullrank": "full-rank ADVI",
}
ENGINE_WORDS = {"numpyro": "NumPyro", "stan": "Stan"}
CONFIDENCE = 0.95
Row = Mapping[str, Any]
Frames = Mapping[str, pd.DataFrame]
"""A study's frames by name; most studies have one, `cells`."""
Source = str | Callable[[Frames], Any]
"""The source of rows: the name of a frame, or a function of all frames to a frame or to rows."""
Measure = str | Callable[[Row], Any]
"""A column, or a function of the row: a number, or a list of numbers (of seeds, of fits) to average over."""
Printed = float | str | None
"""A number that the paper prints, or what it says instead: ``lower``."""


def frame_of(rows: Iterable[Row]) -> pd.DataFrame:
    """Gather rows, whose columns may differ; NumPy's numbers and arrays become plain numbers and lists."""
    text = json.dumps([dict(row) for row in rows], default=lambda value: value.tolist())
    plain = json_safe(json.loads(text))
    columns = list(dict.fromkeys(column for row in plain for column in row))
    values = [[row.get(name) for name in columns] for row in plain]
    return pd.DataFrame(values, columns=pd.Index(columns, dtype=object), dtype=object)


def rows_of(source: Source, frames: Frames) -> list[dict[str, Any]]:
    """Take rows from the frames; of a frame that is not there, none."""
    taken = frames.get(source, frame_of(())) if isinstance(source, str) else source(frames)
    return (taken if isinstance(taken, pd.DataFrame) else frame_of(taken)).to_dict("records")


def select(name: str, *known: str, **wanted: Any) -> Callable[[Frames], pd.DataFrame]:
    """Select the rows of one frame that have a value in some columns, and these values in others."""

    def taken(frames: Frames) -> pd.DataFrame:
        frame = frames.get(name, frame_of(()))
        for column in known:
            frame = frame[frame[column].notna()] if column in frame else frame[:0]
        return where(frame, **wanted) if len(frame) else frame

    return taken


def where(frame: pd.DataFrame, **wanted: Any) -> pd.DataFrame:
    """Keep the rows with these values; a tuple of values allows each of them."""
    for name, value in wanted.items():
        frame = frame[frame[name].isin(value if isinstance(value, tuple) else (value,))]
    return frame


def find(frame: pd.DataFrame, **wanted: Any) -> Any:
    """Return the first row with these values, a mapping; None where there is none."""
    found = where(frame, **wanted) if len(frame) else frame
    return None if found.empty else dict(found.iloc[0])


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
        every = []
        for name, first, sides in self._groups(frames):
            trust = [all(self.trusted(frames, row) for row in rows) for rows in sides]
            printed = self.printed(first)
            for heading, measure in self.measures.items():
                if (found := self._found(measure, sides, trust)) is not None:
                    what = {"of": name, "measure": heading, "printed": printed.get(heading)}
                    every.append(what | found)
        return every

    def __call__(self, frames: Frames) -> Table:
        """Make the table."""
        columns = ("of", "measure", "printed", "here", "95 % interval", "numbers", "left out")
        rows = []
        for row in self.rows(frames):
            low, high = row["low"], row["high"]
            interval = None if low is None or high is None else f"{low:.4g} to {high:.4g}"
            rows.append(tuple((row | {"95 % interval": interval})[name] for name in columns))
        headings = tuple(Column(name, digits=4) for name in columns)
        return Table(headings, tuple(rows), self.caption).without_empty_columns()

    def _groups(self, frames: Frames) -> Iterator[tuple[str, Row, list[list[Row]]]]:
        """Give the name of each group, its first row, and the rows behind it: one each, or two that are paired."""
        every, change = rows_of(self.over, frames), self.change
        for levels in change.levels if change else [()]:
            groups: dict[tuple[Any, ...], list[Row]] = {}
            for row in every:
                if change is None or row[change.factor] in levels:
                    groups.setdefault(tuple(row[name] for name in self.by), []).append(row)
            for group in groups.values():
                sides: list[list[Row]] = [[row] for row in group]
                if change is not None:
                    first, second = (
                        {row.get(change.pair): row for row in group if row[change.factor] == level}
                        for level in levels
                    )
                    sides = [[first[key], second[key]] for key in first if key in second]
                if sides:
                    last = sides[0][-1]
                    parts = [" to ".join(map(_word, levels))]
                    parts += [_named(n, last[n]) for n in self.by if last[n] is not None]
                    yield ", ".join(filter(None, parts)), last, sides

    def _found(
        self, measure: Measure, groups: Sequence[Sequence[Row]], trust: Sequence[bool]
    ) -> dict[str, Any] | None:
        """Average a measure, or its change; None where no row has it."""
        numbers: list[float] = []
        left_out, seen = 0, False
        ratio = self.change is not None and self.change.scale == "ratio"
        for group, trusted in zip(groups, trust, strict=True):
            for values in zip_longest(*(_values(measure, row) for row in group)):
                known = [v for v in values if v is not None and math.isfinite(v)]
                seen |= any(v is not None for v in values)  # a list may be missing
                if trusted and len(known) == len(values) and (not ratio or min(known) > 0):
                    first, last = known[0], known[-1]
                    change = math.log(last / first) if ratio else float(last - first)
                    numbers.append(first if self.change is None else change)
                else:
                    left_out += 1
        if not seen:
            return None
        here, low, high = mean_with_interval(numbers, self.overlap)
        if ratio:
            here, low, high = (None if v is None else math.exp(v) for v in (here, low, high))
        ends = {"here": here, "low": low, "high": high}
        return {**ends, "numbers": len(numbers), "left out": left_out}


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
    """Take the measure of a row, as a list; a number that a function needs may be missing."""
    try:
        value = row.get(measure) if isinstance(measure, str) else measure(row)
    except TypeError:
        if all(entry is not None for entry in row.values()):
            raise
        value = None
    return list(value) if isinstance(value, list | tuple | np.ndarray) else [value]


def _word(value: Any) -> str:
    return str({**METHOD_WORDS, **ENGINE_WORDS}.get(value, value))


def _named(column: str, value: Any) -> str:
    """Write the value of a column; a number after the column's name."""
    if isinstance(value, str):
        return _word(value)
    number = f"{value:g}" if isinstance(value, float) else str(value)
    return f"{column.replace('_', ' ')} {number}"
