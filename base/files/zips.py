"""Archives: which of its members is meant, and what it claims of their size."""

from __future__ import annotations

import zipfile
from pathlib import Path

from .faults import FormatError


def member_of(archive: zipfile.ZipFile, path: Path, suffix: str) -> zipfile.ZipInfo:
    """Return the one member with this suffix; what macOS adds is passed over.

    Raises
    ------
    FormatError
        If there is none, or more than one.
    """
    found = [
        member
        for member in archive.infolist()
        if member.filename.endswith(suffix) and not member.filename.startswith("__MACOSX/")
    ]
    if len(found) != 1:
        what = "holds no JSON" if not found else f"holds {len(found)} JSON files, and one is needed"
        raise FormatError(path, f"{what}: give posteriordb's zipped draws, or a zipped Zarr store")
    return found[0]
