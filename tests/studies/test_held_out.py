"""Held-out predictions against closed forms."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from onebasin.inference.runs.posterior import build
from onebasin.models import BayesianNetwork, Gaussian, Network
from onebasin.studies.networks.held_out import draw_functions, gap, predict_held_out


@pytest.fixture
def x(rng):
    return rng.normal(size=(30, 2))


def posterior(rng, x, *, shift=0.0, scale=1.0, draws=500, noise=None):
    """A network whose output is its bias alone: f(x) ~ N(shift, scale^2) at every point."""
    model = BayesianNetwork(Network(2, (2,)), Gaussian(noise_sd=noise))
    target = model.condition(x, np.zeros(len(x)), name="constant")
    shape = (4, draws)
    values = {name: np.zeros((*shape, *size)) for name, size in model.network.shapes.items()}
    values["b2"] = shift + scale * rng.normal(size=(*shape, 1))
    if noise is None:
        values["sigma"] = np.full(shape, 0.5) + 1e-3 * rng.normal(size=shape)
    return build(target, values, {"lp": rng.normal(size=shape)}, {}), model


def test_function_is_the_networks_output(rng, x):
    tree, model = posterior(rng, x)
    function, sigma = draw_functions(tree, model, x)
    b2 = tree["posterior"].to_dataset()["b2"].values
    np.testing.assert_array_equal(function, np.broadcast_to(b2[:, :, None], function.shape))
    np.testing.assert_array_equal(sigma, tree["posterior"].to_dataset()["sigma"].values)


def test_known_noise_stands_for_sigma(rng, x):
    _, sigma = draw_functions(*posterior(rng, x, noise=0.25), x)
    assert sigma.shape == (4, 500)
    assert set(sigma.ravel()) == {0.25}


def test_noise_is_that_of_each_draw_and_the_same_every_time(rng, x):
    tree, model = posterior(rng, x, scale=0.0)
    sigma = np.stack([np.full(500, 1.0), np.full(500, 3.0)] * 2)
    tree["posterior"] = tree["posterior"].to_dataset().assign(sigma=(("chain", "draw"), sigma))
    y = np.zeros((len(x), 1))
    scores = predict_held_out(tree, model, x, y).scores
    assert scores == predict_held_out(tree, model, x, y).scores
    # Half of the predictions have an sd of 1, half of 3.
    edge = brentq(lambda z: norm.cdf(z) / 2 + norm.cdf(z / 3) / 2 - 0.975, 0, 10)
    assert scores.width_95 == pytest.approx(2 * edge, rel=0.03)


def test_scores_are_those_of_the_normal_distribution(rng, x):
    y = rng.normal(scale=np.hypot(1, 0.5), size=(len(x), 1))
    found = predict_held_out(*posterior(rng, x, draws=5000), x, y)
    sd = np.hypot(1, 0.5)
    assert found.scores.log_score == pytest.approx(norm.logpdf(y, 0, sd).mean(), abs=0.02)
    assert found.scores.mse == pytest.approx(float(np.mean(y**2)), abs=0.03)
    assert found.scores.rmse**2 == pytest.approx(found.scores.mse)
    assert found.scores.width_95 == pytest.approx(2 * 1.96 * sd, rel=0.02)
    assert found.scores.num_obs == 30


def test_mean_carries_no_monte_carlo_error_of_the_noise(rng, x):
    tree, model = posterior(rng, x, draws=4)
    y = np.zeros((len(x), 1))
    mean = float(tree["posterior"].to_dataset()["b2"].mean())
    assert predict_held_out(tree, model, x, y).scores.mse == pytest.approx(mean**2, rel=1e-12)


def test_gap_measures_shift_and_spread(rng, x):
    y = np.zeros((len(x), 1))
    reference = predict_held_out(*posterior(rng, x, draws=4000), x, y)
    other = predict_held_out(*posterior(rng, x, shift=2.0, scale=0.5, draws=4000), x, y)
    found = gap(other, reference)
    assert found["rms"] == pytest.approx(2, abs=0.05)
    assert found["in_sds"] == pytest.approx(2, abs=0.08)
    assert found["sd_ratio"] == pytest.approx(0.5, rel=0.05)
    assert found["predictive_sd_ratio"] == pytest.approx(
        np.hypot(0.5, 0.5) / np.hypot(1, 0.5), rel=0.05
    )
    # Both means have 16,000 independent draws.
    assert found["floor_in_sds"] == pytest.approx(np.hypot(1, 0.5) / np.sqrt(16_000), rel=0.15)


@pytest.mark.parametrize("method", ["nuts", "mclmc"])
def test_of_markov_chains_gradients_are_known(rng, x, method):
    tree, model = posterior(rng, x)
    tree.attrs |= {"method": method, "gradient_evaluations": 4000}
    assert predict_held_out(tree, model, x, np.zeros((len(x), 1))).gradients == 4000
