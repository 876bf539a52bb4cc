"""Seals: the SHA-256 of a file in the file itself, by which a damaged one is known.

A binary file ends in a trailer: the mark, then the digest of all bytes before the mark. Readers of HDF5 and zip
archives (and of executables) pass over bytes after their own end, and whoever changes or writes a file by other means
leaves no trailer. So a file without one is not ours, or older, or cut short: `UNSEALED`, which is no fault by itself.
A JSON object has a field instead, with the digest of all else that it says.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path
from typing import Any, BinaryIO

from ..jsonable import json_safe, json_text
from .writing import replacing

FIELD = "sha256"
"""The field of a JSON object that is its seal."""

_MARK = b"\x89seal\r\n\x1a"
_DIGEST_SIZE = hashlib.sha256().digest_size
_CHUNK = 1 << 20


class Seal(Enum):
    """The content of a file's seal."""

    SEALED = "sealed"
    UNSEALED = "unsealed"
    DAMAGED = "damaged"


@contextmanager
def sealing(path: Path, *, new: bool = False) -> Iterator[Path]:
    """Put a file in the place of `path` once it is written, with its seal; see `writing.replacing`."""
    with replacing(path, new=new) as part:
        yield part
        seal(part)


def seal(path: Path) -> None:
    """Append the trailer to a file that has none."""
    with path.open("r+b") as file:
        digest = _digest(file, path.stat().st_size)
        file.seek(0, os.SEEK_END)
        file.write(_MARK + digest)


def examine(path: Path) -> Seal:
    """Compare a file with its trailer, a chunk at a time."""
    with path.open("rb") as file:
        end = os.fstat(file.fileno()).st_size - len(_MARK) - _DIGEST_SIZE
        if end < 0:
            return Seal.UNSEALED
        file.seek(end)
        trailer = file.read()
        if not trailer.startswith(_MARK):
            return Seal.UNSEALED
        file.seek(0)
        return Seal.SEALED if _MARK + _digest(file, end) == trailer else Seal.DAMAGED


def seal_json(value: Mapping[str, Any]) -> dict[str, Any]:
    """Give what JSON can say of an object its seal, as the last field."""
    content = {name: entry for name, entry in value.items() if name != FIELD}
    text = json.dumps(content, sort_keys=True)
    return {**content, FIELD: hashlib.sha256(text.encode()).hexdigest()}


def examine_json(value: Any) -> Seal:
    """Hold an object that was read from JSON against its seal."""
    if not isinstance(value, Mapping) or FIELD not in value:
        return Seal.UNSEALED
    return Seal.SEALED if seal_json(value)[FIELD] == value[FIELD] else Seal.DAMAGED


def write_sealed(path: Path, value: Mapping[str, Any]) -> None:
    """Write an object as JSON, with its seal; numbers that are not finite become null."""
    with replacing(path) as part:
        part.write_text(f"{json_text(seal_json(json_safe(value)))}\n", encoding="utf-8")


def read_json(path: Path) -> dict[str, Any]:
    """Read an object; a damaged or missing file says nothing."""
    with suppress(OSError, ValueError):
        value = json.loads(path.read_text(encoding="utf-8"))
        return value if isinstance(value, dict) else {}
    return {}


def _digest(file: BinaryIO, end: int) -> bytes:
    """SHA-256 of a file's bytes before `end`."""
    digest = hashlib.sha256()
    while left := end - file.tell():
        chunk = file.read(min(_CHUNK, left))
        if not chunk:  # cut short while it was read
            break
        digest.update(chunk)
    return digest.digest()
