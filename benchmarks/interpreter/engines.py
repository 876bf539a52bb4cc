"""Common interface to open a program in both engines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from onebasin.base.errors import StanProgramError
from onebasin.stan.choice import Accepted, Refused, examine
from onebasin.stan.library import StanLibrary, open_library

ENGINES = ("cmdstan", "stanli")
SEED = 0
"""Seed of random numbers in transformed data."""


def opened(
    program: Path,
    data: Mapping[str, Any],
    engine: str,
    progress: Callable[[str], None] | None = None,
) -> StanLibrary:
    """Open a program with its data.

    Parameters
    ----------
    program : Path
        The ``.stan`` file.
    data : mapping
        Variables of the data block.
    engine : str
        ``"cmdstan"`` or ``"stanli"``.
    progress : callable, optional
        Called with a line of text before CmdStan compiles the program.
    """
    if engine == "stanli" and isinstance(found := examine(program.resolve(), data), Refused):
        raise StanProgramError(found.reason)
    return open_library(program, data, engine=engine, seed=SEED, progress=progress)


def warning_of(program: Path, data: Mapping[str, Any]) -> str:
    """Return stanli's warning about an accepted program, or an empty text."""
    found = examine(program.resolve(), data)
    return found.warning if isinstance(found, Accepted) else ""
