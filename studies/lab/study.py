"""Studies: a study has a design (cells and their settings), measures of the cells' posteriors, tables and figures.

A cell is one posterior: problem x method x engine, and a split or data set if there are several. A cell can be made
from the posteriors of earlier cells, its inputs. (A cell of a table is a `TableCell`.)

A frame of measures has one row per cell, or one row per cell and another factor. Its columns are factors (problem,
method, engine, split, seed, ...) and measures, with the dtype object. All values survive JSON unchanged; missing and
non-finite values are None. So a run and its record produce the same tables.

A number in a table is the mean of a measure over rows of a frame (data sets, splits, seeds), or the mean change between
two levels of a factor, pair by pair. It comes with Student's 95 % interval. The interval of a ratio is computed from
the logarithms. The interval of a share of rows (a measure that is true or false) is Wilson's.

Random splits of one data set share rows, so the plain interval is too narrow. `overlap` widens it by the correction of
Nadeau and Bengio 2003, Inference for the generalization error, Machine Learning 52, equation 7.
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
Frames = Mapping[str, pd.DataFrame]  # Frames by name; most studies have only `cells`.
Source = str | Callable[[Frames], Any]  # Source of rows: a frame's name or a function of frames.
Measure = str | Callable[[Row], Any]
"""A column, or a function of the row. Its value is a number, or a list of numbers to average (over seeds or fits)."""
Printed = float | str | None  # A number or a word (such as ``lower``) that the paper prints.


@dataclass(frozen=True)
class Cell:
    """One posterior of a study."""

    problem: str  # Label of the model or parametrisation.
    method: str  # A word of `inference.infer.WORDS`, or a method that the study's `make` defines.
    engine: str  # Label of the engine.
    settings: Any  # Settings of the method, frozen and JSON-serialisable.
    seed: int  # Seed of the sampler.
    split: int | None = None  # Number of the split, from 1; None without splits.
    inputs: tuple[str, ...] = ()  # Keys of the earlier cells whose posteriors this cell needs.
    data: str = ""  # Name of the data set; empty if there is only one.
    number: int = 1  # Number of the data set or run, from 1.
    case: Any = None  # Further factor that the study varies in its data or model; hashable.

    @classmethod
    def of(cls, key: str, settings: Any, seed: int, inputs: tuple[str, ...] = ()) -> Cell:
        """Make a cell from a key without a split, ``problem.method.engine``."""
        problem, method, engine = key.split(".")
        return cls(problem, method, engine, settings, seed, inputs=inputs)

    @property
    def key(self) -> str:
        """Name of the cell's file, without the suffix."""
        split = "" if self.split is None else f"split{self.split:02d}"
        return ".".join(filter(None, (self.data, split, self.problem, self.method, self.engine)))

    @property
    def label(self) -> str:
        """Label of the cell in tables and messages."""
        split = "" if self.split is None else f"split {self.split}"
        words = (self.data, split, self.problem, word(self.method), word(self.engine))
        return ", ".join(filter(None, words))

    @property
    def factors(self) -> dict[str, Any]:
        """First columns of this cell's rows: key, label, problem, method, engine, split, data."""
        names = ("key", "label", "problem", "method", "engine", "split", "data")
        return {n: value for n in names if (value := getattr(self, n)) not in (None, "")}


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Results of the cells."""

    paths: Mapping[Cell, Path]  # Posterior files of the cells that succeeded.
    failures: Mapping[Cell, str]  # Reasons why the other cells failed.

    def tree(self, cell: Cell) -> xr.DataTree:
        """Read the posterior of a cell that succeeded."""
        from onebasin.posteriors.open import open_posterior

        return open_posterior(self.paths[cell])

    def diagnosis(self, cell: Cell) -> Measured:
        """Measure the posterior of a cell that succeeded."""
        from onebasin.analysis.diagnostics.measure import measure

        return measure(self.tree(cell))

    def find(self, problem: str, method: str) -> xr.DataTree | None:
        """Read the posterior of a problem and method; return None if no such cell succeeded."""
        cells = (cell for cell in self.paths if (cell.problem, cell.method) == (problem, method))
        return next(map(self.tree, cells), None)

    def __iter__(self) -> Iterator[Cell]:
        return iter(self.paths)


@dataclass(frozen=True, eq=False)
class Context:
    """Arguments of `make` other than the cell."""

    target: Target | None  # The target that the study's `target` returned for the cell.
    checkpoint: Path  # Folder of the checkpoints, removed when the posterior is complete.
    progress: bool  # Whether to show progress bars.
    inputs: tuple[xr.DataTree, ...] = ()  # Posteriors of the cell's inputs, in order.


@dataclass(frozen=True)
class Study:
    """A paper's experiment."""

    configure: Callable[[Any], Any]
    """Function of the command's options (`studies.options.Options`) that returns the settings, a frozen dataclass."""
    cells: Callable[[Any], tuple[Cell, ...]]
    """Function of the settings that returns the cells in the order in which they run, inputs first."""
    target: Callable[[Any, Cell], Target | None]
    """Function of settings and cell that returns the model conditioned on data, or None if `make` needs no target."""
    measures: Callable[[Any, Outcomes], Frames]
    """Function of settings and outcomes that returns frames by name. The runner adds the frame `failures`."""
    tables: tuple[Summary, ...]
    """Tables of the results, with the paper's numbers where it prints them."""
    figures: Callable[[Any, Outcomes, Frames], Mapping[str, Figure]] = lambda *run: {}
    """Function of settings, outcomes and frames that returns the paper's figures, by file name."""
    make: Callable[[Any, Cell, Context], xr.DataTree] | None = None
    """Function of settings, cell and `Context` that returns the cell's posterior. The default samples the target with
    the cell's method; inside a `make`, `run.sample` does the same. The result may depend only on the cell's target,
    engine, method, settings, seed and inputs, because these identify a finished cell."""


def frame_of(rows: Iterable[Row]) -> pd.DataFrame:
    """Make a frame from rows, whose columns may differ; convert NumPy numbers and arrays to plain numbers and lists."""
    text = json.dumps([dict(row) for row in rows], default=lambda value: value.tolist())
    frame = pd.DataFrame(json_safe(json.loads(text)), dtype=object)
    return frame.where(frame.notna(), None)


def rows_of(source: Source, frames: Frames) -> list[dict[str, Any]]:
    """Return rows from the frames; a missing frame has no rows."""
    taken = frames.get(source, frame_of(())) if isinstance(source, str) else source(frames)
    return (taken if isinstance(taken, pd.DataFrame) else frame_of(taken)).to_dict("records")


def select(name: str, *known: str, **wanted: Any) -> Callable[[Frames], pd.DataFrame]:
    """Make a function that selects rows of a frame: with any value in the `known` columns, and the `wanted` values."""

    def taken(frames: Frames) -> pd.DataFrame:
        frame = frames.get(name, frame_of(()))
        for column in known:
            frame = frame[frame[column].notna()] if column in frame else frame[:0]
        return where(frame, **wanted) if len(frame) else frame

    return taken


def where(frame: pd.DataFrame, **wanted: Any) -> pd.DataFrame:
    """Select the rows with these values; a tuple of values allows each of them."""
    for name, value in wanted.items():
        frame = frame[frame[name].isin(value if isinstance(value, tuple) else (value,))]
    return frame


def find(frame: pd.DataFrame, **wanted: Any) -> Any:
    """Return the first row with these values as a mapping, or None."""
    found = where(frame, **wanted) if len(frame) else frame
    return None if found.empty else dict(found.iloc[0])


@dataclass(frozen=True)
class Change:
    """Comparison of two levels of a factor, pair by pair: the second with the first."""

    factor: str
    levels: tuple[tuple[Any, Any], ...]
    pair: str = ""
    """Column whose value both rows of a pair share; empty if the entries of lists are paired."""
    scale: Literal["difference", "ratio"] = "difference"


@dataclass(frozen=True)
class Summary:
    """A table of a study."""

    caption: str
    measures: Mapping[str, Measure]  # Measures by their name in the table.
    by: tuple[str, ...] = ("label",)  # Columns to group by; each group has one number per measure.
    over: Source = "cells"  # Source of the rows.
    printed: Callable[[Row], Mapping[str, Printed]] = lambda row: {}
    """Function of a group's first row that returns the paper's numbers, by the name of the measure."""
    change: Change | None = None
    trusted: Callable[[Frames, Row], bool] = lambda frames, row: True
    """Condition for rows. Other rows, such as those of chains that disagree, are left out and counted."""
    overlap: float = 0.0  # Ratio of test size to training size of random splits.

    def rows(self, frames: Frames) -> list[dict[str, Any]]:
        """Return the table's rows as plain values; missing and untrusted values are left out and counted."""
        found = []
        for name, first, pairs in self._groups(frames):
            trust = [all(self.trusted(frames, row) for row in pair) for pair in pairs]
            for heading, measure in self.measures.items():
                every = [
                    (trusted, values)
                    for trusted, pair in zip(trust, pairs, strict=True)
                    for values in zip_longest(*(_values(measure, row) for row in pair))
                ]
                if any(v is not None for _, values in every for v in values):
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
        """Yield the name of each group, its first row, and its rows, either single or as the pairs of a change."""
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
        """Average a measure, or its change, over the trusted pairs with finite numbers."""
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
    """Return the mean and the ends of its interval: None without numbers, and no ends for a single number."""
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
    """Make the tables that have rows; the table of failed cells comes last."""
    failed = tuple((row["label"], row["reason"]) for row in rows_of("failures", frames))
    words = Table(("cell", "why it failed"), failed, "Cells without a posterior")
    every = (*(summary(frames) for summary in summaries), words)
    return tuple(table for table in every if table.rows)


def _values(measure: Measure, row: Row) -> list[float | None]:
    """Return the measure of a row as a list; if the function lacks a number that it needs, return [None]."""
    try:
        value = row.get(measure) if isinstance(measure, str) else measure(row)
    except TypeError:
        if all(entry is not None for entry in row.values()):
            raise
        value = None
    return list(value) if isinstance(value, list | tuple | np.ndarray) else [value]


def word(value: Any) -> str:
    """Return the display name of a method or an engine; return other values unchanged."""
    return str({**METHOD_WORDS, **ENGINE_WORDS}.get(value, value))


def _named(column: str, value: Any) -> str:
    """Format the value of a column; put the column's name before a number."""
    if isinstance(value, str):
        return word(value)
    number = f"{value:g}" if isinstance(value, float) else str(value)
    return f"{column.replace('_', ' ')} {number}"
