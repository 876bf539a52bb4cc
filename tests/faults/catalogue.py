"""The faults to insert, which are read from the tables in this folder, and the sources that they change."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLES = Path(__file__).parent / "tables"

KINDS = (
    "sign",
    "transpose",
    "off by one",
    "wrong axis",
    "missing Jacobian",
    "missing term",
    "swapped arguments",
    "wrong threshold",
    "swallowed error",
    "stale cache",
    "lost seed",
    "wrong unit",
    "dropped chain",
    "wrong default",
)

SUFFIXES = (".py", ".pyi", ".stan", ".stanfunctions", ".cpp", ".hpp", ".c", ".html")


@dataclass(frozen=True)
class Fault:
    """A change of the sources, and the tests that must fail with it.

    Attributes
    ----------
    name : str
        Short name, for `--only`.
    kind : str
        One of `KINDS`.
    what : str
        The mistake in one sentence.
    line : str
        Text that occurs exactly once in all sources and thereby identifies the file.
    planted : str
        Text that replaces it.
    tests : tuple of str
        Files or node ids of pytest, the fastest that catch the fault.
    """

    name: str
    kind: str
    what: str
    line: str
    planted: str
    tests: tuple[str, ...]


@cache
def faults() -> tuple[Fault, ...]:
    """Read the tables."""
    entries = [
        entry
        for table in sorted(TABLES.glob("*.toml"))
        for entry in tomllib.loads(table.read_text(encoding="utf-8"))["fault"]
    ]
    return tuple(Fault(**{**entry, "tests": tuple(entry["tests"])}) for entry in entries)


def sources(root: Path = ROOT) -> dict[Path, str]:
    """Read every source file of the package, by its real path rather than the path of a link."""
    found: dict[Path, str] = {}
    for folder, _, names in os.walk(root / "onebasin", followlinks=True):
        for name in names:
            path = Path(folder, name).resolve()
            if path.suffix in SUFFIXES:
                found[path] = path.read_text(encoding="utf-8")
    return found


def holders(fault: Fault, texts: dict[Path, str]) -> list[Path]:
    """Return the files that contain the fault's line, once per occurrence."""
    return [path for path, text in texts.items() for _ in range(text.count(fault.line))]
