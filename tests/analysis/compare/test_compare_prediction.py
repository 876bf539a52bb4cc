"""A network's predictions at points: every score against NumPy, noise, and points in pieces."""

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import norm

from onebasin.analysis.predictive.predictions import Points, distances, predict_points
from onebasin.analysis.predictive.scores import coverage_and_width, pointwise_crps
from onebasin.models import BayesianNetwork, Categorical, Gaussian, Network

X = np.linspace(-2, 2, 14).reshape(7, 2)
LABELS = np.array([0, 1, 2, 0, 1, 2, 0])
TARGETS = np.sin(X.sum(axis=1, keepdims=True))
CLASSIFIER = BayesianNetwork(Network(2, (3,), 3, activation="tanh"), Categorical())
REGRESSION = BayesianNetwork(Network(2, (3,), activation="tanh"))


@pytest.fixture
def draw(make_mcmc):
    """Posteriors around one place, with the noise of a regression."""

    def make(seed, model, shape=(4, 60), shift=0.0):
        centre, rng = np.random.default_rng(3), np.random.default_rng(seed)
        values = {
            name: centre.normal(size=size) + shift + 0.3 * rng.normal(size=(*shape, *size))
            for name, size in model.network.shapes.items()
        }
        return make_mcmc(values | {"sigma": 0.3 * np.exp(0.5 * rng.normal(size=shape))})

    return make


def outputs(tree):
    """The network by hand: (draw, obs, out)."""
    w = {n: v.values.reshape(-1, *v.shape[2:]) for n, v in tree["posterior"].data_vars.items()}
    hidden = np.tanh(np.einsum("oi,dih->doh", X, w["W1"]) + w["b1"][:, None])
    return np.einsum("doh,dhk->dok", hidden, w["W2"]) + w["b2"][:, None]


def test_classifications_are_measured_as_by_hand(draw):
    trees = [draw(0, CLASSIFIER), draw(1, CLASSIFIER, shift=0.2)]
    points = Points.of(CLASSIFIER, X, LABELS)
    truth, found = (predict_points(CLASSIFIER, tree, points) for tree in trees)
    per_draw = [softmax(outputs(tree), axis=-1) for tree in trees]
    p, q = (values.mean(axis=0) for values in per_draw)
    entropy = -(per_draw[1] * np.log(per_draw[1])).sum(-1).mean(axis=0)
    expected = {
        "agreement": (p.argmax(-1) == q.argmax(-1)).mean(),
        "total_variation": np.abs(p - q).sum(-1).mean() / 2,
        "total_variation_sum": np.abs(p - q).sum(-1).mean(),
        "accuracy": (q.argmax(-1) == LABELS).mean(),
        "log_score": np.log(q[np.arange(7), LABELS]).mean(),
        "brier": ((q - np.eye(3)[LABELS]) ** 2).sum(-1).mean(),
        "single_draw_accuracy": (per_draw[1].argmax(-1) == LABELS).mean(),
        "mutual_information": (-(q * np.log(q)).sum(-1) - entropy).mean(),
    }
    measured = found.scores | distances(found, truth, classifier=True)
    for name, value in expected.items():
        assert measured[name] == pytest.approx(value, rel=1e-8), name
    assert set(measured) == {*expected, "calibration_error"}


def test_regressions_are_measured_as_by_hand(draw):
    trees = [draw(0, REGRESSION), draw(1, REGRESSION, shift=0.1)]
    points = Points.of(REGRESSION, X, TARGETS)
    truth, found = (predict_points(REGRESSION, tree, points) for tree in trees)
    ours, theirs = (outputs(tree) for tree in trees)
    sigma = trees[1]["posterior"]["sigma"].values.reshape(-1, 1, 1)
    apart = (theirs.mean(axis=0) - ours.mean(axis=0)) / ours.std(axis=0)
    density = np.exp(norm.logpdf(TARGETS, theirs, sigma)).mean(axis=0)
    expected = {
        "mean_distance": np.sqrt((apart**2).mean()),
        "rmse": np.sqrt(((theirs.mean(axis=0) - TARGETS) ** 2).mean()),
        "log_score": np.log(density).mean(),
    }
    measured = found.scores | distances(found, truth, classifier=False)
    for name, value in expected.items():
        assert measured[name] == pytest.approx(value, rel=1e-8), name
    assert set(measured) == {*expected, "coverage_50", "coverage_95", "crps"}


@pytest.mark.parametrize("known", [None, 0.8])
def test_coverage_and_crps_are_of_predictions_with_noise(draw, known):
    model = BayesianNetwork(REGRESSION.network, Gaussian(noise_sd=known))
    tree = draw(1, model, (4, 1500))
    found = predict_points(model, tree, Points.of(model, X, TARGETS)).scores
    function = outputs(tree)[None]
    sigma = tree["posterior"]["sigma"].values.reshape(1, -1, 1, 1) if known is None else known
    noisy = function + sigma * np.random.default_rng(99).normal(size=function.shape)
    # Noise from two seeds: the CRPS of 6000 draws differed by up to 0.009 over ten pairs.
    assert found["crps"] == pytest.approx(pointwise_crps(noisy, TARGETS).mean(), abs=0.02)
    without_noise = pointwise_crps(function, TARGETS).mean()
    assert abs(found["crps"] - without_noise) > 0.04
    for mass in (50, 95):
        covered, _ = coverage_and_width(noisy, TARGETS, probability=mass / 100)
        assert found[f"coverage_{mass}"] == pytest.approx(covered, abs=1 / 7 + 1e-9)
