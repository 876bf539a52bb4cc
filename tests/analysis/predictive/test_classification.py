"""Agreement and total variation by hand, spread between its bounds; averages over draws."""

import math

import numpy as np
import pytest

from onebasin.analysis.predictive import scores as classification
from onebasin.analysis.predictive.scores import (
    agreement,
    brier_score,
    calibration_error,
    class_log_probability,
    class_probability_by_draw,
    entropy,
    mutual_information,
    single_draw_accuracy,
    total_variation,
)

P = np.array([[0.9, 0.1], [0.4, 0.6], [0.2, 0.8]])
Q = np.array([[0.6, 0.4], [0.7, 0.3], [0.2, 0.8]])


def test_mutual_information_lies_between_0_and_the_entropy_of_the_mean(rng):
    probability = rng.dirichlet(np.full(5, 0.3), size=(2, 40, 30))
    found = mutual_information(probability)
    assert found.shape == (30,)
    assert (found > 0).all()
    assert (found <= entropy(probability.mean(axis=(0, 1)))).all()
    same = np.repeat(probability[:, :1], 7, axis=1)[:1]
    np.testing.assert_allclose(mutual_information(same), 0, atol=1e-15)
    sure = np.eye(3)[None, :, None]  # three draws, each sure of another class
    np.testing.assert_allclose(mutual_information(sure), np.log(3))


def test_single_draws_are_scored_and_their_disagreement():
    # Two draws sure of different classes, at two points of class 0: each alone is right half of the time,
    # their mean knows nothing, and which draw is right decides the class.
    logits = np.asarray([[[[800.0, 0.0], [0.0, 800.0]]], [[[0.0, 800.0], [800.0, 0.0]]]])
    labels = np.asarray([0, 0])
    by_draw, averaged = class_probability_by_draw(logits), np.exp(class_log_probability(logits))
    assert single_draw_accuracy(by_draw, labels) == 0.5
    assert mutual_information(by_draw).mean() == pytest.approx(math.log(2), rel=1e-12)
    assert brier_score(averaged, labels) == pytest.approx(0.5, rel=1e-12)
    # 0.5 sure, and right by ties
    assert calibration_error(averaged, labels) == pytest.approx(0.5, rel=1e-12)
    alike = np.broadcast_to(logits[:1], (2, 1, 2, 2))
    by_draw, averaged = class_probability_by_draw(alike), np.exp(class_log_probability(alike))
    assert mutual_information(by_draw).mean() == pytest.approx(0.0, abs=1e-12)
    assert single_draw_accuracy(by_draw, labels) == 0.5
    assert brier_score(averaged, labels) == 1.0


def test_every_score_is_nan_where_a_draw_is():
    logits, labels = np.asarray([[[[0.0, np.nan]], [[1.0, 0.0]]]]), np.asarray([0])
    by_draw, averaged = class_probability_by_draw(logits), np.exp(class_log_probability(logits))
    scores = (class_log_probability(logits)[0, 0], single_draw_accuracy(by_draw, labels))
    scores += (mutual_information(by_draw).mean(),)
    scores += (calibration_error(averaged, labels), brier_score(averaged, labels))
    scores += (agreement(P, P * np.nan), total_variation(P, P * np.nan, halved=True))
    assert np.isnan(scores).all()


def test_two_bins_by_hand(monkeypatch):
    monkeypatch.setattr(classification, "BINS", 3)
    probability = np.array([[0.6, 0.4], [0.6, 0.4], [0.9, 0.1], [0.05, 0.95]])
    labels = np.array([0, 1, 0, 1])
    # Bins of width 1/3 from 1/3: 0.6 and 0.6 (one of two right), then 0.9 and 0.95 (both).
    expected = (abs(1 - 1.2) + abs(2 - 1.85)) / 4
    assert calibration_error(probability, labels) == pytest.approx(expected)
