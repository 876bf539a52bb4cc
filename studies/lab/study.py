"""Studies: a study has a design (cells and their settings), measures of the cells' posteriors, tables and figures.

A cell is one posterior, problem x method x engine, and split or data set where there are several. It may be made from
the posteriors of cells before it, its inputs. (A cell of a table is a `TableCell`.)

A frame of measures has one row per cell, or one row per cell and something else. Its columns are factors (problem,
method, engine, split, seed, ...) and measures, of the type object: values are those that JSON keeps unchanged, and
None for all that is missing or not finite. So a table is the same from the run as from the record.

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
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from onebasin.base.table import Column, Table
from onebasin.base.text import json_safe

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

    from onebasin.analysis.diagnostics.measure import Measured
    from onebasin.models.target import Target


METHOD_WORDS = {"nuts": "NUTS", "mclmc": "MCLMC"}
METHOD_WORDS |= {"meanfield": "mean-field ADVI", "fullrank": "full-rank ADVI"}
ENGINE_WORDS = {"numpyro": "NumPyro", "stan": "Stan"}
CONFIDENCE = 0.95
Row = Mapping[str, Any]
Frames = Mapping[str, pd.DataFrame]  # By name; most studies have one, `cells`.
Source = str | Callable[[Frames], Any]  # Of rows: a frame's name, or a function of all frames.
Measure = str | Callable[[Row], Any]
"""A column, or a function of the row: a number, or a list of numbers (of seeds, of fits) to average over."""
Printed = float | str | None  # A number that the paper prints, or what it says instead: ``lower``.


@dataclass(frozen=True)
class Cell:
    """One posterior of a study."""

    problem: str  # Label of what is inferred: a parametrisation, a model.
    method: str  # Method: one of `inference.methods.WORDS`, or whatever the study's `make` knows.
    engine: str  # Engine.
    settings: Any  # Settings of the method, frozen; JSON can say them.
    seed: int  # Seed of the sampler.
    split: int | None = None  # Number of the split, from 1; None if there is one set of data.
    inputs: tuple[str, ...] = ()  # Keys of earlier cells whose posteriors this one is made from.
    data: str = ""  # Name of the data set, where there are several; empty if there is one.
    number: int = 1  # Of the data set or the run, from 1.
    case: Any = None  # What a study varies in its data or model besides; hashable.

    @classmethod
    def of(cls, key: str, settings: Any, seed: int, inputs: tuple[str, ...] = ()) -> Cell:
        """Make the cell of a key without a split, ``problem.method.engine``."""
        problem, method, engine = key.split(".")
        return cls(problem, method, engine, settings, seed, inputs=inputs)

    @property
    def key(self) -> str:
        """Name of its file, without ending."""
        split = "" if self.split is None else f"split{self.split:02d}"
        return ".".join(filter(None, (self.data, split, self.problem, self.method, self.engine)))

    @property
    def label(self) -> str:
        """Name for a reader."""
        split = "" if self.split is None else f"split {self.split}"
        words = (self.data, split, self.problem, word(self.method), word(self.engine))
        return ", ".join(filter(None, words))

    @property
    def factors(self) -> dict[str, Any]:
        """The columns that a row of this cell begins with: key, label, problem, method, engine, split, data."""
        names = ("key", "label", "problem", "method", "engine", "split", "data")
        return {n: value for n in names if (value := getattr(self, n)) not in (None, "")}


@dataclass(frozen=True, eq=False)
class Outcomes:
    """The results of the cells."""

    paths: Mapping[Cell, Path]  # Posterior files of the cells that succeeded.
    failures: Mapping[Cell, str]  # Lines that say why the others did not.

    def tree(self, cell: Cell) -> xr.DataTree:
        """Read the posterior of a cell that succeeded."""
        from onebasin.inference.runs.posterior import open_posterior

        return open_posterior(self.paths[cell])

    def diagnosis(self, cell: Cell) -> Measured:
        """Measure the posterior of a cell that succeeded."""
        from onebasin.analysis.diagnostics.measure import measure

        return measure(self.tree(cell))

    def find(self, problem: str, method: str) -> xr.DataTree | None:
        """Read the posterior of a problem by a method; None if there is none."""
        cells = (cell for cell in self.paths if (cell.problem, cell.method) == (problem, method))
        return next(map(self.tree, cells), None)

    def __iter__(self) -> Iterator[Cell]:
        return iter(self.paths)


@dataclass(frozen=True, eq=False)
class Context:
    """The arguments of `make` other than the cell."""

    target: Target | None  # What the study's `target` gave for the cell.
    checkpoint: (
        Path  # A folder where chains go as they are drawn; removed once the posterior is there.
    )
    progress: bool  # Whether to show bars.
    inputs: tuple[xr.DataTree, ...] = ()  # Posteriors of the cells that it is made from, in order.


@dataclass(frozen=True)
class Study:
    """A paper's experiment."""

    configure: Callable[[Any], Any]
    """From the options of the command (`studies.options.Options`) to the study's own settings, a frozen dataclass."""
    cells: Callable[[Any], tuple[Cell, ...]]
    """From those settings to the cells, in the order in which they should run; inputs come first."""
    target: Callable[[Any, Cell], Target | None]
    """From settings and cell to the model conditioned on data; None for a cell that `make` makes without one."""
    measures: Callable[[Any, Outcomes], Frames]
    """From settings and outcomes to frames by name; `failures` is added to them."""
    tables: tuple[Summary, ...]
    """The tables that are shown: what was found next to what the paper prints, where it does."""
    figures: Callable[[Any, Outcomes, Frames], Mapping[str, Figure]] = lambda *run: {}
    """From settings, outcomes and frames to the paper's figures, by the names of their files."""
    make: Callable[[Any, Cell, Context], xr.DataTree] | None = None
    """From settings, cell and a `Context` to the cell's posterior. Without it the target is sampled by the cell's
    method; `run.sample` does the same inside a `make`. What it makes may depend on the cell's target, engine, method,
    settings, seed and inputs alone: these are what a finished cell is recognised by."""


def frame_of(rows: Iterable[Row]) -> pd.DataFrame:
    """Gather rows, whose columns may differ; NumPy's numbers and arrays become plain numbers and lists."""
    text = json.dumps([dict(row) for row in rows], default=lambda value: value.tolist())
    frame = pd.DataFrame(json_safe(json.loads(text)), dtype=object)
    return frame.where(frame.notna(), None)


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
    """Return the first row with these values, a mapping; None if there is none."""
    found = where(frame, **wanted) if len(frame) else frame
    return None if found.empty else dict(found.iloc[0])


@dataclass(frozen=True)
class Change:
    """Two levels of a factor that are compared pair by pair, the second with the first."""

    factor: str
    levels: tuple[tuple[Any, Any], ...]
    pair: str = ""
    """The column that pairs have in common; empty if a measure is a list, whose entries are paired."""
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
    overlap: float = 0.0  # The test part over the training part of random splits.

    def rows(self, frames: Frames) -> list[dict[str, Any]]:
        """Give the table's rows as plain values: what is missing or not trusted is left out and counted."""
        found = []
        for name, first, pairs in self._groups(frames):
            trust = [all(self.trusted(frames, row) for row in pair) for pair in pairs]
            for heading, measure in self.measures.items():
                every = [
                    (trusted, values)
                    for trusted, pair in zip(trust, pairs, strict=True)
                    for values in zip_longest(*(_values(measure, row) for row in pair))
                ]
                if any(
                    v is not None for _, values in every for v in values
                ):  # somebody measured it
                    printed = self.printed(first).get(heading)
                    names = {"of": name, "measure": heading, "printed": printed}
                    found.append(names | self._average(every))
        return found

    def __call__(self, frames: Frames) -> Table:
        """Make the table."""
        columns = ("of", "measure", "printed", "here", "95 % interval", "numbers", "left out")
        rows = []
        for row in self.rows(frames):
            if row["low"] is not None:
                row["95 % interval"] = f"{row['low']:.4g} to {row['high']:.4g}"
            rows.append(tuple(map(row.get, columns)))
        headings = tuple(Column(name, digits=4) for name in columns)
        return Table(headings, tuple(rows), self.caption).without_empty_columns()

    def _groups(self, frames: Frames) -> Iterator[tuple[str, Row, list[tuple[Row, ...]]]]:
        """Return the name of each group, its first row, and its rows: one by one, or in the pairs of a change."""
        every, change = rows_of(self.over, frames), self.change
        for levels in change.levels if change else [()]:
            groups: dict[tuple[Any, ...], list[Row]] = {}
            for row in every:
                if change is None or row[change.factor] in levels:
                    groups.setdefault(tuple(row[name] for name in self.by), []).append(row)
            for group in groups.values():
                pairs: list[tuple[Row, ...]] = [(row,) for row in group]
                if change is not None:
                    first, second = (
                        {row.get(change.pair): row for row in group if row[change.factor] == level}
                        for level in levels
                    )
                    pairs = [(first[key], second[key]) for key in first if key in second]
                if pairs:
                    last = pairs[0][-1]
                    names = [_named(n, last[n]) for n in self.by if last[n] is not None]
                    yield (
                        ", ".join(filter(None, (" to ".join(map(word, levels)), *names))),
                        last,
                        pairs,
                    )

    def _average(self, every: Sequence[tuple[bool, Sequence[float | None]]]) -> dict[str, Any]:
        """Average a measure, or its change, over the pairs that are trusted and have its finite numbers."""
        ratio = self.change is not None and self.change.scale == "ratio"
        numbers: list[float] = []
        for trusted, values in every:
            known = [
                v for v in values if v is not None and math.isfinite(v) and (v > 0 or not ratio)
            ]
            if trusted and len(known) == len(values):
                first, last = known[0], known[-1]
                change = math.log(last / first) if ratio else float(last - first)
                numbers.append(first if self.change is None else change)
        ends = mean_with_interval(numbers, self.overlap)
        if ratio:
            ends = tuple(None if v is None else math.exp(v) for v in ends)
        counts = {"numbers": len(numbers), "left out": len(every) - len(numbers)}
        return {**dict(zip(("here", "low", "high"), ends, strict=True)), **counts}


def mean_with_interval(values: Sequence[float], overlap: float = 0.0) -> tuple[float | None, ...]:
    """Average numbers, with the ends of their interval; None of none, and no ends of a single number."""
    from scipy.stats import binomtest, sem, t

    if not len(values):
        return None, None, None
    mean, num = float(np.mean(values)), len(values)
    if all(isinstance(value, bool) for value in values):
        return mean, *binomtest(sum(values), num).proportion_ci(CONFIDENCE, method="wilson")
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


def word(value: Any) -> str:
    """Name a method or an engine for a reader; other values as they are."""
    return str({**METHOD_WORDS, **ENGINE_WORDS}.get(value, value))


def _named(column: str, value: Any) -> str:
    """Write the value of a column; a number after the column's name."""
    if isinstance(value, str):
        return word(value)
    number = f"{value:g}" if isinstance(value, float) else str(value)
    return f"{column.replace('_', ' ')} {number}"
