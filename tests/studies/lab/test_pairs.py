"""Two methods compared pair by pair: intervals and tests against SciPy."""

import numpy as np
import pytest
from scipy.stats import ttest_1samp, wilcoxon

from onebasin.studies.lab.pairs import Pairs, effect_of

FREE = (1.0, 1.2, 0.9, 1.1, 1.3, 0.8, 1.05)
LOWER = (0.7, 0.9, 0.5, 0.9, 0.8, 0.55, 0.6)


def test_interval_and_test_are_those_of_scipy():
    found = Pairs(FREE, LOWER).change()
    differences = np.subtract(LOWER, FREE)
    interval = ttest_1samp(differences, 0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx(tuple(interval))
    assert found.estimate == pytest.approx(differences.mean())
    assert found.p_value == wilcoxon(differences).pvalue
    # Splits that share rows widen the interval.
    shared = Pairs(FREE, LOWER).change(overlap=0.25)
    factor = np.sqrt((1 / 7 + 0.25) / (1 / 7))
    assert shared.high - shared.low == pytest.approx(factor * (found.high - found.low))
    assert shared.p_value == found.p_value
    # A ratio is that of mean logarithms.
    found, logs = Pairs(FREE, LOWER).change("ratio"), np.log(np.divide(LOWER, FREE))
    assert found.estimate == pytest.approx(np.exp(logs.mean()))
    interval = ttest_1samp(logs, 0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx(tuple(np.exp(interval)))
    # Against a limit, and where there is nothing to test.
    assert effect_of(FREE, 0.5).p_value == wilcoxon(np.subtract(FREE, 0.5)).pvalue
    assert Pairs((0.1,) * 5, (0.2,) * 5).change().p_value is None
    assert Pairs((0.1,) * 8, (0.1,) * 8).change().p_value is None
