"""Tables of numbers as text: lines of comments (`#`), a header, and rows that are read some at a time.

Fields end at commas, semicolons or tabs, as the header shows. A byte order mark is skipped, gzip is unpacked, and NA or
an empty field is NaN, TRUE is 1.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BufferedReader, TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import Self

import numpy as np

from onebasin.base.errors import ArgumentError

from . import schema

NUMBERS = 1 << 21
"""Numbers that are parsed at once: a table's text and its arrays do not fit into memory together."""

_HEAD = 1 << 20
"""Bytes of rows by which two tables are told apart."""


@dataclass(frozen=True)
class Survey:
    """The shape, header and comments of a table, without its numbers."""

    path: Path  # The file.
    columns: tuple[str, ...]  # Their names; empty where there are none.
    rows: int  # Number of rows.
    comments: tuple[str, ...] = ()  # Lines of comment, without their ``#``.
    rows_before: Mapping[str, int] = field(default_factory=dict)  # Of a comment.
    cut: bool = False  # The last row has too few fields or too many.
    ended: bool = True  # The last line ends as lines do.
    digest: str = ""  # Of the first rows.
    delimiter: str = ","  # The sign at which its fields end.

    @classmethod
    def of(cls, path: Path) -> Self:
        """Go through a table once, line by line; what is no text is refused with a `ValueError`."""
        comments: list[str] = []
        before: dict[str, int] = {}
        header, last, line, rows = b"", b"", b"\n", -1
        seen, digest = 0, hashlib.sha256()
        with open_table(path) as file:
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
        text = header.decode().strip("\r\n ")
        # Fields end at the sign that the header has most of, a comma in doubt.
        bare = re.sub(r'"[^"]*"|\[[^\]]*\]|\([^)]*\)', "", text)
        delimiter = max(",;\t", key=bare.count)
        names = next(csv.reader([text], delimiter=delimiter), []) if header else []
        return cls(
            path,
            tuple(name.strip() for name in names),
            max(rows, 0),
            tuple(comments),
            before,
            rows > 0 and last.count(delimiter.encode()) + 1 != len(names),
            line.endswith(b"\n"),
            digest.hexdigest(),
            delimiter,
        )


GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_WORDS = dict.fromkeys(("", "na", "n/a", "null"), float("nan")) | {"true": 1.0, "false": 0.0}
"""Fields that are no numbers, in small letters, and what they stand for."""


@contextmanager
def open_table(path: Path) -> Iterator[BufferedReader | gzip.GzipFile]:
    """Open a file's text as bytes, unpacked and after its byte order mark."""
    with path.open("rb") as plain:
        packed = plain.read(len(GZIP)) == GZIP
        plain.seek(0)
        file = gzip.GzipFile(fileobj=plain) if packed else plain
        if file.read(len(_BOM)) != _BOM:
            file.seek(0)
        yield file


def rows_at_once(width: int) -> int:
    """Return the number of rows of a table of this width that are parsed at once."""
    return max(1, NUMBERS // max(width, 1))


def blocks(table: Survey) -> Iterator[np.ndarray]:
    """Read the rows after the header, about `NUMBERS` numbers at a time, each as its text says to the last bit.

    A row of too few or too many numbers is refused, and so is a field that is no number; the message says where.
    """
    width, rows = len(table.columns), 0
    with open_table(table.path) as raw, TextIOWrapper(raw, encoding="utf-8") as file:
        lines = (line for line in file if not line.startswith("#") and not line.isspace())
        next(lines, None)
        while lines_read := list(islice(lines, rows_at_once(width))):
            try:
                found = np.loadtxt(lines_read, delimiter=table.delimiter, comments=None, ndmin=2)
            except ValueError:  # fields may be missing
                found = np.array(
                    [_row(line, table, rows + n) for n, line in enumerate(lines_read, start=1)]
                )
            if found.shape[1] != width:
                raise ArgumentError(f"a row has {found.shape[1]} numbers instead of {width}")
            yield found
            rows += len(lines_read)


def _row(line: str, table: Survey, number: int) -> list[float]:
    fields = [field.strip().strip('"') for field in line.rstrip("\r\n").split(table.delimiter)]
    if len(fields) != len(table.columns):
        raise ArgumentError(
            f"row {number} has {len(fields)} of {len(table.columns)} fields: the line is cut short or too long"
        )
    out = []
    for name, text in zip(table.columns, fields, strict=True):
        try:
            word = text.lower()
            out.append(_WORDS[word] if word in _WORDS else float(text))
        except ValueError:
            advice = "leave the column out, or write NA"
            if text.replace(",", "").lstrip("+-").isdigit():
                advice = "write decimal points"
            elif tuple(fields) == table.columns:
                advice = "a second header begins there, so give each chain a file of its own"
            elif name.strip("._") in schema.SAMPLE_DIMS:
                advice = "count chains and draws"
            raise ArgumentError(
                f"column {name!r} holds {text[:20]!r} in row {number}, which is no number: {advice}"
            ) from None
    return out
