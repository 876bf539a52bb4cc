"""Reading CmdStan's CSV files: one row a draw, method columns first, then the program's variables."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from stanio import parse_header

from .errors import StanRunError

_SECONDS = re.compile(r"([\d.e+-]+) seconds \((Warm-up|Sampling)\)")


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


def read(path: Path) -> Output:
    """Read a CSV file of draws.

    Raises
    ------
    StanRunError
        If the file is absent or holds no header, so that nothing half-written is taken for a result.
    """
    try:
        table = pd.read_csv(path, comment="#", dtype=np.float64)
    except (FileNotFoundError, pd.errors.EmptyDataError) as error:
        raise StanRunError(f"Stan wrote no draws to {path.name}: {error}") from error
    with path.open() as file:
        comments = tuple(line[1:].strip() for line in file if line.startswith("#"))
    values = table.to_numpy()
    columns = parse_header(",".join(table.columns))
    method = {k: v.extract_reshape(values) for k, v in columns.items() if k.endswith("__")}
    variables = {k: v.extract_reshape(values) for k, v in columns.items() if k not in method}
    return Output(method, variables, comments)
