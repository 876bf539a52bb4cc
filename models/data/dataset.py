"""Data sets: inputs, targets, and where they come from.

Arrays are rows of observations, inputs `x (obs, in)`; targets are `y (obs, out)` for regression and
integer labels `y (obs)` for classification. Arrays of a data set are read-only.
"""

from dataclasses import dataclass, replace
from typing import Literal, Protocol, get_args, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

from onebasin.base.card import Card, FactList, Shown, Words, in_brief
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
        """Give the noise-free outputs at `x`."""
        ...


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Dataset(Shown):
    """Inputs and targets with their names.

    Parameters
    ----------
    name : str
        The name under which `load_data` knows it.
    x : array (obs, in)
        Inputs, one row an observation, floating point and finite.
    y : array (obs, out) or (obs,)
        Regression: floating-point targets, one column an output. Classification: labels, integers
        from 0 to the number of classes less one.
    feature_names : tuple of str
        One name per column of `x`.
    target_names : tuple of str
        Regression: one name per column of `y`. Classification: one name per class.
    task : {"regression", "classification"}
        What the targets are.
    source : str
        Where the numbers come from, in a sentence, with units where they are known.
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
