"""Splitting a data set into a training and a test part."""

from dataclasses import dataclass

import numpy as np

from onebasin.base.checks import check_seed
from onebasin.base.errors import ArgumentError

from .dataset import Dataset


@dataclass(frozen=True, eq=False, kw_only=True)
class Split:
    """A training part and a test part with the same columns; refuses parts whose columns differ."""

    train: Dataset
    test: Dataset  # `train`, `test`: The parts.

    def __post_init__(self) -> None:
        """Check that the parts belong together."""
        for field in ("feature_names", "target_names", "task", "units"):
            train, test = getattr(self.train, field), getattr(self.test, field)
            if train != test:
                raise ArgumentError(
                    f"`train` and `test` differ in `{field}`: {train!r} and {test!r}; "
                    "both must come from the same data set"
                )


def split(dataset: Dataset, *, test_fraction: float = 0.2, seed: int) -> Split:
    """Split the observations at random, without regard to classes; both parts stay in the order of the data set.

    The data set's own held-out part, if any, is left out. The test part's size is rounded to the nearest whole number;
    the same seed gives the same split. Refuses a fraction that leaves one part without observations, and a negative
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
    """Take the test points that belong to the data set as the test part; refuses a data set without them."""
    if dataset.held_out is None:
        raise ArgumentError(f"`dataset` is {dataset.name!r}, which has no test points: use `split`")
    everything = np.arange(dataset.num_obs)
    return Split(train=dataset.take(everything), test=dataset.held_out)
