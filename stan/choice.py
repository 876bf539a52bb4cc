"""Choose the library that evaluates and runs a Stan program: the interpreter where it takes the program, else CmdStan.

The interpreter runs programs that come through its check in a separate process. The rule looks at the program and its
data alone, never at a cache. CmdStan runs a program that the interpreter rejects, or that ends the interpreter's
process, and the reason is kept. A program that does not parse, or that rejects its data, is an error for both.
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
from onebasin.base.text import read_json_file, shown

from .compile import ProgramInfo, check_declares, last_words
from .home.assemble import missing
from .interpreter.runtime import InterpreterMissing, full_text, included_files, load


def read_data(path: Path) -> dict[str, Any]:
    """Read a JSON file of variables; reject what is none, and a variable that is given twice."""
    return read_json_file(path, error=StanDataError)


def check_finite(values: Mapping[str, Any]) -> None:
    """Reject numbers that are not finite, and rows of unequal length; the message says where."""
    for name, value in values.items():
        array = _array(name, value)
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
            raise StanDataError(
                f"`data` has a value that is not finite in {name}{list(where)}: {array[where]}; "
                "remove or impute it first."
            )


def check_numbers(values: Mapping[str, Any]) -> None:
    """Reject what is no number or no array of them; a mapping is a tuple of Stan's."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            continue
        array = _array(name, value)
        if array.dtype.kind in "biuf":
            continue
        for entry in array.ravel():
            if isinstance(entry, (list, tuple)):
                raise _ragged(name)
            # A complex number is a pair of real ones to Stan; whole numbers beyond 64 bits are left to it.
            if not isinstance(entry, (int, float, complex, Mapping)):
                held = "null" if entry is None else repr(str(entry))
                raise StanDataError(
                    f"`data` holds {held} in {name}, which is no number; remove or replace it first."
                )


def lacking(absent: str, program: str, given: Mapping[str, Any]) -> StanDataError:
    """Say which declared variables the data lack."""
    if not given:
        return StanDataError(
            f"`data` is missing or empty: {program} declares {absent}; give a JSON file with an entry for each."
        )
    return StanDataError(
        f"`data` lacks {absent}, which {program} declares; it holds {', '.join(given)}."
    )


def _array(name: str, value: Any) -> np.ndarray:
    if isinstance(value, Mapping):
        return np.zeros(0)
    try:
        return np.asarray(value)
    except ValueError:  # NumPy's own words are of its own arrays
        raise _ragged(name) from None


def _ragged(name: str) -> StanDataError:
    return StanDataError(
        f"`data` has rows of different lengths in {name}, or lists within lists too deep for an array; "
        "give every row of an array one length."
    )


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
_REMEMBERED = 32


@dataclass(frozen=True)
class Accepted:
    """A program that the interpreter runs."""

    form: str  # The program as the interpreter takes it.
    jacobian: str  # The same without its model block.
    info: ProgramInfo
    warning: str = ""  # The interpreter's words on parts that it computes slowly.


@dataclass(frozen=True)
class Refused:
    """A program that the interpreter does not run.

    The reason is the beginning of a sentence without a full stop; it says how to install one if there is none.
    """

    reason: str
    installed: bool = True


def driver(program: Path) -> tuple[str, ...]:
    """Return the command that stands where CmdStan's executable does."""
    return (sys.executable, "-m", f"{__package__}.interpreter.driver", str(program))


def examine(path: Path, data: Mapping[str, Any]) -> Accepted | Refused:
    """Check whether the interpreter runs a program with its data; one that is wrong for both is an error."""
    try:
        load()
    except InterpreterMissing as reason:
        return Refused(str(reason).removesuffix("."), installed=False)
    numbers = {}  # of the data; a program may not need the others
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


@lru_cache(_REMEMBERED)
def _tried(path: Path, text: str, content: bytes) -> tuple[Finished, str]:
    """Check a program, of this text with its includes, on data in a separate process; give what it wrote."""
    with working_folder("check") as folder:
        file, result = folder / "data.json", folder / "check.json"
        file.write_bytes(content)
        words = ("data", f"file={file}", "output", f"file={result}", "method=check")
        done = run_guarded([*driver(path), *words], folder=folder)
        return done, "" if done.code else result.read_text(encoding="utf-8")


def _accepted(path: Path, found: dict[str, Any]) -> Accepted | Refused:
    """Take what `check` has found, if generated quantities are computed and variables keep their names."""
    if _UNAVAILABLE in found["warning"]:
        # Something keeps the interpreter from computing transformed parameters and generated quantities.
        if any(word in found["warning"] for word in _LACKS):
            return Refused(_named(found["warning"]))
        why = _FAILED.search(found["warning"])
        of = f" ({why[1][:200]})" if why else ""
        return Refused(f"stanli does not compute this program's generated quantities{of}")
    if odd := [name for name in found["names"][2] if name.startswith(_RENAMED)]:
        name = odd[0].removeprefix(_RENAMED).partition(".")[0]
        return Refused(f"stanli renames the variable {name}, whose name is a keyword of C++")
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
    """Tell a program that the interpreter rejects from one that is wrong, which is an error."""
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
    """Name what the interpreter lacks."""
    for word, feature in _LACKS.items():
        if word in words:
            return f"stanli does not support {feature}"
    return f"stanli does not run this program ({_OWN.sub('', words.splitlines()[0])[:200]})"


STANLI, CMDSTAN = "stanli", "cmdstan"


@dataclass(frozen=True)
class Choice:
    """A library for a program."""

    engine: str  # The library.
    reason: str = ""
    """Why it is not the interpreter, as a sentence; empty if it is, or where the user chose."""
    accepted: Accepted | None = None
    """The program as the interpreter takes it, where that is the library."""


def choose(path: Path, data: Mapping[str, Any], engine: str | None = None) -> Choice:
    """Choose the library for a program with its data; the user's choice stands.

    A program that does not parse, or that the interpreter was asked for and does not take, is a `StanProgramError`;
    data that it rejects are a `StanDataError`. It is `CmdStanNotFound` if the interpreter rejects the program and there
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
