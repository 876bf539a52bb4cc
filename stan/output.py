"""Reading CmdStan's CSV files: one row a draw, method columns first, then the program's variables."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from stanio import parse_header

from onebasin.posteriors.stan_header import Header

from .home.errors import StanRunError
from .translation import last_words

_CHUNK = 1 << 16
"""Numbers that are parsed at once: a chain's text and its arrays do not fit into memory together."""

_METRICS = {
    "Diagonal elements of inverse mass matrix:": 1,
    "Elements of inverse mass matrix:": 2,
    "No free parameters for unit metric": 0,
}
"""The comments that announce a metric, and its number of axes; nothing follows for a unit metric."""


@dataclass(frozen=True)
class Output:
    """The contents of one CSV file."""

    method: dict[str, np.ndarray]  # Columns of the method, such as ``lp__``: name to array (draw,).
    variables: dict[str, np.ndarray]  # The program's variables: name to array (draw, ...).
    comments: tuple[str, ...]  # Comment lines without their ``#``.

    def seconds(self, phase: str) -> float:
        """Time of ``"Warm-up"`` or ``"Sampling"``, as CmdStan measured it; NaN where it wrote none."""
        return Header(self.comments).seconds(phase)


def read(path: Path, *, printed: str = "") -> Output:
    """Read a CSV file of draws.

    One that is absent, holds no header or cannot be read is refused, so that nothing half-written is taken for a
    result; `printed`, by the program, is for the message where it wrote no draws.
    """
    parts = list(read_blocks(path, printed=printed))
    method, variables = (
        {name: np.concatenate([getattr(part, kind)[name] for part in parts]) for name in names}
        for kind, names in (("method", parts[0].method), ("variables", parts[0].variables))
    )
    return Output(method, variables, parts[0].comments)


def read_blocks(path: Path, *, printed: str = "") -> Iterator[Output]:
    """Read a CSV file of draws as `read`, some megabytes at a time: one block at least, without a draw if need be.

    Yielded are the next draws, each with the comments of the whole file.
    """
    try:
        header = pd.read_csv(path, comment="#", nrows=0).columns
    except (FileNotFoundError, pd.errors.EmptyDataError) as error:
        said = f":\n{last_words(printed)}" if printed else "; the run was cut short."
        raise StanRunError(f"Stan wrote no draws to `{path.name}`{said}") from error
    try:
        with path.open() as file:
            comments = tuple(line[1:].strip() for line in file if line.startswith("#"))
        columns = parse_header(",".join(header))
        for table in _tables(path, len(header)):
            arrays = {name: column.extract_reshape(table) for name, column in columns.items()}
            method = {name: array for name, array in arrays.items() if name.endswith("__")}
            variables = {name: array for name, array in arrays.items() if name not in method}
            yield Output(method, variables, comments)
    except ValueError as error:  # pandas' own parser errors are some
        raise StanRunError(
            f"Stan wrote draws to `{path.name}` that cannot be read: a line is cut short or holds no numbers."
        ) from error


def keep_whole_rows(path: Path) -> int:
    """Cut a file that a program was writing when it was killed after the last whole row; return the draws that stay."""
    place, rows, width = 0, 0, None
    with path.open("rb") as file:
        for line in file:
            comment = line.startswith(b"#")
            if not line.endswith(b"\n") or b"\0" in line:  # zeros where the machine went down
                break
            if not comment:
                if width is not None and line.count(b",") != width:
                    break
                rows += width is not None
                width = line.count(b",")
            place += len(line)
    os.truncate(path, place)
    return rows


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


@dataclass(frozen=True)
class Adaptation:
    """Step size and metric of CmdStan's warmup, for another run without it."""

    step_size: float  # Of the draws.
    inverse_metric: np.ndarray
    """Diagonal or whole matrix; empty of a unit metric. CmdStan writes six figures of it."""

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
        # A diagonal is one line; a matrix has as many lines as its first has numbers.
        lines = axes if axes < 2 else comments[place + 1].count(",") + 1
        rows = [line.split(",") for line in comments[place + 1 : place + 1 + lines]]
        metric = np.array(rows, dtype=np.float64)
        return Adaptation(step_size, metric[0] if axes == 1 else metric)
    return None
