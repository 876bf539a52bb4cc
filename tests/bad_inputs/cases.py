"""A bad input, what must hold of its answer, and the checks that hold of every answer.

A command answers with one error of at most two sentences, in the words of the command line, and the exit code that goes
with it; it leaves no file that was not asked for, and every file that was there as it was. A function raises a named
error, a `ValueError` or a `TypeError` in its own words, not a library's.
"""

from __future__ import annotations

import re
import shlex
import shutil
import traceback
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onebasin.base.errors import OnebasinError
from onebasin.cli.main import main

DONE, REFUSED, MISUSED = 0, 1, 2

File = str | bytes | Path | Callable[[Path], object]
"""What a file holds: text, bytes, those of another file, or what writes it."""

SHOWN_LINES = 14
"""Lines of a program's or a compiler's own words under a message, at most."""

NEVER = re.compile(
    r"""Traceback|[Uu]nexpected (?!end)|invalid\ literal|could\ not\ convert|object\ at\ 0x|<class|site-packages
    |\b[A-Z]\w*(?:Error|Exception|Warning)\b|\bErrno\b|\bNone(?:Type)?\b|\bnumpy(?!ro|\.savez)|\bnp\.|\bxarray|\bh5netcdf|\bh5py
    |\bpydantic|\bcmdstanpy|\bHDF5\b|\bint\(\)|\bPosixPath|dtype\('|force=True|\bline\ \d+,\ in\b|\b__\w+__\b""",
    re.VERBOSE,
)
"""Words of libraries and of Python, none of which belongs on the command line."""

PYTHON_ARGUMENTS = re.compile(
    r"`(var_names|rng_key|symmetry|posteriors?|posterior|max_sweeps|runs|path|out|truth|seed|chains|draws|warmup"
    r"|permutations|program|title|reference|cost|restarts|held_out|points|checkpoint|settings|target)`"
)
"""Names of a function's arguments where the option or the file should stand."""


@dataclass(frozen=True)
class Case:
    """A command, and how it must be answered.

    Attributes
    ----------
    id : str
        Its name.
    words : str
        What is typed after `onebasin`, as a shell splits it.
    says : tuple of str
        What the message must hold, in this spelling.
    files : mapping
        Files in the working folder beforehand, by name; ``None`` makes a folder.
    code : int
        The exit code.
    makes : tuple of str
        Files and folders that may be there afterwards.
    own_words : bool
        Whether lines of a program or compiler may follow the message.
    """

    id: str
    words: str
    says: tuple[str, ...] = ()
    files: Mapping[str, File | None] = field(default_factory=dict)
    code: int = REFUSED
    makes: tuple[str, ...] = ()
    own_words: bool = False


@dataclass(frozen=True)
class Call:
    """A call of a function that must be refused.

    Attributes
    ----------
    id : str
        Its name.
    call : callable
        Makes the call, given the working folder where it takes an argument.
    says : tuple of str
        What the message must hold.
    """

    id: str
    call: Callable[[], object]
    says: tuple[str, ...] = ()


def put(files: Mapping[str, File | None], folder: Path) -> None:
    """Write the files of a case."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            path.mkdir()
        elif isinstance(content, str):
            path.write_text(content)
        elif isinstance(content, bytes):
            path.write_bytes(content)
        elif isinstance(content, Path):
            shutil.copy(content, path)
        else:
            content(path)


def contents(folder: Path) -> dict[str, bytes | str | None]:
    """Every file in a folder and what it holds; links by where they lead, others that are no files by nothing."""
    return {
        str(path.relative_to(folder)): str(path.readlink())
        if path.is_symlink()
        else path.read_bytes()
        if path.is_file()
        else None
        for path in folder.rglob("*")
    }


def check_command(case: Case, folder: Path, captured: Callable[[], tuple[str, str]]) -> None:
    """Run a case's command in a folder, and hold the answer to all that every answer must be."""
    put(case.files, folder)
    before = contents(folder)
    captured()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("default")
        code = main(shlex.split(case.words))
    out, err = captured()
    faults = list(command_faults(case, code, out, err))
    faults += [f"a library warned: {w.message}" for w in warned if not _silent(w)]
    faults += list(_folder_faults(case, before, contents(folder)))
    assert not faults, "\n".join([*faults, f"stdout: {out}", f"stderr: {err}"])


def command_faults(case: Case, code: int, out: str, err: str) -> Iterable[str]:
    """Name what is wrong with an answer."""
    if code != case.code:
        yield f"the exit code is {code}, and {case.code} was due"
    if case.code == DONE:
        if "onebasin: " in err:
            yield "an error was reported"
        yield from (f"it does not say: {word}" for word in case.says if word not in out + err)
        return
    lines = err.rstrip("\n").split("\n")
    said = [i for i, line in enumerate(lines) if line.startswith("onebasin: ")]
    if len(said) != 1:
        yield f"{len(said)} messages instead of one"
        return
    message = lines[said[0]]
    if not case.own_words and (len(lines) > said[0] + 1):
        yield "more than one line"
    if len(lines) - said[0] > SHOWN_LINES:
        yield f"{len(lines)} lines"
    if sentences(message) > 2 + (case.code == MISUSED):
        yield f"{sentences(message)} sentences"
    if case.code == REFUSED and not case.own_words and "`" not in message:
        yield "nothing is named in backticks"
    for bad in NEVER.findall(err) + PYTHON_ARGUMENTS.findall(err.replace("group `posterior`", "")):
        yield f"words that do not belong there: {bad}"
    for word in case.says:
        if word not in err:
            yield f"it does not say: {word}"
    if "onebasin: " in out:
        yield "the error is on stdout"


def _folder_faults(
    case: Case, before: Mapping[str, object], after: Mapping[str, object]
) -> Iterable[str]:
    for name, content in before.items():
        if name not in after:
            yield f"{name} is gone"
        elif after[name] != content:
            yield f"{name} has changed"
    for name in sorted(after.keys() - before.keys()):
        if name.split("/")[0] not in case.makes:
            yield f"{name} was left behind"


def sentences(message: str) -> int:
    """Count the sentences of a message: where a stop, question or exclamation mark is followed by a capital."""
    plain = re.sub(r"`[^`]*`|'[^']*'|\"[^\"]*\"", "x", message)
    return 1 + len(re.findall(r"[.?!]\s+(?=[A-Z`])", plain))


def _silent(warning: warnings.WarningMessage) -> bool:
    """Whether Python keeps a warning to itself outside of tests."""
    return issubclass(
        warning.category, (DeprecationWarning, PendingDeprecationWarning, ImportWarning)
    )


def check_call(case: Call) -> None:
    """Make a case's call, and hold its error to all that every error must be."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("default")
        try:
            value: Any = case.call()
        except (OnebasinError, ValueError, TypeError) as error:
            faults = list(call_faults(case, error))
        else:
            raise AssertionError(f"no error, but {value!r}"[:500])
    faults += [f"a library warned: {w.message}" for w in warned if not _silent(w)]
    assert not faults, "\n".join(faults)


def call_faults(case: Call, error: Exception) -> Iterable[str]:
    """Name what is wrong with an error."""
    message = str(error)
    place = traceback.extract_tb(error.__traceback__)[-1].filename
    if f"{Path('onebasin') / ''}" not in place:
        yield f"raised in {place}, not in a room of ours: {type(error).__name__}: {message}"
    if "`" not in message:
        yield f"nothing is named in backticks: {message}"
    if sentences(message) > 3:
        yield f"{sentences(message)} sentences: {message}"
    if bad := re.search(
        r"[Uu]nexpected (?!end)|invalid literal|could not convert|object at 0x", message
    ):
        yield f"words that do not belong there: {bad[0]}: {message}"
    for word in case.says:
        if word not in message:
            yield f"it does not say {word!r}: {message}"
