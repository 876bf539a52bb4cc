"""A bad input, what must hold of its answer, and the checks that hold of every answer.

A command answers with one line that names what is wrong, and the exit code that goes with it; it leaves no file that
was not asked for, and every file that was there as it was. A function raises an `OnebasinError`.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from onebasin.cli.main import main

DONE, REFUSED = 0, 1

File = str | bytes | Path | Callable[[Path], object]
"""What a file holds: text, bytes, those of another file, or what writes it."""


@dataclass(frozen=True)
class Case:
    """A command, and how it must be answered.

    Attributes
    ----------
    words : str
        What is typed after `onebasin`, as a shell splits it.
    names : tuple of str
        What the message must name.
    files : mapping
        Files in the working folder beforehand, by name; ``None`` makes a folder.
    code : int
        The exit code.
    makes : tuple of str
        Files that may be there afterwards.
    """

    words: str
    names: tuple[str, ...] = ()
    files: Mapping[str, File | None] = field(default_factory=dict)
    code: int = REFUSED
    makes: tuple[str, ...] = ()


def put(files: Mapping[str, File | None], folder: Path) -> None:
    """Write the files of a case."""
    for name, content in files.items():
        path = folder / name
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


def contents(folder: Path) -> dict[str, bytes | None]:
    """Every file in a folder and what it holds."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


def check(case: Case, folder: Path, captured: Callable[[], tuple[str, str]]) -> None:
    """Run a case's command in a folder, and hold the answer to all that every answer must be."""
    put(case.files, folder)
    before = contents(folder)
    captured()
    code = main(shlex.split(case.words))
    out, err = captured()
    assert code == case.code, out + err
    after = contents(folder)
    assert {name: after.get(name) for name in before} == before, "a file has changed"
    assert after.keys() - before.keys() <= set(case.makes), "a file was left behind"
    assert err.count("onebasin: ") == (code != DONE), err
    assert "Traceback" not in err and "onebasin: " not in out
    missing = [name for name in case.names if name not in err + (out if code == DONE else "")]
    assert not missing, f"{missing} not in: {err}"


def lines(text: str) -> list[tuple[str, tuple[str, ...]]]:
    """Read a table of one case a line: what is typed, two blanks and a bar, and the words due in the answer.

    Words are separated by ` ~ `; a line that begins with `# ` is a heading.
    """
    found = []
    for line in text.strip().splitlines():
        if line.strip() and not line.startswith("# "):
            typed, _, says = line.partition("  |")
            found.append((typed.strip(), tuple(w.strip() for w in says.split(" ~ ") if w.strip())))
    return found
