"""Tables of numbers as text: lines of comments (`#`), a header, and rows that are read some at a time."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from onebasin.base.errors import ArgumentError

NUMBERS = 1 << 21
"""Numbers that are parsed at once: a table's text and its arrays do not fit into memory beside each other."""

_HEAD = 1 << 20
"""Bytes of rows by which two tables are told apart."""


@dataclass(frozen=True)
class Survey:
    """What a table holds, without its numbers.

    Attributes
    ----------
    path : Path
        The file.
    header : tuple of str
        Names of the columns; empty where there are none.
    rows : int
        How many there are.
    comments : tuple of str
        Lines of comment, without their ``#``.
    rows_before : dict
        Of a comment: how many rows stand before it.
    cut : bool
        Whether the last row has too few fields or too many.
    ended : bool
        Whether the last line ends as lines do.
    digest : str
        Of the first rows.
    """

    path: Path
    header: tuple[str, ...]
    rows: int
    comments: tuple[str, ...]
    rows_before: dict[str, int]
    cut: bool
    ended: bool
    digest: str


def survey(path: Path) -> Survey:
    """Go through a table once, line by line.

    Raises
    ------
    ValueError
        If it is no text.
    OSError
        If it cannot be read.
    """
    comments: list[str] = []
    before: dict[str, int] = {}
    header, last, line, rows = b"", b"", b"\n", -1
    seen, digest = 0, hashlib.sha256()
    with path.open("rb") as file:
        for line in file:
            if line.startswith(b"#"):
                comments.append(line[1:].decode().strip())
                before.setdefault(comments[-1], max(rows, 0))
            elif not line.isspace():
                if rows < 0:
                    header = line
                elif seen < _HEAD:
                    digest.update(line)
                    seen += len(line)
                last, rows = line, rows + 1
    names = next(csv.reader([header.decode().strip()]), []) if header else []
    return Survey(
        path,
        tuple(name.strip() for name in names),
        max(rows, 0),
        tuple(comments),
        before,
        rows > 0 and last.count(b",") + 1 != len(names),
        line.endswith(b"\n"),
        digest.hexdigest(),
    )


def rows_at_once(width: int, *, numbers: int | None = None) -> int:
    """How many rows of a table of this width are parsed at once."""
    return max(1, (numbers or NUMBERS) // max(width, 1))


def blocks(path: Path, width: int, *, numbers: int | None = None) -> Iterator[np.ndarray]:
    """Read the rows after the header, about so many numbers at a time, each as its text says to the last bit.

    Raises
    ------
    ValueError
        If a row does not have `width` numbers.
    """
    with path.open() as file:
        lines = (line for line in file if not line.startswith("#") and not line.isspace())
        next(lines, None)
        while chunk := list(islice(lines, rows_at_once(width, numbers=numbers))):
            table = np.loadtxt(chunk, delimiter=",", comments=None, ndmin=2)
            if table.shape[1] != width:
                raise ArgumentError(f"a row has {table.shape[1]} numbers instead of {width}")
            yield table
