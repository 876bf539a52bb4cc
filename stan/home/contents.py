"""What an assembled home consists of, file by file, so that a damaged one is known before it compiles anything.

The digests lie in the home's marker: of the translator, the tools, the libraries and the driver's objects. Not of the
headers, which are read again at every compilation, and of which the compiler checks the precompiled one itself.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from .directory import MARKER
from .errors import HomeBuildError

FIELD = "files"
"""Where the digests are in the marker; homes of earlier versions have none."""

_PATTERNS = ("bin/*", "lib/*", "driver/*", "build/**/*.o", "makefile")


def digests(home: Path) -> dict[str, str]:
    """Give the SHA-256 of each file that a home is run from, by its place in the home."""
    files = sorted({path for pattern in _PATTERNS for path in home.glob(pattern) if path.is_file()})
    return {path.relative_to(home).as_posix(): _digest(path) for path in files}


def check_whole(home: Path) -> None:
    """Refuse an assembled home with a file that is not what it was when it was built.

    Raises
    ------
    HomeBuildError
        If there is one; a CmdStan that is not ours says nothing of its files, and passes.
    """
    for name, digest in _recorded(home).items():
        path = home / name
        if not path.is_file() or _digest(path) != digest:
            raise HomeBuildError(
                f"The CmdStan home {home} is damaged ({name} is not what was built); build it again with "
                "`onebasin cmdstan build --force`."
            )


def _recorded(home: Path) -> dict[str, str]:
    try:
        facts: Any = json.loads((home / MARKER).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        return {MARKER: ""}
    found = facts.get(FIELD, {}) if isinstance(facts, dict) else None
    return found if isinstance(found, dict) else {MARKER: ""}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
