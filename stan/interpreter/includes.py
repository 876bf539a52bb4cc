"""A program's text as one piece, with its includes in their places."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

_INCLUDE = re.compile(r"""^[ \t]*\#include[ \t]+[<"]?([^>"\s]+)[>"]?.*$""", re.MULTILINE)


def full_text(path: Path, includes: Iterable[Path]) -> str:
    """Return a program with the given includes in their places, each between two comments that name it."""
    return _expanded(path, path.parent, frozenset(p.resolve() for p in includes))


def included_files(path: Path) -> tuple[Path, ...]:
    """List the files that a program includes, each once; a line that looks like an include is taken for one."""
    found: dict[Path, None] = {}
    waiting = [path]
    while waiting:
        text = waiting.pop().read_bytes().decode("utf-8", errors="replace")
        for match in _INCLUDE.finditer(text):
            included = path.parent / match[1]
            if included not in found and included.is_file():
                found[included] = None
                waiting.append(included)
    return tuple(found)


def _expanded(path: Path, folder: Path, includes: frozenset[Path]) -> str:
    def put(found: re.Match[str]) -> str:
        included = (folder / found[1]).resolve()
        if included not in includes:  # such a line within a comment
            return found[0]
        # a file is not included within itself: the compiler has refused that
        text = _expanded(included, folder, includes - {included}).rstrip("\n")
        return f"// {found[1]} begins\n{text}\n// {found[1]} ends"

    text = path.read_bytes().decode("utf-8", errors="replace")
    return _INCLUDE.sub(put, text)


def without_foreign_lines(words: str, path: Path) -> str:
    """Give a compiler's words; on a file from outside the program's folder where the fault is, and no line of it."""
    named = re.search(r"'([^'\n]+)'", words)
    if named is None or named[1] == path.name:
        return words
    file = (path.parent / named[1]).resolve()
    if file.is_relative_to(path.parent.resolve()):
        return words
    head = " ".join(words.partition("---")[0].split()).removesuffix(":")
    return (
        f"{head}.\nNo line of that file is shown, as it lies outside the program's folder: {file}."
    )
