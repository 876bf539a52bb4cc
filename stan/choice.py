"""Which library evaluates and runs a Stan program: the interpreter where it takes the program, CmdStan elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .acceptance import Refused, examine

STANLI, CMDSTAN = "stanli", "cmdstan"


@dataclass(frozen=True)
class Choice:
    """A library for a program.

    Attributes
    ----------
    engine : {"stanli", "cmdstan"}
        The library.
    reason : str
        Why it is not the interpreter, as a sentence; empty where it is, or where the user chose.
    """

    engine: str
    reason: str = ""


def choose(path: Path, data: Mapping[str, Any], engine: str | None = None) -> Choice:
    """Choose the library for a program with its data; the user's choice stands.

    Raises
    ------
    StanProgramError
        If the program does not parse.
    StanDataError
        If it refuses the data.
    """
    if engine:
        return Choice(engine)
    found = examine(path, data)
    if isinstance(found, Refused):
        return Choice(CMDSTAN, f"{found.reason}; compiled with CmdStan.")
    return Choice(STANLI)
