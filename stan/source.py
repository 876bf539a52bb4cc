"""A program's text as one piece: what it includes stands in its place."""

from __future__ import annotations

import re
from pathlib import Path

from .translation import ProgramInfo

_INCLUDE = re.compile(r"""^[ \t]*\#include[ \t]+[<"]?([^>"\s]+)[>"]?.*$""", re.MULTILINE)


def full_text(path: Path, info: ProgramInfo) -> str:
    """Return a program with its includes in their places, each between two comments that name it."""
    return _expanded(path, path.parent, frozenset(p.resolve() for p in info.includes))


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
