"""CSV files as CmdStan writes them: a header, rows of numbers, and comments; a file appears when it is whole."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType


def say(line: str) -> None:
    """Print a line at once, for whoever watches this process."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


class RowFile:
    """A file that is written row by row, of numbers with so many significant figures."""

    def __init__(self, path: Path, columns: Sequence[str], digits: int) -> None:
        self._path, self._part = path, path.with_name(f"{path.name}.part")
        self._file = self._part.open("w", encoding="utf-8")
        self._format = f"%.{digits}g"
        self._file.write(",".join(columns) + "\n")

    def __enter__(self) -> RowFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()
        if kind is None:
            self._part.replace(self._path)

    def row(self, numbers: Iterable[float]) -> None:
        """Write a row."""
        self._file.write(",".join([self._format % number for number in numbers]) + "\n")

    def comment(self, *lines: str) -> None:
        """Write lines of comment."""
        self._file.write("".join(f"# {line}\n" for line in lines))
