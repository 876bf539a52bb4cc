"""Which library evaluates and runs a Stan program: the interpreter where it takes the program, CmdStan elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .acceptance import Accepted, Refused, examine
from .home.errors import CmdStanNotFound, StanProgramError
from .home.search import missing

STANLI, CMDSTAN = "stanli", "cmdstan"


@dataclass(frozen=True)
class Choice:
    """A library for a program."""

    engine: str  # The library.
    reason: str = ""
    """Why it is not the interpreter, as a sentence; empty where it is, or where the user chose."""
    accepted: Accepted | None = None
    """The program as the interpreter takes it, where that is the library."""


def choose(path: Path, data: Mapping[str, Any], engine: str | None = None) -> Choice:
    """Choose the library for a program with its data; the user's choice stands.

    A program that does not parse, or that the interpreter was asked for and does not take, is a `StanProgramError`;
    data that it refuses are a `StanDataError`. It is `CmdStanNotFound` if the interpreter refuses the program and there
    is no CmdStan; the message says what to do.
    """
    if engine == CMDSTAN:
        return Choice(CMDSTAN)
    found = examine(path, data)
    if not isinstance(found, Refused):
        return Choice(STANLI, accepted=found)
    if engine == STANLI:
        raise StanProgramError(
            f"`engine` is {STANLI!r}, but {found.reason}; use engine={CMDSTAN!r}, or leave it out."
        )
    if lacks := missing():
        if not found.installed:
            raise CmdStanNotFound(f"{found.reason}.")
        which = "does" if "does not" in found.reason else "may run it"
        start = "CmdStan is not installed"
        absent = lacks.startswith(start)
        how = (
            f"is not installed{lacks.removeprefix(start)}" if absent else f"cannot be used. {lacks}"
        )
        raise CmdStanNotFound(f"{found.reason}, and CmdStan, which {which}, {how}")
    return Choice(CMDSTAN, f"{found.reason}; compiled with CmdStan.")
