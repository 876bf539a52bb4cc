"""Calibration error and Brier score: cases by hand, calibrated forecasters, bad input."""

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss

from onebasin.analysis.predictive.classification import brier_score, calibration_error

from ...each import each


def test_two_bins_by_hand():
    probability = np.array([[0.6, 0.4], [0.6, 0.4], [0.9, 0.1], [0.05, 0.95]])
    labels = np.array([0, 1, 0, 0])
    # Bins of width 1/3 from 1/3: 0.6 and 0.6 (one of two right), then 0.9 and 0.95 (one of two).
    expected = (abs(1 - 1.2) + abs(1 - 1.85)) / 4
    assert calibration_error(probability, labels, num_bins=3) == pytest.approx(expected)
    assert calibration_error(probability, labels, num_bins=2, bins="equal-mass") == pytest.approx(
        expected
    )
    one_bin = abs(2 - (1.2 + 1.85)) / 4
    assert calibration_error(probability, labels, num_bins=1) == pytest.approx(one_bin)


@each("bins", ["equal-width", "equal-mass"])
def test_a_calibrated_forecaster_has_a_small_error_and_an_overconfident_one_a_large_one(bins, rng):
    probability = rng.dirichlet(np.ones(3), size=40_000)
    labels = (rng.uniform(size=(40_000, 1)) > probability.cumsum(axis=1)).sum(axis=1)
    assert calibration_error(probability, labels, bins=bins) < 0.015
    sharp = probability**3 / (probability**3).sum(axis=1, keepdims=True)
    confidence, accuracy = sharp.max(1).mean(), (sharp.argmax(1) == labels).mean()
    found = calibration_error(sharp, labels, bins=bins)
    assert found == pytest.approx(confidence - accuracy, abs=0.01)


def test_brier_score_of_two_classes_is_twice_scikit_learns(rng):
    probability = rng.dirichlet(np.ones(2), size=100)
    labels = rng.integers(2, size=100)
    expected = 2 * brier_score_loss(labels, probability[:, 1])
    assert brier_score(probability, labels) == pytest.approx(expected, rel=1e-12)


@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_refused():
    probability, labels = np.full((3, 2), 0.5), np.array([0, 1, 1])
    with pytest.raises(ValueError, match="`labels` run from 0 to 2"):
        calibration_error(probability, np.array([0, 1, 2]))
    with pytest.raises(ValueError, match=r"`labels` has shape \(2,\) .* \(3, 2\)"):
        brier_score(probability, labels[:2])
    with pytest.raises(ValueError, match="`num_bins` must be a whole number, at least 1; got 0"):
        calibration_error(probability, labels, num_bins=0)
    with pytest.raises(ValueError, match="`bins`"):
        calibration_error(probability, labels, bins="quantile")
