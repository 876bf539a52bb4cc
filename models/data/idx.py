"""Reading IDX files, the format in which MNIST is distributed.

A file is a magic number (two zero bytes, a type code, the number of axes), the size of every axis
as a big-endian 32-bit integer, and the values with the last axis fastest. Only the type of MNIST's
files, unsigned bytes (code 8), is read. A name that ends in `.gz` is decompressed.
"""

import gzip
import math
import zlib
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from onebasin.base.files.claims import ClaimError, check_claim

from .folders import CorruptDataError

_UNSIGNED_BYTE = 8
_SPARE = 2**20
"""Bytes beyond what the header states that are still counted."""


def read_idx(path: Path, *, num_axes: int) -> UInt8[np.ndarray, "..."]:
    """Read an IDX file of unsigned bytes, compressed if its name ends in `.gz`; the array has the shape that it states.

    It must have `num_axes`: 1 for labels, 3 for images. `CorruptDataError` if it is no such file, shorter or longer.
    """
    expected = bytes([0, 0, _UNSIGNED_BYTE, num_axes])
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            header = file.read(4 + 4 * num_axes)
            if header[:4] != expected:
                raise CorruptDataError(
                    f"{path} starts with the bytes {header[:4].hex(' ') or '(none)'}; an IDX file of "
                    f"unsigned bytes with {expected[3]} axes starts with {expected.hex(' ')}: fetch it again"
                )
            if len(header) < 4 + 4 * expected[3]:
                raise CorruptDataError(f"{path} ends within its header: fetch it again")
            shape = tuple(int(size) for size in np.frombuffer(header[4:], dtype=">u4"))
            check_claim(path, math.prod(shape))
            content = file.read(math.prod(shape) + _SPARE)
    except ClaimError as error:
        raise CorruptDataError(f"{path} {error}: fetch it again") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise CorruptDataError(
            f"{path} is not a whole gzip file ({error}): fetch it again"
        ) from error
    if len(content) != math.prod(shape):
        raise CorruptDataError(
            f"{path} holds {len(content)} values; its header states "
            f"{' x '.join(map(str, shape))} = {math.prod(shape)}: fetch it again"
        )
    return np.frombuffer(content, dtype=np.uint8).reshape(shape)
