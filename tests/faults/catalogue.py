"""The faults to plant, read from the tables beside this file, and the sources in which they are planted."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLES = Path(__file__).parent / "tables"

KINDS = (
    *("sign", "transpose", "off by one", "wrong axis", "missing Jacobian", "missing term"),
    *("swapped arguments", "wrong threshold", "swallowed error", "stale cache", "lost seed"),
    *("wrong unit", "dropped chain", "wrong default"),
)

SUFFIXES = (".py", ".pyi", ".stan", ".stanfunctions", ".cpp", ".hpp", ".c", ".html")


@dataclass(frozen=True)
class Fault:
    """One change of the sources, and the tests that must fail with it.

    Attributes
    ----------
    name : str
        A short name, given to `--only`.
    kind : str
        One of `KINDS`.
    what : str
        The mistake, in a sentence.
    line : str
        Text that occurs exactly once in all sources. The file is found by it, and not named.
    planted : str
        The text in its place.
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
    """Read every source file of the package, under its own path and not that of a link to it."""
    found: dict[Path, str] = {}
    for folder, _, names in os.walk(root / "onebasin", followlinks=True):
        for name in names:
            path = Path(folder, name).resolve()
            if path.suffix in SUFFIXES:
                found[path] = path.read_text(encoding="utf-8")
    return found


def holders(fault: Fault, texts: dict[Path, str]) -> list[Path]:
    """Return the files that hold the fault's line, each as often as it does."""
    return [path for path, text in texts.items() for _ in range(text.count(fault.line))]
