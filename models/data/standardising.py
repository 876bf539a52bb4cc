"""Standardising: columns of mean 0 and standard deviation 1, measured on the training part alone.

A column that is constant in the training part (an image's corner, say) has no scale: it is centred
and divided by 1, so that it becomes 0 there and keeps its unit elsewhere. A constant target is an
error. Standard deviations divide by the number of observations. Class labels are left as they are.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from onebasin.base.errors import ArgumentError

from .dataset import Dataset
from .splitting import Split


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
        """Measure the columns of the training part; refuses standardised data and a constant target."""
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

        Refuses standardised data, and data of other columns.
        """
        _check_data_units(dataset)
        regression = dataset.task == "regression"
        if regression != (self.y_sd is not None):
            raise ArgumentError(f"`dataset` is for {dataset.task}; the fit was for the other task")
        return replace(
            dataset,
            x=self.transform_x(dataset.x),
            y=self.transform_y(dataset.y) if regression else dataset.y,
            units="standardised",
            truth=None,
            held_out=self.transform(dataset.held_out) if dataset.held_out else None,
        )

    def transform_x(self, x: Float[np.ndarray, "obs in"]) -> Float[np.ndarray, "obs in"]:
        """Standardise inputs."""
        _check_columns("x", x, self.x_mean.size)
        return (x - self.x_mean) / self.x_sd

    def transform_y(self, y: Float[np.ndarray, "*batch out"]) -> Float[np.ndarray, "*batch out"]:
        """Standardise targets."""
        y_mean, y_sd = self._targets()
        _check_columns("y", y, y_sd.size)
        return (y - y_mean) / y_sd

    def inverse_sd(self, sd: Float[np.ndarray, "*batch out"]) -> Float[np.ndarray, "*batch out"]:
        """Bring standard deviations or widths of standardised outputs back to data units."""
        _, y_sd = self._targets()
        _check_columns("sd", sd, y_sd.size)
        return sd * y_sd

    @property
    def log_scale(self) -> float:
        """Sum of log `y_sd`: take it off a log density to bring that to data units."""
        _, y_sd = self._targets()
        return math.fsum(np.log(y_sd))

    def _targets(self) -> tuple[Float[np.ndarray, " out"], Float[np.ndarray, " out"]]:
        if self.y_mean is None or self.y_sd is None:
            raise ArgumentError(
                "class labels have no scale: only regression targets are standardised"
            )
        return self.y_mean, self.y_sd


@dataclass(frozen=True, eq=False, kw_only=True)
class StandardisedSplit:
    """A split with standardised columns, and what leads back to data units."""

    train: Dataset
    test: Dataset  # `train`, `test`: The standardised parts.
    raw: Split  # The same observations in data units, with the true function of synthetic data.
    standardiser: Standardiser  # Fitted on `raw.train`.


def standardise(parts: Split) -> StandardisedSplit:
    """Standardise both parts with means and standard deviations of the training part.

    Refuses parts that are standardised already, and a target that is constant in the training part.
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


def _check_columns(name: str, values: np.ndarray, expected: int) -> None:
    if values.ndim == 0 or values.shape[-1] != expected:
        raise ArgumentError(
            f"`{name}` has shape {values.shape}; its last axis must have {expected} columns, as in "
            "the data that were fitted"
        )
