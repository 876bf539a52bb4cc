"""Reading CmdStan's CSV files: one row a draw, method columns first, then the program's variables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from stanio import Variable, parse_header

from .errors import StanRunError
from .words import last_words

_SECONDS = re.compile(r"([\d.e+-]+) seconds \((Warm-up|Sampling)\)")

Room = Callable[[str, tuple[int, ...], np.dtype], np.ndarray]

_CHUNK = 1 << 16
"""Numbers that are parsed at once: a chain's text and its arrays do not fit into memory beside each other."""


@dataclass(frozen=True)
class Output:
    """The contents of one CSV file.

    Attributes
    ----------
    method : dict
        Columns of the method, such as ``lp__``: name to array (draw,).
    variables : dict
        The program's variables: name to array (draw, ...).
    comments : tuple of str
        Comment lines without their ``#``.
    """

    method: dict[str, np.ndarray]
    variables: dict[str, np.ndarray]
    comments: tuple[str, ...]

    def seconds(self, phase: str) -> float:
        """Time of ``"Warm-up"`` or ``"Sampling"``, as CmdStan measured it; NaN where it wrote none."""
        for line in self.comments:
            if (found := _SECONDS.search(line)) and found.group(2) == phase:
                return float(found.group(1))
        return float("nan")


def _new_array(name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    return np.empty(shape, dtype)


def read(path: Path, room: Room = _new_array, *, printed: str = "") -> Output:
    """Read a CSV file of draws.

    Parameters
    ----------
    path : Path
        The file.
    room : callable, optional
        Gives the array for a variable's draws, from its name, shape and type.
    printed : str
        What the program printed, for the message where it wrote no draws.

    Returns
    -------
    Output
        Its contents.

    Raises
    ------
    StanRunError
        If the file is absent, holds no header or cannot be read, so that nothing half-written is taken for a result.
    """
    try:
        header = pd.read_csv(path, comment="#", nrows=0).columns
    except (FileNotFoundError, pd.errors.EmptyDataError) as error:
        said = f":\n{last_words(printed)}" if printed else "; the run was cut short."
        raise StanRunError(f"Stan wrote no draws to `{path.name}`{said}") from error
    try:
        comments, rows = _survey(path)
        columns = parse_header(",".join(header))
        arrays = _arrays(path, columns, (rows, len(header)), room)
    except ValueError as error:  # pandas' own parser errors are some
        raise StanRunError(
            f"Stan wrote draws to `{path.name}` that cannot be read: a line is cut short or holds no numbers."
        ) from error
    method = {name: arrays[name] for name in columns if name.endswith("__")}
    variables = {name: arrays[name] for name in columns if name not in method}
    return Output(method, variables, comments)


def _arrays(
    path: Path, columns: dict[str, Variable], size: tuple[int, int], room: Room
) -> dict[str, np.ndarray]:
    """The draws of every variable, read some megabytes at a time into their place."""
    arrays: dict[str, np.ndarray] = {}
    done, (rows, width) = 0, size
    for values in _tables(path, width):
        for name, column in columns.items():
            part = column.extract_reshape(values)
            if name not in arrays:
                make = _new_array if name.endswith("__") else room
                arrays[name] = make(name, (rows, *part.shape[1:]), part.dtype)
            arrays[name][done : done + len(part)] = part
        done += len(values)
    return arrays


def _survey(path: Path) -> tuple[tuple[str, ...], int]:
    """The comments, and how many rows follow the header."""
    comments, lines = [], 0
    with path.open() as file:
        for line in file:
            if line.startswith("#"):
                comments.append(line[1:].strip())
            else:
                lines += not line.isspace()
    return tuple(comments), lines - 1


def _tables(path: Path, width: int) -> Iterator[np.ndarray]:
    """The rows, some megabytes at a time; one table without a row where there are none."""
    found = False
    reader = pd.read_csv(path, comment="#", dtype=np.float64, chunksize=max(1, _CHUNK // width))
    with reader:
        for table in reader:
            found = True
            yield table.to_numpy()
    if not found:
        yield np.empty((0, width))
