"""One hash for the same data, however they were given: as lists or arrays, in any order of names, as 1 or as 1.0."""

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

_EXACT = 2.0**53  # Whole numbers up to here are the same in floating point.


def data_sha256(data: Mapping[str, Any]) -> str:
    """Hash named values; empty text where there are none.

    Equal values have the same hash, whatever holds them; names, shapes and values count, the order of names does not.
    """
    if not data:
        return ""
    digest = hashlib.sha256()
    for name in sorted(data):
        digest.update(_line(name.encode()))
        value = data[name]
        if isinstance(value, Mapping):  # a tuple of Stan's
            digest.update(b"tuple" + data_sha256({str(k): v for k, v in value.items()}).encode())
            continue
        kind, array = _canonical(np.asarray(value))
        digest.update(_line(f"{kind}{array.shape}".encode()))
        digest.update(memoryview(np.ascontiguousarray(array)).cast("B") if array.size else b"")
    return digest.hexdigest()


def _line(content: bytes) -> bytes:
    """Bytes that cannot run into what follows."""
    return len(content).to_bytes(8, "little") + content


def _canonical(array: np.ndarray) -> tuple[str, np.ndarray]:
    """The values in one type: whole numbers of 64 bits, else double precision; what are no numbers as text."""
    if array.dtype.kind in "bi":
        return "whole", array.astype("<i8")
    if array.dtype.kind in "uf":
        whole = np.abs(array) < _EXACT
        if whole.all() and (array == np.rint(array)).all():
            return "whole", array.astype("<i8")
        return "real", array.astype("<f8")
    if array.dtype.kind == "c":
        return "complex", array.astype("<c16")
    return "text", np.frombuffer(repr(array.tolist()).encode(), np.uint8)
