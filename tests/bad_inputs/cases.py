"""Cases of bad input, with requirements on the answer, and checks of every answer.

A command answers with one line that says what is wrong, and with the exit code for this kind of error. It creates no
unrequested file and changes no existing file. A function raises an `OnebasinError`.
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
"""Content of a file: text, bytes, a file to copy, or a function that writes it."""


@dataclass(frozen=True)
class Case:
    """A command and the required answer.

    Attributes
    ----------
    words : str
        Arguments of `onebasin`, which are split as in a shell.
    names : tuple of str
        Texts that the message must contain.
    files : mapping
        Initial files of the working folder by name; ``None`` makes a folder.
    code : int
        The exit code.
    makes : tuple of str
        Files that the command may create.
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
    """Return the content of every file in a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


def check(case: Case, folder: Path, captured: Callable[[], tuple[str, str]]) -> None:
    """Run the command of a case in a folder, and check all requirements on its answer."""
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
    """Read a table with one case per line: the command, two spaces, a bar, and the texts due in the answer.

    ` ~ ` separates these texts. A line that starts with `# ` is a heading.
    """
    found = []
    for line in text.strip().splitlines():
        if line.strip() and not line.startswith("# "):
            typed, _, says = line.partition("  |")
            found.append((typed.strip(), tuple(w.strip() for w in says.split(" ~ ") if w.strip())))
    return found
