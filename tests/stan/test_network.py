"""A network's draws read back under the names of NumPyro's sites; `test_parity.py` tests its data."""

import numpy as np

from onebasin.networks import BayesianNetwork, Gaussian, Network
from onebasin.stan.network import read_draws, variable_names


def conditioned(network, likelihood=None):
    model = BayesianNetwork(network, likelihood or Gaussian())
    x = np.arange(3.0 * network.in_dim).reshape(3, network.in_dim)
    return model.condition(x, np.arange(3.0 * network.out_dim).reshape(3, network.out_dim))


def test_draws_are_read_by_columns_under_the_sites_names():
    target = conditioned(Network(2, (3,), 2))
    weights = np.arange(5.0 * 4 * 12).reshape(5, 4, 12)
    biases = np.arange(5.0 * 4 * 5).reshape(5, 4, 5)
    sigma = np.ones((5, 4, 1))
    draws = read_draws(target, {"weights": weights, "biases": biases, "sigma": sigma})
    assert tuple(draws) == variable_names(target) == ("W1", "b1", "W2", "b2", "sigma")
    shapes = {**target.model.network.shapes, "sigma": ()}
    assert {n: v.shape for n, v in draws.items()} == {n: (5, 4, *s) for n, s in shapes.items()}
    np.testing.assert_array_equal(draws["W1"][0, 0], [[0, 2, 4], [1, 3, 5]])
    np.testing.assert_array_equal(draws["W2"][0, 0], [[6, 9], [7, 10], [8, 11]])
    np.testing.assert_array_equal(draws["b2"][0, 1], [8, 9])
    # Predicted noise has its columns last.
    target = conditioned(Network(2, (3,)), Gaussian("predicted"))
    draws = read_draws(target, {"weights": np.arange(12.0), "biases": np.arange(5.0)})
    assert tuple(draws) == variable_names(target) == ("W1", "b1", "W2", "b2")
    np.testing.assert_array_equal(draws["W2"], [[6, 9], [7, 10], [8, 11]])
    np.testing.assert_array_equal(draws["b2"], [3, 4])
    # Neither biases nor noise.
    target = conditioned(Network(2, (3,), biases=False, readout="sum"), Gaussian(noise_sd=1.0))
    draws = read_draws(target, {"weights": np.arange(6.0), "biases": np.empty(0)})
    assert tuple(draws) == variable_names(target) == ("W1",)
    np.testing.assert_array_equal(draws["W1"], [[0, 2, 4], [1, 3, 5]])
