"""Predictive scores against closed forms, and what they show of themselves."""

import math

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.metrics import r2_score

from onebasin.analysis.predictive import scores as prediction
from onebasin.analysis.predictive.scores import score_function, score_predictions

from ...cards import check_page


@pytest.fixture
def gaussian(rng):
    """Predictions N(0, 1) for 800 points of N(0, 2^2): half as wide as they should be."""
    return rng.normal(size=(2, 500, 800, 1)), 2.0 * rng.normal(size=(800, 1))


@pytest.mark.parametrize("probability", [0.5, 0.95])
def test_interval_coverage_of_gaussians_is_the_analytic_one(gaussian, probability):
    draws, y = gaussian
    half_width = norm.ppf(0.5 + probability / 2)
    inside = norm.cdf(half_width / 2) - norm.cdf(-half_width / 2)
    error = math.sqrt(inside * (1 - inside) / len(y))
    covered, width = prediction.coverage_and_width(draws, y, probability=probability)
    assert abs(covered - inside) < 5 * error
    assert width == pytest.approx(2 * half_width, rel=0.01)


def test_log_score_does_not_underflow():
    # exp(-1000) is 0 in float64: exp, mean, log would give minus infinity.
    likelihood = np.full((2, 3, 4), -1000.0)
    assert prediction.log_score(likelihood) == pytest.approx(-1000.0, abs=1e-9)


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
    scores = score_predictions(draws, y, log_likelihood=likelihood, function=draws)
    values = scores.to_dict()
    undefined = {name for name, value in values.items() if math.isnan(value)}
    assert undefined == set(values) - {"num_obs", "num_draws"}


def test_explained_variance_is_sklearns_for_several_outputs(rng):
    y = rng.normal(size=(50, 2)) * [1.0, 4.0] + [0.0, 100.0]
    draws = (y + 0.5 * rng.normal(size=y.shape))[None, None]
    assert score_predictions(draws, y).explained_variance == pytest.approx(
        r2_score(y, draws[0, 0], multioutput="variance_weighted")
    )
    assert prediction.explained_variance(0.25, np.full((5, 1), 2.0)) is None


def test_crps_is_that_of_a_double_loop(rng):
    draws, y = rng.normal(size=(2, 3, 4, 2)), rng.normal(size=(4, 2))
    pooled = draws.reshape(6, 4, 2)
    spread = np.abs(pooled[:, None] - pooled[None]).sum(axis=(0, 1)) / (6 * 5)
    expected = np.abs(pooled - y).mean(axis=0) - spread / 2
    np.testing.assert_allclose(prediction.pointwise_crps(draws, y), expected, rtol=1e-10)


def test_score_function_adds_noise_for_all_but_the_errors(rng):
    function, sigma = rng.normal(size=(2, 50, 7, 1)), np.full((2, 50), 3.0)
    y = rng.normal(size=(7, 1))
    scores = score_function(function, sigma, y, np.random.default_rng(5))
    noise = 3.0 * np.random.default_rng(5).standard_normal(function.shape)
    likelihood = norm.logpdf(y, function, 3.0).sum(axis=-1)
    noisy = score_predictions(function + noise, y, log_likelihood=likelihood)
    assert scores.rmse == pytest.approx(math.sqrt(prediction.mse(function, y)), rel=1e-12)
    assert scores.mse == pytest.approx(prediction.mse(function, y), rel=1e-12)
    for name in ("log_score", "coverage_50", "coverage_95", "width_95", "crps"):
        assert getattr(scores, name) == getattr(noisy, name)


@pytest.mark.parametrize(
    ("width", "said"),
    [
        (1.0, "as many as expected"),
        (0.3, "too few: the predictions are overconfident"),
        (3.0, "too many: the predictions are underconfident"),
    ],
)
def test_coverage_is_held_against_chance(rng, width, said):
    scores = score_predictions(width * rng.normal(size=(2, 200, 300, 1)), rng.normal(size=(300, 1)))
    text = " ".join(repr(scores).split())
    assert said in text
    assert "chance allows 91.7 to 98 %" in text  # of 300, binomial, 99 %
    assert "No log score" in text
    check_page(scores._repr_html_())


def test_the_standard_deviation_is_split(rng):
    """Into that of the function over draws, and that of the noise, exactly where the noise is known."""
    function = rng.normal(size=(2, 1000, 1, 1)) * np.array([1.0, 3.0])[:, None]
    noise = np.full((2, 1000), 0.7)
    y = np.zeros((2, 1))
    found = score_function(function, noise, y, rng)
    epistemic = np.sqrt(np.mean(function.var(axis=(0, 1))))
    assert found.epistemic == pytest.approx(epistemic, rel=1e-12)
    assert found.aleatoric == pytest.approx(0.7, rel=1e-12)
    draws = function + 0.7 * rng.normal(size=function.shape)
    other = score_predictions(draws, y, function=function)
    assert other.epistemic == found.epistemic
    assert other.aleatoric == pytest.approx(0.7, abs=0.3)
    assert score_predictions(draws, y).epistemic is None
