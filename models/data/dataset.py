"""Data sets: inputs, targets and where they come from; their training and test parts, standardised by the first.

Arrays are rows of observations, inputs `x (obs, in)`; targets are `y (obs, out)` for regression and
integer labels `y (obs)` for classification. Arrays of a data set are read-only.

Standardised columns have mean 0 and standard deviation 1 in the training part. A column that is constant there (an
image's corner, say) has no scale: it is centred and divided by 1, so that it becomes 0 there and keeps its unit
elsewhere. A constant target is an error. Standard deviations divide by the number of observations. Class labels are
left as they are.
"""

import math
from dataclasses import dataclass, replace
from typing import Literal, Protocol, get_args, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

from onebasin.base.card import Card, FactList, Shown, Words, in_brief
from onebasin.base.checks import check_seed
from onebasin.base.errors import ArgumentError

Task = Literal["regression", "classification"]
Units = Literal["data", "standardised"]


@runtime_checkable
class Truth(Protocol):
    """The function behind synthetic data: calling it gives the noise-free outputs in data units."""

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the noise that was added to each output."""
        ...

    def __call__(self, x: Float[np.ndarray, "obs in"]) -> Float[np.ndarray, "obs out"]:
        """Return the noise-free outputs at `x`."""
        ...


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Dataset(Shown):
    """Inputs and targets with their names.

    Parameters
    ----------
    name : str
        The name under which `load_data` knows it.
    x : array (obs, in)
        Inputs, one row per observation, floating point and finite.
    y : array (obs, out) or (obs,)
        Regression: floating-point targets, one column per output. Classification: labels, integers
        from 0 to the number of classes less one.
    feature_names : tuple of str
        One name per column of `x`.
    target_names : tuple of str
        Regression: one name per column of `y`. Classification: one name per class.
    task : {"regression", "classification"}
        What the targets are.
    source : str
        Where the numbers come from, as a sentence, with units where they are known.
    units : {"data", "standardised"}
        Whether the columns have been standardised.
    truth : Truth, optional
        The generating function; synthetic data in data units only.
    held_out : Dataset, optional
        Test points that belong to the data set: fresh draws of a generator, MNIST's own test
        images.

    Raises
    ------
    ValueError
        If shapes, names and labels do not fit together, or a number is not finite.
    """

    name: str
    x: Float[np.ndarray, "obs in"]
    y: Float[np.ndarray, "obs out"] | Int[np.ndarray, " obs"]
    feature_names: tuple[str, ...]
    target_names: tuple[str, ...]
    task: Task
    source: str
    units: Units = "data"
    truth: Truth | None = None
    held_out: "Dataset | None" = None

    def __post_init__(self) -> None:
        """Check that the parts fit together, and make the arrays read-only."""
        if self.task not in get_args(Task):
            raise ArgumentError(f"`task` is {self.task!r}; it must be one of {get_args(Task)}")
        if self.x.ndim != 2 or not self.x.size or self.x.shape[1] != len(self.feature_names):
            raise ArgumentError(
                f"`x` has shape {self.x.shape}; it must be (obs, in), with at least one of each and a column for each "
                f"of the {len(self.feature_names)} `feature_names`"
            )
        _check_finite("x", self.x)
        classes, wanted = len(self.target_names), (self.num_obs, len(self.target_names))
        if self.task == "regression":
            if self.y.shape != wanted:
                raise ArgumentError(
                    f"`y` has shape {self.y.shape}; with {self.num_obs} rows of `x` and {classes} `target_names` it "
                    f"must be {wanted} (regression)"
                )
            _check_finite("y", self.y)
        elif self.y.shape != wanted[:1] or not np.issubdtype(self.y.dtype, np.integer):
            raise ArgumentError(
                f"`y` has shape {self.y.shape} and type {self.y.dtype}; with {self.num_obs} rows of `x` it must be "
                f"integer labels of shape {wanted[:1]} (classification)"
            )
        elif (low := int(self.y.min())) < 0 or self.y.max() >= classes:
            raise ArgumentError(
                f"`y` has labels from {low} to {int(self.y.max())}; with {classes} `target_names` they must lie in 0 "
                f"to {classes - 1}"
            )
        for field in ("x", "y"):
            view = getattr(self, field).view()
            view.flags.writeable = False
            object.__setattr__(self, field, view)

    @property
    def num_obs(self) -> int:
        """Number of observations."""
        return self.x.shape[0]

    @property
    def in_dim(self) -> int:
        """Number of input columns."""
        return self.x.shape[1]

    @property
    def out_dim(self) -> int:
        """Columns of `y` in regression, classes in classification."""
        return len(self.target_names)

    def _card(self) -> Card:
        given = "in units of the data" if self.units == "data" else "standardised"
        lead = f"{self.num_obs:,} observations for {self.task}, {given}: `.x` and `.y` go into a model's `condition`."
        kept = self.held_out
        facts = FactList.of(
            ("inputs", f"{self.in_dim:,}: {in_brief(self.feature_names)}"),
            ("targets", f"{self.out_dim:,}: {in_brief(self.target_names)}"),
            ("held out", f"{kept.num_obs:,} observations in `.held_out`" if kept else ""),
            ("truth", "`.truth(x)` gives the function without noise" if self.truth else ""),
            ("source", self.source),
        )
        return Card(f"Data set {self.name}", (Words(lead), facts))

    def take(self, rows: Int[np.ndarray, " rows"]) -> "Dataset":
        """Give some observations, in the order asked for, without the held-out part.

        Parameters
        ----------
        rows : integer array (rows,)
            Their numbers, from 0.

        Returns
        -------
        Dataset
            With these rows of `x` and `y`.
        """
        return replace(self, x=self.x[rows], y=self.y[rows], held_out=None)


def _check_finite(name: str, values: np.ndarray) -> None:
    if not np.issubdtype(values.dtype, np.floating):
        raise ArgumentError(f"`{name}` has type {values.dtype}; it must be floating point")
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        row, column = bad[0]
        raise ArgumentError(
            f"`{name}` holds {len(bad)} values that are not finite, the first in row {row}, "
            f"column {column} (counted from 0): remove or impute them first"
        )


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
        """Standardise inputs, targets and the held-out part; the truth, in data units, is dropped.

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
