"""Networks as they stand: aligned to one, how far apart, and their losses."""

import numpy as np
import pytest
from scipy.special import log_softmax
from scipy.stats import norm

from onebasin.analysis.alignment.barriers import barrier
from onebasin.analysis.alignment.networks import align_networks, distances, network_loss
from onebasin.models import BayesianNetwork, Categorical, Gaussian, Network, predict

MODEL = BayesianNetwork(Network(4, (3,), 3, "relu"), Categorical())


def random_networks(rng, model, count):
    return {n: rng.normal(size=(count, *shape)) for n, shape in model.network.shapes.items()}


def test_alignment_of_a_pair_finds_the_permutation(rng):
    first = random_networks(rng, MODEL, 1)
    order = np.array([2, 0, 1])
    second = {"W1": first["W1"][:, :, order], "b1": first["b1"][:, order]}
    second |= {"W2": first["W2"][:, order], "b2": first["b2"]}
    assert distances(first, second)[0] > 1
    moved, count = align_networks(MODEL, first, second)
    assert count.total.tolist() == [[2]]
    for name, values in moved.items():
        np.testing.assert_array_equal(values, first[name])
    assert distances(first, moved).tolist() == [0]


def test_distances_are_euclidean(rng):
    first, others = random_networks(rng, MODEL, 1), random_networks(rng, MODEL, 5)
    flat = [
        np.concatenate([v.reshape(len(v), -1) for v in net.values()], 1) for net in (first, others)
    ]
    wanted = np.linalg.norm(flat[1] - flat[0], axis=1)
    np.testing.assert_allclose(distances(first, others), wanted, rtol=1e-12)


def test_loss_is_the_mean_negative_log_likelihood(rng):
    weights, x = random_networks(rng, MODEL, 2), rng.normal(size=(20, 4))
    labels = rng.integers(3, size=20)
    logits = predict(MODEL, {n: v[None] for n, v in weights.items()}, x)[0]
    wanted = -log_softmax(logits, axis=-1)[:, np.arange(20), labels].mean(axis=1)
    found = network_loss(MODEL, x, labels)(weights)
    np.testing.assert_allclose(found, wanted, rtol=1e-10)
    first, second = ({n: v[[k]] for n, v in weights.items()} for k in (0, 1))
    between = barrier(first, second, network_loss(MODEL, x, labels), num_points=3).loss
    np.testing.assert_allclose(between[0, [0, -1]], wanted, rtol=1e-10)


def test_loss_of_a_regression_needs_its_noise(rng):
    network, x, y = Network(2, (3,), 1), rng.normal(size=(10, 2)), rng.normal(size=(10, 1))
    model = BayesianNetwork(network, Gaussian(noise_sd=0.5))
    weights = random_networks(rng, model, 3)
    means = predict(model, {n: v[None] for n, v in weights.items()}, x)[0]
    wanted = -norm.logpdf(y, means, 0.5).sum(axis=-1).mean(axis=1)
    np.testing.assert_allclose(network_loss(model, x, y)(weights), wanted, rtol=1e-10)
    with pytest.raises(ValueError, match="`model` infers its noise; give one whose likelihood"):
        network_loss(BayesianNetwork(network, Gaussian()), x, y)
