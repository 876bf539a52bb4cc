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

from .folders import CorruptDataError

_UNSIGNED_BYTE = 8


def read_idx(path: Path, *, num_axes: int) -> UInt8[np.ndarray, "..."]:
    """Read an IDX file of unsigned bytes.

    Parameters
    ----------
    path : Path
        The file, compressed if its name ends in `.gz`.
    num_axes : int
        The number of axes that the file must have: 1 for labels, 3 for images.

    Returns
    -------
    numpy.ndarray
        The values, of the shape that the file states.

    Raises
    ------
    CorruptDataError
        If the file is not such a file, or is shorter or longer than it states.
    """
    content = _content(path)
    expected = bytes([0, 0, _UNSIGNED_BYTE, num_axes])
    if content[:4] != expected:
        raise CorruptDataError(
            f"{path} starts with the bytes {content[:4].hex(' ') or '(none)'}; an IDX file of "
            f"unsigned bytes with {num_axes} axes starts with {expected.hex(' ')}: fetch it again"
        )
    start = 4 + 4 * num_axes
    if len(content) < start:
        raise CorruptDataError(f"{path} ends within its header: fetch it again")
    shape = tuple(int(size) for size in np.frombuffer(content[4:start], dtype=">u4"))
    if len(content) - start != math.prod(shape):
        raise CorruptDataError(
            f"{path} holds {len(content) - start} values; its header states "
            f"{' x '.join(map(str, shape))} = {math.prod(shape)}: fetch it again"
        )
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape)


def _content(path: Path) -> bytes:
    if path.suffix != ".gz":
        return path.read_bytes()
    try:
        return gzip.decompress(path.read_bytes())
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise CorruptDataError(
            f"{path} is not a whole gzip file ({error}): fetch it again"
        ) from error
