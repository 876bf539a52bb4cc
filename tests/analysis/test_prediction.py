"""Predictive scores against closed forms."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from analysis import prediction
from analysis.prediction import score_classes, score_predictions


@pytest.fixture
def gaussian(rng):
    """Predictions N(0, 1) for 2000 points of N(0, 2^2): half as wide as they should be."""
    return rng.normal(size=(2, 1000, 2000, 1)), 2.0 * rng.normal(size=(2000, 1))


@pytest.mark.parametrize("probability", [0.5, 0.95])
def test_interval_coverage_of_gaussians_is_the_analytic_one(gaussian, probability):
    draws, y = gaussian
    half_width = norm.ppf(0.5 + probability / 2)
    inside = norm.cdf(half_width / 2) - norm.cdf(-half_width / 2)
    error = math.sqrt(inside * (1 - inside) / len(y))
    covered = prediction.interval_coverage(draws, y, probability=probability)
    assert abs(covered - inside) < 5 * error
    width = prediction.interval_width(draws, probability=probability)
    assert width == pytest.approx(2 * half_width, rel=0.01)


def test_interval_coverage_is_of_both_tails(rng):
    draws = rng.normal(size=(1, 4000, 3, 1))
    inside, below, above = 0.0, -3.0, 3.0
    y = np.asarray([[inside], [below], [above]])
    assert prediction.interval_coverage(draws, y, probability=0.95) == pytest.approx(1 / 3)


@pytest.mark.parametrize("probability", [0.0, 1.0, 95.0, -0.5])
def test_interval_coverage_refuses_what_is_no_probability(rng, probability):
    with pytest.raises(ValueError, match=r"`probability` is .* between 0 and 1"):
        prediction.interval_width(rng.normal(size=(1, 5, 2, 1)), probability=probability)


def test_errors_are_those_of_the_mean_over_chains_and_draws():
    draws = np.asarray([[[[1.0], [0.0]], [[3.0], [0.0]]], [[[5.0], [0.0]], [[3.0], [0.0]]]])
    y = np.asarray([[1.0], [4.0]])  # means 3 and 0
    assert prediction.mse(draws, y) == pytest.approx((4 + 16) / 2)
    assert prediction.rmse(draws, y) == pytest.approx(math.sqrt(10))


def test_log_score_does_not_underflow():
    # exp(-1000) is 0 in float64: exp, mean, log would give minus infinity.
    likelihood = np.full((2, 3, 4), -1000.0)
    assert prediction.log_score(likelihood) == pytest.approx(-1000.0, abs=1e-9)


def test_log_score_averages_inside_the_logarithm_and_outside_over_points():
    likelihood = np.log(np.asarray([[[0.2, 0.9]], [[0.4, 0.1]]]))
    expected = (math.log(0.3) + math.log(0.5)) / 2
    assert prediction.log_score(likelihood) == pytest.approx(expected, rel=1e-12)


def test_log_score_of_a_conjugate_gaussian_is_the_analytic_one(rng):
    # mu ~ N(0, 1), y = 0.5 with unit noise: the predictive density is N(0.5; 0, 2).
    mu = rng.normal(size=(4, 25_000, 1))
    values = norm.logpdf(0.5, loc=mu)
    density = np.exp(values)
    error = density.std() / math.sqrt(density.size) / density.mean()
    known = norm.logpdf(0.5, scale=math.sqrt(2))
    assert abs(prediction.log_score(values) - known) < 5 * error


def test_nan_propagates_through_every_score(rng):
    draws, y = rng.normal(size=(1, 50, 3, 1)), rng.normal(size=(3, 1))
    likelihood = rng.normal(size=(1, 50, 3))
    draws[0, 4, 1, 0] = likelihood[0, 4, 1] = np.nan
    scores = score_predictions(draws, y, log_likelihood=likelihood)
    values = scores.to_dict()
    undefined = {name for name, value in values.items() if math.isnan(value)}
    assert undefined == set(values) - {"num_obs", "num_draws"}


def test_nan_in_the_data_makes_coverage_nan(rng):
    draws, y = rng.normal(size=(1, 50, 3, 1)), np.asarray([[0.0], [np.nan], [0.0]])
    assert math.isnan(prediction.interval_coverage(draws, y, probability=0.5))


def test_score_predictions_collects_the_single_scores(gaussian, rng):
    draws, y = gaussian
    likelihood = rng.normal(size=(2, 1000, len(y)))
    scores = score_predictions(draws, y, log_likelihood=likelihood)
    assert (scores.num_obs, scores.num_draws) == (2000, 2000)
    assert scores.rmse == pytest.approx(math.sqrt(scores.mse))
    assert scores.mse == prediction.mse(draws, y)
    assert scores.log_score == prediction.log_score(likelihood)
    assert scores.coverage_50 == prediction.interval_coverage(draws, y, probability=0.5)
    assert scores.coverage_95 + scores.outside_95 == pytest.approx(1.0)
    assert scores.width_50 < scores.width_95


def test_score_predictions_has_no_log_score_without_a_likelihood(rng):
    scores = score_predictions(rng.normal(size=(1, 9, 3, 2)), rng.normal(size=(3, 2)))
    assert scores.log_score is None


@pytest.mark.usefixtures("unchecked")
def test_score_predictions_says_how_a_column_is_made(rng):
    with pytest.raises(ValueError, match=r"`y` has shape \(3,\).*\(3, 1\).*`y\[:, None\]`"):
        score_predictions(rng.normal(size=(1, 9, 3, 1)), rng.normal(size=3))


@pytest.mark.usefixtures("unchecked")
def test_score_predictions_refuses_draws_without_axes(rng):
    with pytest.raises(ValueError, match=r"`draws` has shape \(9, 3\).*\(chain, draw, obs, out\)"):
        score_predictions(rng.normal(size=(9, 3)), rng.normal(size=(3, 1)))


@pytest.mark.usefixtures("unchecked")
def test_score_predictions_refuses_a_likelihood_of_other_points(rng):
    with pytest.raises(ValueError, match=r"`log_likelihood` has shape \(1, 9, 4\).*draw, 3\)"):
        score_predictions(
            rng.normal(size=(1, 9, 3, 1)),
            rng.normal(size=(3, 1)),
            log_likelihood=rng.normal(size=(1, 9, 4)),
        )


@pytest.mark.usefixtures("unchecked")
def test_log_score_refuses_flat_chains(rng):
    with pytest.raises(ValueError, match=r"`log_likelihood` has shape \(9, 3\)"):
        prediction.log_score(rng.normal(size=(9, 3)))


def test_score_classes_averages_probabilities_not_logits():
    # One draw is very sure of class 0, two lean to class 1: the mean probability of class 0 is
    # (1 + 0.4 + 0.4) / 3 = 0.6, though two draws of three vote for class 1.
    lean = math.log(0.4 / 0.6)
    logits = np.asarray([[[[50.0, 0.0]], [[lean, 0.0]], [[lean, 0.0]]]])
    scores = score_classes(logits, np.asarray([0]))
    assert scores.accuracy == 1.0
    assert scores.log_score == pytest.approx(math.log(0.6), rel=1e-12)


def test_score_classes_does_not_overflow():
    logits = np.asarray([[[[1e4, -1e4, 0.0]]]])
    assert score_classes(logits, np.asarray([1])).log_score == pytest.approx(-2e4)


def test_accuracy_propagates_nan():
    logits = np.asarray([[[[0.0, np.nan]], [[1.0, 0.0]]]])
    assert math.isnan(prediction.accuracy(logits, np.asarray([0])))


@pytest.mark.parametrize("labels", [[0, 3], [-1, 0]])
def test_score_classes_refuses_labels_that_are_no_class(rng, labels):
    with pytest.raises(ValueError, match=r"`labels` run from .* classes 0 to 2"):
        score_classes(rng.normal(size=(1, 4, 2, 3)), np.asarray(labels))


@pytest.mark.usefixtures("unchecked")
def test_score_classes_refuses_labels_of_the_wrong_kind(rng):
    with pytest.raises(ValueError, match=r"`labels` has shape \(2,\) and type float64"):
        score_classes(rng.normal(size=(1, 4, 2, 3)), np.asarray([0.0, 1.0]))
