"""Frames: what a study has measured, a row a cell, or a row a cell and something else, as pandas has them.

The columns are factors (problem, method, engine, split, seed, ...) and measures. Columns are of the type object: values
are those that JSON keeps unchanged, and None for all that is missing or not finite. So a table is the same from the run
as from the record.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

Row = Mapping[str, Any]
Frames = Mapping[str, pd.DataFrame]
"""A study's frames by name; most studies have one, `cells`."""
Source = str | Callable[[Frames], Any]
"""The source of rows: the name of a frame, or a function of all frames to a frame or to rows."""


def frame_of(rows: Iterable[Row]) -> pd.DataFrame:
    """Gather rows, whose columns may differ; NumPy's numbers and arrays become plain numbers and lists."""
    rows = tuple(rows)
    columns = list(dict.fromkeys(column for row in rows for column in row))
    values = [[plain(row.get(name)) for name in columns] for row in rows]
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


def plain(value: Any) -> Any:
    """Turn a value into what JSON keeps unchanged."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
