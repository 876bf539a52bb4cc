"""Choose the library that evaluates and runs a Stan program: the interpreter if it accepts the program, else CmdStan.

The interpreter checks each program in a separate process. The choice depends only on the program and its data, never on
a cache. If the interpreter rejects a program, or its process dies, CmdStan runs the program, and the reason is
recorded. A program that does not parse, or that rejects its data, raises an error with both.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from stanio import write_stan_json

from onebasin.base.errors import CmdStanNotFound, StanDataError, StanError, StanProgramError
from onebasin.base.files.writing import working_folder
from onebasin.base.processes.children import Finished, ending, run_guarded
from onebasin.base.text import shown

from .compile import ProgramInfo, check_declares, last_words
from .data import check_numbers, lacking
from .home.assemble import missing
from .interpreter.runtime import InterpreterMissing, full_text, included_files, load

_OWN = re.compile(r"^stanli (?:\w+): ")
_ABSENT = re.compile(r"^absent: (.+)$")
_UNAVAILABLE = "are unavailable"
_RENAMED = "_stan_"
_FAILED = re.compile(
    r"failed at every probe point \((?:stanli \w+: )?(.*?)(?: \| in: .*?)?\), so", re.DOTALL
)
_LACKS = {"STuple": "tuples", "UTuple": "tuples", "FnMakeTuple": "tuples"}
_SIZE = "invalid or overflowing extent"
_PARSING = ("Syntax error", "Semantic error", "Lexing error", "Include error")
STANLI, CMDSTAN = "stanli", "cmdstan"


@dataclass(frozen=True)
class Accepted:
    """A program that the interpreter runs."""

    form: str  # The program in the interpreter's form.
    jacobian: str  # The same without its model block.
    info: ProgramInfo
    warning: str = ""  # The interpreter's warning about parts that it computes slowly.


@dataclass(frozen=True)
class Refused:
    """A program that the interpreter does not run."""

    reason: str  # A sentence without a full stop.
    installed: bool = True


def driver(program: Path) -> tuple[str, ...]:
    """Return the command that runs a program in the interpreter, in place of CmdStan's executable."""
    return (sys.executable, "-m", f"{__package__}.interpreter.driver", str(program))


def examine(path: Path, data: Mapping[str, Any]) -> Accepted | Refused:
    """Check whether the interpreter runs a program with its data; raise an error if neither library can run it."""
    try:
        load()
    except InterpreterMissing as reason:
        return Refused(str(reason).removesuffix("."), installed=False)
    numbers = {}  # The program may not need the other data.
    for name, value in data.items():
        with suppress(StanError):
            check_numbers({name: value})
            numbers[name] = value
    with working_folder("check") as folder:
        file = folder / "data.json"
        write_stan_json(str(file), numbers)
        content = file.read_bytes()
    done, result = _tried(path, full_text(path, included_files(path)), content)
    return _refusal(path, data, done) if done.code else _accepted(path, json.loads(result))


@lru_cache(32)
def _tried(path: Path, text: str, content: bytes) -> tuple[Finished, str]:
    """Check a program in a separate process; `text`, the program with its includes, is part of the cache's key."""
    with working_folder("check") as folder:
        file, result = folder / "data.json", folder / "check.json"
        file.write_bytes(content)
        words = ("data", f"file={file}", "output", f"file={result}", "method=check")
        done = run_guarded([*driver(path), *words], folder=folder)
        return done, "" if done.code else result.read_text(encoding="utf-8")


def _accepted(path: Path, found: dict[str, Any]) -> Accepted | Refused:
    """Accept a checked program, unless generated quantities cannot be computed or variables are renamed."""
    if _UNAVAILABLE in found["warning"]:
        # The interpreter cannot compute transformed parameters and generated quantities.
        if any(word in found["warning"] for word in _LACKS):
            return Refused(_named(found["warning"]))
        why = _FAILED.search(found["warning"])
        of = f" ({why[1][:200]})" if why else ""
        return Refused(f"stanli does not compute this program's generated quantities{of}")
    if odd := [name for name in found["names"][2] if name.startswith(_RENAMED)]:
        name = odd[0].removeprefix(_RENAMED).partition(".")[0]
        return Refused(f"stanli renames the variable {name}, which is a keyword of C++")
    parameters, transformed, everything = (
        tuple(dict.fromkeys(name.partition(".")[0].partition(":")[0] for name in names))
        for names in found["names"]
    )
    info = ProgramInfo(
        inputs=tuple(found["inputs"]),
        parameters=parameters,
        transformed=tuple(name for name in transformed if name not in parameters),
        generated=tuple(name for name in everything if name not in transformed),
        includes=tuple(map(Path, found["includes"])),
    )
    check_declares(info, path)
    return Accepted(found["form"], found["jacobian"], info, found["warning"])


def _refusal(path: Path, data: Mapping[str, Any], done: Finished) -> Refused:
    """Explain a failed check; raise an error if the program or its data are wrong."""
    if done.code < 0:
        return Refused(f"stanli {ending(done.code)} as it read {shown(path.name)}")
    words = done.printed.strip()
    line = words.splitlines()[-1] if words else ""
    if absent := _ABSENT.search(line):
        check_numbers({name: data[name] for name in absent[1].split(", ") if name in data})
        raise lacking(absent[1], shown(path.name), data)
    if any(word in words for word in _PARSING) or "included itself" in words:
        words = words.replace("'string'", f"'{shown(path.name)}'")
        raise StanProgramError(f"{shown(path.name)} does not parse:\n{words}")
    if _SIZE in line:
        held = {name: np.asarray(value) for name, value in data.items()}
        whole = {n: int(v) for n, v in held.items() if v.ndim == 0 and v.dtype.kind == "i"}
        if below := ", ".join(f"{name} is {value}" for name, value in whole.items() if value < 0):
            raise StanDataError(
                f"{shown(path.name)} rejects its data:\na size is negative: {below}."
            )
    if _OWN.match(line):
        return Refused(_named(line))
    raise StanDataError(f"{shown(path.name)} rejects its data:\n{last_words(words)}")


def _named(words: str) -> str:
    """Name the feature that the interpreter lacks, according to its message."""
    for word, feature in _LACKS.items():
        if word in words:
            return f"stanli does not support {feature}"
    return f"stanli does not run this program ({_OWN.sub('', words.splitlines()[0])[:200]})"


@dataclass(frozen=True)
class Choice:
    """The library that runs a program."""

    engine: str
    reason: str = ""
    """Why onebasin did not choose the interpreter, as a sentence; empty if it did, or if the user chose."""
    accepted: Accepted | None = None  # The program in the interpreter's form.


def choose(path: Path, data: Mapping[str, Any], engine: str | None = None) -> Choice:
    """Choose the library for a program with its data; `engine` is the user's choice, if any.

    Raise `StanProgramError` if the program does not parse, or if `engine` is the interpreter and it rejects the
    program. Raise `StanDataError` if the program rejects its data, and `CmdStanNotFound` if the program needs CmdStan
    and there is none.
    """
    if engine == CMDSTAN:
        return Choice(CMDSTAN)
    found = examine(path, data)
    if not isinstance(found, Refused):
        return Choice(STANLI, accepted=found)
    if engine == STANLI:
        raise StanProgramError(
            f"`engine` cannot be {STANLI!r}: {found.reason}. Use engine={CMDSTAN!r}, or omit `engine`."
        )
    if lacks := missing():
        if not found.installed:
            raise CmdStanNotFound(f"{found.reason}.")
        raise CmdStanNotFound(f"The program needs CmdStan, because {found.reason}. {lacks}")
    return Choice(CMDSTAN, f"{found.reason}; compiled with CmdStan.")
