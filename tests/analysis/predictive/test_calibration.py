"""Calibration error and Brier score: cases by hand, calibrated forecasters."""

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss

from onebasin.analysis.predictive import classification
from onebasin.analysis.predictive.classification import brier_score, calibration_error


def test_two_bins_by_hand(monkeypatch):
    monkeypatch.setattr(classification, "BINS", 3)
    probability = np.array([[0.6, 0.4], [0.6, 0.4], [0.9, 0.1], [0.05, 0.95]])
    labels = np.array([0, 1, 0, 0])
    # Bins of width 1/3 from 1/3: 0.6 and 0.6 (one of two right), then 0.9 and 0.95 (one of two).
    expected = (abs(1 - 1.2) + abs(1 - 1.85)) / 4
    assert calibration_error(probability, labels) == pytest.approx(expected)


def test_a_calibrated_forecaster_has_a_small_error_and_an_overconfident_one_a_large_one(rng):
    probability = rng.dirichlet(np.ones(3), size=40_000)
    labels = (rng.uniform(size=(40_000, 1)) > probability.cumsum(axis=1)).sum(axis=1)
    assert calibration_error(probability, labels) < 0.015
    sharp = probability**3 / (probability**3).sum(axis=1, keepdims=True)
    confidence, accuracy = sharp.max(1).mean(), (sharp.argmax(1) == labels).mean()
    found = calibration_error(sharp, labels)
    assert found == pytest.approx(confidence - accuracy, abs=0.01)


def test_brier_score_of_two_classes_is_twice_scikit_learns(rng):
    probability = rng.dirichlet(np.ones(2), size=100)
    labels = rng.integers(2, size=100)
    expected = 2 * brier_score_loss(labels, probability[:, 1])
    assert brier_score(probability, labels) == pytest.approx(expected, rel=1e-12)
