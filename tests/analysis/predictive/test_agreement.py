"""Agreement and total variation by hand, spread between its bounds."""

import numpy as np
import pytest

from onebasin.analysis.predictive.agreement import (
    agreement,
    entropy,
    mutual_information,
    single_draw_accuracy,
    total_variation,
)

P = np.array([[0.9, 0.1], [0.4, 0.6], [0.2, 0.8]])
Q = np.array([[0.6, 0.4], [0.7, 0.3], [0.2, 0.8]])


def test_two_classes_by_hand():
    assert agreement(P, Q) == pytest.approx(2 / 3)
    assert total_variation(P, Q, halved=True) == pytest.approx((0.3 + 0.3 + 0) / 3)
    assert total_variation(P, Q, halved=False) == pytest.approx((0.6 + 0.6 + 0) / 3)


def test_total_variation_is_a_distance_between_0_and_its_largest_value(rng):
    p, q, r = rng.dirichlet(np.ones(4), size=(3, 50))
    assert total_variation(p, p, halved=True) == 0
    assert total_variation(p, q, halved=True) == total_variation(q, p, halved=True)
    assert total_variation(p, r, halved=True) <= (
        total_variation(p, q, halved=True) + total_variation(q, r, halved=True)
    )
    apart = np.eye(4)[[0, 1]], np.eye(4)[[2, 3]]
    assert total_variation(*apart, halved=True) == 1
    assert total_variation(*apart, halved=False) == 2


def test_single_draw_accuracy_is_the_mean_over_draws():
    probability = np.array([[[[0.9, 0.1], [0.1, 0.9]], [[0.9, 0.1], [0.9, 0.1]]]])
    assert single_draw_accuracy(probability, np.array([0, 1])) == 0.75


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


def test_a_class_without_probability_counts_nothing():
    assert entropy(np.array([1.0, 0.0])) == 0
    assert entropy(np.full(4, 0.25)) == pytest.approx(np.log(4))


def test_undefined_values_propagate():
    broken = np.where(np.arange(3)[:, None] == 1, np.nan, P)
    assert np.isnan(agreement(P, broken))
    assert np.isnan(total_variation(P, broken, halved=True))
    assert np.isnan(single_draw_accuracy(broken[None, None], np.zeros(3, int)))


@pytest.mark.usefixtures("unchecked")
def test_unlike_shapes_are_refused():
    with pytest.raises(ValueError, match=r"`p` has shape \(3, 2\) and `q` \(2, 2\)"):
        agreement(P, Q[:2])
    with pytest.raises(ValueError, match=r"`p` has shape \(3, 2\) and `q` \(2, 2\)"):
        total_variation(P, Q[:2], halved=True)
