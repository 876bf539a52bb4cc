"""A data set rejects parts that do not fit together."""

import numpy as np
import pytest

from onebasin.models.data import Dataset, load_data


def regression(**changes):
    fields = {
        "name": "toy",
        "x": np.arange(6.0).reshape(3, 2),
        "y": np.arange(3.0)[:, None],
        "feature_names": ("a", "b"),
        "target_names": ("t",),
        "task": "regression",
        "source": "made up",
    }
    return Dataset(**{**fields, **changes})


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"task": "ranking"}, "`task` is 'ranking'; it must be one of"),
        ({"x": np.zeros((0, 2))}, r"`x` has shape \(0, 2\).*at least one of each"),
        ({"feature_names": ("a",)}, r"`x` has shape \(3, 2\).* the 1 `feature_names`"),
        ({"x": np.zeros((3, 2), dtype=int)}, "`x` has type int64; it must be floating point"),
        (
            {"x": np.array([[0, 1], [np.nan, 2], [3, np.inf]])},
            "`x` holds 2 values.*row 1, column 0",
        ),
        ({"y": np.zeros(3)}, r"`y` has shape \(3,\).*must be \(3, 1\)"),
        ({"y": np.zeros((2, 1))}, r"`y` has shape \(2, 1\).*3 rows"),
        ({"y": np.array([[0.0], [1.0], [np.nan]])}, "`y` holds 1 values.*row 2, column 0"),
    ],
)
def test_dataset_refuses_bad_regression_data(changes, message):
    with pytest.raises(ValueError, match=message):
        regression(**changes)


def test_take_keeps_rows_in_the_order_asked_and_drops_the_held_out_part():
    dataset = load_data("sinc")
    taken = dataset.take(np.array([5, 2]))
    np.testing.assert_array_equal(taken.x, dataset.x[[5, 2]])
    np.testing.assert_array_equal(taken.y, dataset.y[[5, 2]])
    assert dataset.held_out is not None
    assert taken.held_out is None
