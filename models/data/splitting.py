"""Splitting a data set into a training and a test part, and standardising both by the training part.

Standardised columns have mean 0 and standard deviation 1 in the training part. A column that is constant there (an
image's corner, say) has no scale: it is centred and divided by 1, so that it becomes 0 there and keeps its unit
elsewhere. A constant target is an error. Standard deviations divide by the number of observations. Class labels are
left as they are.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from onebasin.base.checks import check_seed
from onebasin.base.errors import ArgumentError

from .dataset import Dataset


@dataclass(frozen=True, eq=False, kw_only=True)
class Split:
    """A training part and a test part of one data set."""

    train: Dataset
    test: Dataset


def split(dataset: Dataset, *, test_fraction: float = 0.2, seed: int) -> Split:
    """Split the observations at random, without regard to classes; both parts stay in the order of the data set.

    The data set's own held-out part, if any, is left out. The test part's size is rounded to the nearest whole number;
    the same seed gives the same split. Rejects a fraction that leaves one part without observations, and a negative
    seed.
    """
    if not 0 < test_fraction < 1:
        raise ArgumentError(f"`test_fraction` is {test_fraction!r}; it must lie between 0 and 1")
    check_seed(seed)
    num_test = round(dataset.num_obs * test_fraction)
    if not 0 < num_test < dataset.num_obs:
        raise ArgumentError(
            f"`test_fraction` is {test_fraction!r}, which gives {num_test} of {dataset.num_obs} "
            "observations to the test part; each part needs at least one"
        )
    order = np.random.default_rng(seed).permutation(dataset.num_obs)
    test_rows, train_rows = np.sort(order[:num_test]), np.sort(order[num_test:])
    return Split(train=dataset.take(train_rows), test=dataset.take(test_rows))


def own_split(dataset: Dataset) -> Split:
    """Take the test points that belong to the data set as the test part; rejects a data set without them."""
    if dataset.held_out is None:
        raise ArgumentError(f"`dataset` is {dataset.name!r}, which has no test points: use `split`")
    everything = np.arange(dataset.num_obs)
    return Split(train=dataset.take(everything), test=dataset.held_out)


@dataclass(frozen=True, eq=False, kw_only=True)
class Standardiser:
    """The shift and scale of every column."""

    x_mean: Float[np.ndarray, " in"]
    x_sd: Float[np.ndarray, " in"]  # `x_mean`, `x_sd`: One number per input, in data units.
    y_mean: Float[np.ndarray, " out"] | None = None
    y_sd: Float[np.ndarray, " out"] | None = None
    """`y_mean`, `y_sd`: One number per output, in data units; `None` for class labels."""

    @classmethod
    def fit(cls, train: Dataset) -> "Standardiser":
        """Measure the columns of the training part; rejects standardised data and a constant target."""
        _check_data_units(train)
        x_mean, x_sd = _measure(train.x)
        if train.task == "classification":
            return cls(x_mean=x_mean, x_sd=x_sd)
        constant = np.ptp(train.y, axis=0) == 0
        if constant.any():
            name = train.target_names[int(np.argmax(constant))]
            raise ArgumentError(
                f"`train` has the same {name!r} in all {train.num_obs} observations; a target must "
                "vary to be standardised: take more observations, or do not standardise"
            )
        y_mean, y_sd = _measure(train.y)
        return cls(x_mean=x_mean, x_sd=x_sd, y_mean=y_mean, y_sd=y_sd)

    def transform(self, dataset: Dataset) -> Dataset:
        """Standardise inputs and targets, and the held-out part in the same way; the truth, in data units, goes.

        Rejects standardised data, and data of other columns.
        """
        _check_data_units(dataset)
        if (dataset.task == "regression") != (self.y_sd is not None):
            raise ArgumentError(f"`dataset` is for {dataset.task}; the fit was for the other task")
        columns = dataset.x.shape[1], dataset.y.shape[1] if self.y_sd is not None else None
        fitted = self.x_sd.size, None if self.y_sd is None else self.y_sd.size
        if columns != fitted:
            raise ArgumentError(
                f"`dataset` has {columns} columns in x and y; the data that were fitted have {fitted}"
            )
        return replace(
            dataset,
            x=(dataset.x - self.x_mean) / self.x_sd,
            y=dataset.y if self.y_sd is None else (dataset.y - self.y_mean) / self.y_sd,
            units="standardised",
            truth=None,
            held_out=self.transform(dataset.held_out) if dataset.held_out else None,
        )

    @property
    def target_sd(self) -> Float[np.ndarray, " out"]:
        """`y_sd`, by which widths of standardised outputs are in data units; rejects class labels, which have none."""
        if self.y_sd is None:
            raise ArgumentError(
                "class labels have no scale: only regression targets are standardised"
            )
        return self.y_sd

    @property
    def log_scale(self) -> float:
        """Sum of log `y_sd`: take it off a log density to bring that to data units."""
        return math.fsum(np.log(self.target_sd))


@dataclass(frozen=True, eq=False, kw_only=True)
class StandardisedSplit:
    """A split with standardised columns, and what leads back to data units."""

    train: Dataset
    test: Dataset  # `train`, `test`: The standardised parts.
    raw: Split  # The same observations in data units, with the true function of synthetic data.
    standardiser: Standardiser  # Fitted on `raw.train`.


def standardise(parts: Split) -> StandardisedSplit:
    """Standardise both parts with means and standard deviations of the training part.

    Rejects parts that are standardised already, and a target that is constant in the training part.
    """
    standardiser = Standardiser.fit(parts.train)
    return StandardisedSplit(
        train=standardiser.transform(parts.train),
        test=standardiser.transform(parts.test),
        raw=parts,
        standardiser=standardiser,
    )


def _measure(
    values: Float[np.ndarray, "obs column"],
) -> tuple[Float[np.ndarray, " column"], Float[np.ndarray, " column"]]:
    # Of a constant column, rounding can leave a standard deviation of 1e-17, and the mean next
    # to the value: both are set by hand, or noise of rounding would be blown up to size 1.
    constant = np.ptp(values, axis=0) == 0
    mean = np.where(constant, values[0], values.mean(axis=0))
    return mean, np.where(constant, 1, values.std(axis=0))


def _check_data_units(dataset: Dataset) -> None:
    if dataset.units != "data":
        raise ArgumentError(f"`{dataset.name}` is standardised already: give it in data units")
