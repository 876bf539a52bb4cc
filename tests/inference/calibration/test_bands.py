"""Bands around ECDFs of uniform numbers keep their level, and see what they say that they see."""

import numpy as np
import pytest
from scipy.special import ndtr

from onebasin.inference.calibration import result as bands

RUNS = 2000


def leave(numbers: np.ndarray, alpha: float) -> np.ndarray:
    """Which runs of numbers (run, number) leave the band of a level."""
    count = numbers.shape[1]
    band = bands.band(count, alpha)
    ecdf = np.stack([bands.counts_below(one) for one in numbers]) / count
    return ((ecdf < band.lower) | (ecdf > band.upper)).any(axis=1)


@pytest.mark.parametrize(("count", "alpha"), [(50, 0.05), (200, 0.05), (200, 0.01), (301, 0.1)])
def test_uniform_numbers_leave_the_band_as_often_as_stated(count, alpha):
    left = leave(np.random.default_rng(count).uniform(size=(RUNS, count)), alpha).mean()
    error = np.sqrt(alpha * (1 - alpha) / RUNS)
    assert alpha - 5 * error - 0.15 * alpha < left < alpha + 5 * error  # levels are steps


def test_the_p_value_and_the_band_say_the_same():
    rng = np.random.default_rng(2)
    band = bands.band(80, 0.05)
    for shape in np.repeat([1.0, 1.3], 50):
        numbers = rng.beta(shape, 1, size=80)
        ecdf = bands.counts_below(numbers) / 80
        outside = bool(np.any((ecdf < band.lower) | (ecdf > band.upper)))
        assert outside == (bands.p_value(numbers) <= 0.05)


@pytest.mark.parametrize("side", [1, -1, 0])
def test_an_sd_or_a_shift_that_is_said_to_be_seen_is_seen_9_times_in_10(side):
    factor, shift = bands.seen_ratio(200, 0.01), bands.seen_shift(200, 0.01)
    z = np.random.default_rng(5).normal(size=(RUNS, 200))
    seen = leave(ndtr(factor**side * z if side else shift + z), 0.01).mean()
    error = 5 * np.sqrt(0.09 / RUNS)
    assert 1 < factor < 1.6
    assert seen > 0.9 - error and (side or seen < 0.9 + error)
