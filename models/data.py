"""Data sets, splits by seed, and standardisation by the training part.

>>> from onebasin.models.data import split, standardise
>>> from onebasin.models.load_data import load_data
>>> parts = standardise(split(load_data("boston"), seed=1))
>>> parts.train.x.shape, parts.test.x.shape
((405, 13), (101, 13))
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Float, Int

from onebasin.base.card import Card, FactList, Shown, Words, in_brief
from onebasin.base.checks import check_inputs, check_labels, check_outputs, check_seed, choose
from onebasin.base.errors import ArgumentError

Task = Literal["regression", "classification"]
Units = Literal["data", "standardised"]


@dataclass(frozen=True)
class Truth:
    """The true function of synthetic data, without noise and in data units."""

    function: Callable[[np.ndarray], np.ndarray]  # From inputs (obs, in) to outputs (obs, out).
    noise_sd: float  # Standard deviation of the noise added to each output.

    def __call__(self, x: Float[np.ndarray, "obs in"]) -> Float[np.ndarray, "obs out"]:
        """Return the noise-free outputs at `x`."""
        return self.function(x)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Dataset(Shown):
    """Inputs and targets with their names; the arrays are read-only.

    Parameters
    ----------
    name : str
        Its name in `load_data`.
    x : array (obs, in)
        Inputs, one row per observation, floating point and finite.
    y : array (obs, out) or (obs,)
        For a regression, floating-point targets with one column per output; for a classification, integer labels from
        0.
    feature_names, target_names : tuple of str
        One name per column of `x`; one per column of `y`, or per class.
    task : {"regression", "classification"}
        Kind of the targets.
    source : str
        Source of the numbers, as a sentence, with units if they are known.
    units : {"data", "standardised"}
        Whether columns have been standardised.
    truth : Truth, optional
        The generating function of synthetic data, in data units.
    held_out : Dataset, optional
        Test points that belong to the data set.

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
        choose("task", self.task, get_args(Task))
        x = check_inputs(self.x, len(self.feature_names))
        check = check_outputs if self.task == "regression" else check_labels
        for name, values in (("x", x), ("y", check(self.y, len(x), self.out_dim))):
            values.flags.writeable = False
            object.__setattr__(self, name, values)

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
        """Return some observations, in the given order and without the held-out part.

        Parameters
        ----------
        rows : array (rows,)
            Indices of the observations, from 0.

        Returns
        -------
        Dataset
            The observations of these rows.
        """
        return replace(self, x=self.x[rows], y=self.y[rows], held_out=None)


@dataclass(frozen=True, eq=False, kw_only=True)
class Split:
    """A training part and a test part of one data set."""

    train: Dataset
    test: Dataset


def split(dataset: Dataset, *, test_fraction: float = 0.2, seed: int) -> Split:
    """Split the observations at random, without regard to classes; both parts keep the order of the data set.

    The held-out part of the data set is left out. The size of the test part is rounded to the nearest whole number.
    Raise ValueError if the fraction leaves a part without observations.
    """
    check_seed(seed)
    num_test = round(dataset.num_obs * test_fraction)
    if not 0 < num_test < dataset.num_obs:
        raise ArgumentError(
            f"`test_fraction` is {test_fraction!r}, which puts {num_test} of {dataset.num_obs} observations into the "
            "test part. Choose a fraction that leaves at least one observation in each part."
        )
    order = np.random.default_rng(seed).permutation(dataset.num_obs)
    test_rows, train_rows = np.sort(order[:num_test]), np.sort(order[num_test:])
    return Split(train=dataset.take(train_rows), test=dataset.take(test_rows))


def own_split(dataset: Dataset) -> Split:
    """Use the test points that belong to the data set as the test part; raise ValueError if it has none."""
    if dataset.held_out is None:
        raise ArgumentError(
            f"`dataset` is {dataset.name!r}, which has no test points. Use `split` to hold out observations."
        )
    return Split(train=replace(dataset, held_out=None), test=dataset.held_out)


@dataclass(frozen=True, eq=False, kw_only=True)
class Standardiser:
    """Mean and standard deviation of every column of the training part, in data units.

    A constant input has scale 1, so that it becomes 0 in the training part and keeps its unit elsewhere. Class labels
    have no scale: `y_mean` is 0 and `y_sd` is 1.
    """

    x_mean: Float[np.ndarray, " in"]
    x_sd: Float[np.ndarray, " in"]
    y_mean: Any  # (out,).
    y_sd: Any  # (out,).
    task: Task

    @classmethod
    def fit(cls, train: Dataset) -> "Standardiser":
        """Measure the columns; raise ValueError for standardised data and for a constant target."""
        _check_data_units(train)
        x_mean, x_sd = _measure(train.x)
        if train.task == "classification":
            return cls(x_mean=x_mean, x_sd=x_sd, y_mean=0, y_sd=1, task=train.task)
        constant = np.ptp(train.y, axis=0) == 0
        if constant.any():
            name = train.target_names[int(np.argmax(constant))]
            raise ArgumentError(
                f"The output {name!r} of `train` has the same value in all {train.num_obs} observations, so it "
                "cannot be standardised. Use more observations, or do not standardise the data."
            )
        y_mean, y_sd = _measure(train.y)
        return cls(x_mean=x_mean, x_sd=x_sd, y_mean=y_mean, y_sd=y_sd, task=train.task)

    def transform(self, dataset: Dataset) -> Dataset:
        """Standardise inputs, targets and the held-out part, and drop the truth, which is in data units.

        Raise ValueError for standardised data, and for data with other columns.
        """
        _check_data_units(dataset)
        outputs = np.size(self.y_sd) if self.task == "regression" else dataset.out_dim
        fitted = self.task, self.x_sd.size, outputs
        if (found := (dataset.task, dataset.in_dim, dataset.out_dim)) != fitted:
            raise ArgumentError(
                f"`dataset` does not match the standardiser, which was fitted to data for {fitted[0]}, with "
                f"{fitted[1]} input(s) and {fitted[2]} output(s). In contrast, `dataset` is for {found[0]}, with "
                f"{found[1]} input(s) and {found[2]} output(s). Fit a new standardiser."
            )
        regression = self.task == "regression"
        return replace(
            dataset,
            x=(dataset.x - self.x_mean) / self.x_sd,
            y=(dataset.y - self.y_mean) / self.y_sd if regression else dataset.y,
            units="standardised",
            truth=None,
            held_out=self.transform(dataset.held_out) if dataset.held_out else None,
        )

    @property
    def log_scale(self) -> float:
        """Sum of log `y_sd`: subtract it from a log density to convert it to data units."""
        return math.fsum(np.log(self.y_sd))


@dataclass(frozen=True, eq=False, kw_only=True)
class StandardisedSplit(Split):
    """A split with standardised columns, the `raw` one in data units, and the standardiser fitted on its `train`."""

    raw: Split
    standardiser: Standardiser


def standardise(parts: Split) -> StandardisedSplit:
    """Standardise both parts with means and standard deviations of the training part.

    Raise ValueError if the parts are standardised already, or a target is constant in the training part.
    """
    standardiser = Standardiser.fit(parts.train)
    return StandardisedSplit(
        train=standardiser.transform(parts.train),
        test=standardiser.transform(parts.test),
        raw=parts,
        standardiser=standardiser,
    )


def _measure(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    # Rounding can leave a constant column with a standard deviation of 1e-17, which would scale noise up to 1.
    constant = np.ptp(values, axis=0) == 0
    mean = np.where(constant, values[0], values.mean(axis=0))
    return mean, np.where(constant, 1, values.std(axis=0))


def _check_data_units(dataset: Dataset) -> None:
    if dataset.units != "data":
        raise ArgumentError(
            f"`dataset` is already standardised. Give the data set {dataset.name} in its original units."
        )
