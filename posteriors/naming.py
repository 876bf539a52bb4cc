"""Which files are one posterior: the chains of a CmdStan run are separate files.

Files `NAME_1.csv`, `NAME_2.csv`, ... of one folder (or `NAME-1.csv`, `NAME.1.csv`) belong together, and are called
NAME; a folder that is no Zarr store stands for the CSV files in it, and a pattern (`'fits/a_*.csv'`) for the files that
match. Everything else is a posterior by itself.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from .zarr_store import is_store

Files = tuple[Path, ...]

_CHAIN = re.compile(r"(?P<stem>.+)[-_.](?P<chain>\d+)")
_TABLES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_SUFFIXES = (".zarr.zip", ".nc", ".nc4", ".netcdf", ".zarr", *_TABLES, ".parquet", ".zip")


def is_csv(path: Path) -> bool:
    """Tell whether a name is that of a table as text, packed or not."""
    return path.name.lower().endswith(_TABLES)


def expanded(path: Path) -> Files:
    """Give the files that a word stands for: those of a pattern, the CSV files of a folder, or itself."""
    if path.is_dir() and not is_store(path):
        return tuple(sorted(filter(is_csv, path.iterdir()), key=_order)) or (path,)
    if glob.has_magic(str(path)) and not path.exists():
        return tuple(sorted(map(Path, glob.glob(str(path))), key=_order)) or (path,)
    return (path,)


def grouped(paths: Iterable[Path]) -> list[Files]:
    """Put chains of one run together, in the order in which the runs are first named."""
    groups: dict[tuple[Path, str] | Path, list[Path]] = {}
    for path in paths:
        if path.is_dir() and not is_store(path):
            groups.setdefault(path, []).extend(expanded(path))
            continue
        for file in expanded(path):
            found = _CHAIN.fullmatch(_bare(file)) if is_csv(file) else None
            groups.setdefault((file.parent, found["stem"]) if found else file, []).append(file)
    return [tuple(sorted(files, key=_order)) for files in groups.values()]


def stem(files: Sequence[Path]) -> Path:
    """Give the name of a posterior's files, without suffixes and the number of a chain."""
    first = files[0]
    found = _CHAIN.fullmatch(_bare(first)) if is_csv(first) and len(files) > 1 else None
    return first.with_name(found["stem"] if found else _bare(first))


def _bare(path: Path) -> str:
    """Give a file's name without its suffixes."""
    lower = path.name.lower()
    ends = [suffix for suffix in _SUFFIXES if lower.endswith(suffix)] or [path.suffix]
    return path.name[: len(path.name) - max(map(len, ends))] or path.name


def _order(path: Path) -> tuple[str, int, str]:
    """Chains by their numbers, so that 10 comes after 9."""
    found = _CHAIN.fullmatch(_bare(path))
    if found is None:
        return (str(path), 0, "")
    return (str(path.parent / found["stem"]), int(found["chain"]), str(path))
