"""Stan to C++, by the home's own `stanc`.

The program is handed over as a copy under a fixed name, in a folder of ours from which a link of a fixed name leads to
its own folder, where its includes are looked for. So no character in the names of files and folders has a meaning to
`stanc` (which takes a comma for the end of a folder's name), and none of them reaches the C++: programs of equal text
have equal translations, whatever they are called and wherever they lie.
"""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from onebasin.base.files.writing import working_folder
from onebasin.base.text import shown

from .home.directory import Home
from .home.environment import build_environment
from .home.errors import CmdStanNotFound, StanProgramError
from .home.integrity import check_whole
from .interpreter.source import without_foreign_lines

NAME = "program"
"""The name of every program while it is translated and compiled."""

_INCLUDED = "included"
"""The link to the program's own folder."""

_NAMESPACE = re.compile(r"\b\w+_model_namespace::\w+: ")
"""The C++ location of a failed check of data, which says nothing about the program."""

SHOWN_LINES, SHOWN_WIDTH = 12, 400

_TELLING = ("Er", "Ex", "Initialization", "Rejecting", "Posterior is improper")
"""Limits of a program's messages: lines shown, their width, and the starts of lines that say what went wrong."""


@dataclass(frozen=True)
class ProgramInfo:
    """The declarations of a Stan program, by block."""

    inputs: tuple[str, ...]
    parameters: tuple[str, ...]
    transformed: tuple[str, ...]
    generated: tuple[str, ...]
    includes: tuple[Path, ...]
    tuples: tuple[str, ...] = ()  # Those of the parameters and derived quantities that are tuples.

    @property
    def derived(self) -> tuple[str, ...]:
        """The names of the transformed parameters and generated quantities."""
        return (*self.transformed, *self.generated)


@dataclass(frozen=True)
class Translation:
    """A program with all that it includes, as C++."""

    info: ProgramInfo
    source: bytes  # As it was read, without its includes.
    cpp: bytes


def inspect(path: Path, where: Home) -> ProgramInfo:
    """Parse a program with the CmdStan's own compiler and list what it declares."""
    with working_folder(NAME) as folder:
        return _inspect(_stage(path, folder), path, where)


def translate(path: Path, where: Home) -> Translation:
    """Translate a program to C++."""
    with working_folder(NAME) as folder:
        staged = _stage(path, folder)
        info = _inspect(staged, path, where)
        _stanc(staged, path, where, f"--o={NAME}.hpp")
        return Translation(info, staged.read_bytes(), staged.with_suffix(".hpp").read_bytes())


def check_declares(info: ProgramInfo, path: Path) -> None:
    """Refuse a program without variables."""
    if not (info.parameters or info.derived):
        raise StanProgramError(
            f"`path` is {shown(str(path))}, which declares no variables: there is nothing to sample; "
            "declare parameters or generated quantities."
        )


def in_own_names(words: str, path: Path) -> str:
    """Give what `stanc`, the C++ compiler or a compiled program says with the program's own names in it."""
    words = _NAMESPACE.sub("", words)
    words = words.replace(f"'{NAME}.stan'", f"'{shown(path.name)}'").replace(f"'{_INCLUDED}/", "'")
    return words.replace(
        f"Current include paths: {_INCLUDED}", f"Current include paths: {shown(str(path.parent))}"
    )


def _stage(path: Path, folder: Path) -> Path:
    (folder / _INCLUDED).symlink_to(path.parent.resolve())
    staged = folder / f"{NAME}.stan"
    staged.write_bytes(path.read_bytes())
    return staged


def _inspect(staged: Path, path: Path, where: Home) -> ProgramInfo:
    info = json.loads(_stanc(staged, path, where, "--info"))
    derived = info["transformed parameters"] | info["generated quantities"]
    drawn = info["parameters"] | derived
    return ProgramInfo(
        inputs=tuple(info["inputs"]),
        parameters=tuple(info["parameters"]),
        transformed=tuple(info["transformed parameters"]),
        generated=tuple(info["generated quantities"]),
        includes=tuple(
            path.parent / Path(name).relative_to(_INCLUDED) for name in info["included_files"]
        ),
        tuples=tuple(name for name, kind in drawn.items() if isinstance(kind["type"], list)),
    )


def _stanc(staged: Path, path: Path, where: Home, option: str) -> str:
    """Call `stanc` in the program's staging folder; give what it prints."""
    command = [
        str(where.path / "bin" / "stanc"),
        option,
        f"--include-paths={_INCLUDED}",
        staged.name,
    ]
    try:
        done = subprocess.run(
            command,
            cwd=staged.parent,
            env=build_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            check=False,
        )
    except OSError as error:
        check_whole(where.path)
        raise CmdStanNotFound(
            f"{command[0]} does not run: {error.strerror}; build that CmdStan (`make build` in its folder), or set "
            "CMDSTAN to another."
        ) from error
    if done.returncode:
        check_whole(where.path)
        words = in_own_names(done.stderr.strip(), path)
        words = without_foreign_lines(words, path)
        raise StanProgramError(f"{shown(path.name)} does not parse:\n{words}")
    return done.stdout


def last_words(printed: str) -> str:
    """Return the lines that say what went wrong, such as "Exception: ..."; without one, the last lines."""
    lines = [line[:SHOWN_WIDTH] for line in printed.splitlines() if line.strip()]
    telling = [line for line in lines if line.startswith(_TELLING)]
    once = list(dict.fromkeys(telling or lines))
    return "\n".join(once[-SHOWN_LINES:])
