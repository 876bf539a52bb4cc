"""Networks as scikit-learn estimators: its own checks, and that predictions are those of the posterior."""

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.utils.estimator_checks import parametrize_with_checks

import onebasin as ob
from onebasin.networks import BayesianClassifier, BayesianRegressor, Ensemble, predict_with_noise

pytestmark = pytest.mark.full

HOW = {"hidden": (8,), "method": Ensemble(members=2, epochs=300), "random_state": 1}
METHOD = Ensemble(members=6, epochs=200, learning_rate=0.02)


@pytest.mark.slow
@parametrize_with_checks([BayesianRegressor(**HOW), BayesianClassifier(**HOW)])
def test_scikit_learn_accepts(estimator, check, unchecked):
    check(estimator)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.normal(5.0, 3.0, (60, 2))
    return x, 100 + 30 * np.tanh(x[:, 0] - 5) + rng.normal(0, 4, 60)


@pytest.fixture(scope="module")
def fitted(data):
    return BayesianRegressor(hidden=(8,), method=METHOD, random_state=1).fit(*data)


def test_predictions_are_those_of_the_draws_in_the_units_of_the_targets(fitted, data):
    x, y = data
    inputs, scale = (x - x.mean(0)) / x.std(0), y.std()
    means, sds = predict_with_noise(fitted.model_, fitted.posterior_, inputs)
    means, sds = means[0, :, :, 0] * scale + y.mean(), sds[0, :, :, 0] * scale
    mean, sd = fitted.predict(x, return_std=True)
    np.testing.assert_allclose(mean, means.mean(0), rtol=1e-5)
    np.testing.assert_allclose(sd**2, means.var(0) + (sds**2).mean(0), rtol=1e-4)
    normal = -0.5 * ((y - means) / sds) ** 2 - np.log(sds) - 0.5 * np.log(2 * np.pi)
    expected = np.mean(logsumexp(normal, axis=0) - np.log(6))
    assert fitted.log_score(x, y) == pytest.approx(expected, rel=1e-4)
    assert fitted.score(x, y) > 0.3


def test_the_verdict_is_that_of_the_posterior(fitted):
    assert fitted.verdict_ == ob.diagnose(fitted.posterior_).verdict


def test_classes_keep_their_labels(data):
    x, y = data
    labels = np.where(y > 100, "high", "low")
    fitted = BayesianClassifier(hidden=(8,), method=METHOD, random_state=1).fit(x, labels)
    assert fitted.classes_.tolist() == ["high", "low"]
    probability = fitted.predict_proba(x)
    np.testing.assert_allclose(probability.sum(1), 1, rtol=1e-5)
    assert fitted.predict(x).tolist() == fitted.classes_[probability.argmax(1)].tolist()
    assert fitted.score(x, labels) > 0.7
    wanted = probability[np.arange(60), (labels == "low").astype(int)]
    assert fitted.log_score(x, labels) == pytest.approx(np.log(wanted).mean())
