"""CSV files as CmdStan writes them: a header, rows of numbers, and comments; a file appears when it is whole."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path


def say(line: str) -> None:
    """Print a line at once, for whoever watches this process."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def write_table(
    path: Path,
    columns: Sequence[str],
    rows: Iterable[Iterable[float]],
    digits: int,
    comments: Iterable[str] = (),
) -> None:
    """Write rows of numbers with so many significant figures, then lines of comment."""
    part = path.with_name(f"{path.name}.part")
    with part.open("w", encoding="utf-8") as file:
        file.write(",".join(columns) + "\n")
        for row in rows:
            file.write(",".join([f"%.{digits}g" % number for number in row]) + "\n")
        file.writelines(f"# {line}\n" for line in comments)
    part.replace(path)
