"""Predictions over draws against one network at a time."""

import jax.numpy as jnp
import numpy as np
import pytest

from onebasin.models import BayesianNetwork, Categorical, Gaussian, Network, predict
from onebasin.posteriors.pointwise import network_groups

MODEL = BayesianNetwork(Network(3, (4, 2), 2, "tanh", skip="orthogonal"))
X = np.random.default_rng(1).normal(size=(6, 3))


@pytest.fixture
def draws(rng):
    return {n: rng.normal(size=(2, 5, *s)) for n, s in MODEL.network.shapes.items()}


@pytest.mark.parametrize("batch_size", [1, 3, 256])
def test_prediction_is_the_network_of_each_draw(draws, batch_size):
    out = predict(MODEL, draws, X, batch_size=batch_size)
    assert out.shape == (2, 5, 6, 2)
    for chain, draw in np.ndindex(2, 5):
        weights = {n: jnp.asarray(v[chain, draw]) for n, v in draws.items()}
        expected = MODEL.network.apply(weights, jnp.asarray(X))
        np.testing.assert_allclose(out[chain, draw], expected, rtol=1e-10, atol=1e-13)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({"W2": None}, {}, "`draws` lack W2; they hold W1, b1, b2, W3, b3"),
        ({"b1": np.zeros((2, 4, 4))}, {}, r"`draws` hold b1 of shape \(2, 4, 4\).*chain, draw, 4"),
        ({"W1": np.zeros((3, 4))}, {}, r"`draws` hold W1 of shape \(3, 4\).*chain, draw, 3, 4"),
        ({}, {"batch_size": 0}, "`batch_size` must be a whole number, at least 1; got 0"),
        ({}, {"x": X[:, :2]}, r"`x` has shape \(6, 2\), but the network has 3 inputs"),
        ({}, {"x": X * np.nan}, r"`x` has 18 value\(s\) that are not finite"),
    ],
)
def test_prediction_refuses(draws, change, options, message):
    draws = {n: v for n, v in {**draws, **change}.items() if v is not None}
    with pytest.raises(ValueError, match=message):
        predict(MODEL, draws, **{"x": X, **options})


@pytest.mark.parametrize("likelihood", [Gaussian(noise_sd=0.5), Categorical()])
def test_the_seed_decides_what_is_drawn_from_the_predictive(draws, likelihood):
    model = BayesianNetwork(MODEL.network, likelihood)
    y = np.zeros(6, np.int64) if model.is_classifier else np.zeros((6, 2))

    def drawn(seed):
        groups = network_groups(model, draws, X, y, seed=seed, limit_mb=1.0)
        return np.asarray(groups["posterior_predictive"].values["y"])

    np.testing.assert_array_equal(drawn(1), drawn(1))
    assert (drawn(1) != drawn(2)).any()
