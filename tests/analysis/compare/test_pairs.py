"""Two methods compared pair by pair."""

import math

import numpy as np
import pytest
from scipy import stats

from onebasin.truth.pairs import Pairs


def pair(differences) -> Pairs:
    return Pairs(list(differences), [0.0] * len(differences))


def test_pairs_are_summarised_by_students_interval():
    found = pair(np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
    assert (found.mean, found.wins, found.num) == (3.0, 5, 5)
    assert found.error == pytest.approx(math.sqrt(2.5 / 5))
    assert found.interval[1] - 3.0 == pytest.approx(
        2.776445 * found.error, rel=1e-6
    )  # t, 4 degrees
    assert found.above is True
    assert found.write() == "+3.00 ± 0.71, 5 of 5 seeds"
    assert pair(-np.arange(1.0, 6.0)).above is False
    assert pair(np.array([-1.0, 1.0, 0.5])).above is None
    assert pair(np.array([0.3])).above is None


def test_pairs_are_tested_as_scipy_does(rng):
    first = rng.normal(1.0, 0.1, size=10)
    pairs = Pairs(first.tolist(), (first - 0.05 + rng.normal(0, 0.01, size=10)).tolist())
    difference = first - pairs.second
    low, high = stats.ttest_1samp(difference, 0).confidence_interval(0.95)
    assert pairs.interval == pytest.approx((low, high))
    assert pairs.mean == pytest.approx(difference.mean())
    assert pairs.error == pytest.approx(stats.sem(difference))
    assert pairs.means == pytest.approx((first.mean(), np.mean(pairs.second)))
    assert pairs.p_value == stats.wilcoxon(pairs.first, pairs.second).pvalue
    assert pairs.above is True
    assert Pairs(pairs.second, pairs.first).above is False


def test_pairs_say_what_is_open():
    small = pair(np.array([0.01, -0.01, 0.02, -0.02, 0.0]))
    assert (small.gains(0.1), small.gains(0.01)) == (False, None)
    assert pair(np.array([0.01, 0.011, 0.012])).gains(0.1) is True
    wide = Pairs((1.0, -1.0, 0.5), (0.0, 0.0, 0.0))
    assert wide.above is None
    assert wide.gains(10.0) is False
    assert wide.gains(0.1) is None
    single = Pairs((1.0,), (0.0,))
    assert np.isnan(single.error)
    assert single.above is None
    assert single.write() == "+1.00, 1 of 1 seeds"
    with pytest.raises(ValueError, match="`first` has 1 values and `second` 2"):
        Pairs((1.0,), (1.0, 2.0))


def test_pairs_have_no_test_where_there_is_nothing_to_test():
    assert Pairs((0.1,) * 5, (0.2,) * 5).p_value is None
    assert Pairs((0.1,) * 8, (0.1,) * 8).p_value is None
