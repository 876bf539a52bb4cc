"""Networks as they stand: aligned to one, how far apart, by how many exchanges; their losses, and barriers between."""

import numpy as np
import pytest
from scipy.special import log_softmax
from scipy.stats import norm

from onebasin.analysis.alignment.barriers import (
    barrier,
    count_transpositions,
    network_loss,
    transpositions_of,
)
from onebasin.models import BayesianNetwork, Categorical, Gaussian, Network, predict
from onebasin.models.symmetry.blocks import Exchangeable, Group
from onebasin.studies.compact_representation.pairs import align_networks, distances, swapped

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
    with pytest.raises(ValueError, match="`model` infers its noise sd, but the loss needs"):
        network_loss(BayesianNetwork(network, Gaussian()), x, y)


def double_well(values):
    """(w^2 - 1)^2: from -1 to 1 the barrier is 1, in the middle."""
    return (values["w"][:, 0] ** 2 - 1) ** 2


def test_known_barrier():
    ends = {"w": np.array([[-1.0], [0.0]])}, {"w": np.array([[1.0], [1.0]])}
    found = barrier(*ends, double_well, num_points=101)
    # From 0 to 1: (t^2 - 1)^2 - (1 - t) is largest at the root of 4 t^3 - 4 t + 1 = 0 near 0.27.
    t = np.roots([4, 0, -4, 1])
    t = t[(t > 0) & (t < 0.5)][0]
    np.testing.assert_allclose(found.height, [1.0, (t**2 - 1) ** 2 - (1 - t)], atol=1e-3)
    np.testing.assert_allclose(found.position[[0, 50, 100]], [0.0, 0.5, 1.0], rtol=1e-12)
    np.testing.assert_allclose(found.loss[:, 0], [0.0, 1.0], atol=1e-15)


def exchanges_to(size: int) -> dict[tuple[int, ...], int]:
    """Breadth first search from the identity, one exchange of two places a step."""
    found = {tuple(range(size)): 0}
    frontier = list(found)
    while frontier:
        reached = []
        for order in frontier:
            for i in range(size):
                for j in range(i):
                    exchanged = list(order)
                    exchanged[i], exchanged[j] = order[j], order[i]
                    if tuple(exchanged) not in found:
                        found[tuple(exchanged)] = found[order] + 1
                        reached.append(tuple(exchanged))
        frontier = reached
    return found


@pytest.mark.parametrize("size", [1, 2, 6])
def test_count_is_the_shortest_product(size):
    known = exchanges_to(size)
    counted = count_transpositions(np.array(list(known)))
    assert counted.tolist() == list(known.values())


def test_leading_axes_are_kept_and_blocks_added(rng):
    blocks = (Exchangeable({"W1": 1, "W2": 0}), Exchangeable({"W2": 1, "W3": 0}))
    group = Group(blocks, {"W1": (2, 5), "W2": (5, 7), "W3": (7, 1)})
    element = group.random(rng, (3, 4))
    counts = transpositions_of(element)
    assert [layer.shape for layer in counts.layers] == [(3, 4), (3, 4)]
    one = [count_transpositions(part.permutation[2, 1]) for part in element]
    assert counts.total[2, 1] == sum(one)
    inverse = transpositions_of(group.inverse(element))
    np.testing.assert_array_equal(inverse.total, counts.total)


@pytest.mark.parametrize("size", [2, 5, 16])
def test_swapped_takes_as_many_transpositions_as_asked(size, rng):
    for num in range(size):
        found = np.stack([swapped(rng, size, num) for _ in range(20)])
        np.testing.assert_array_equal(count_transpositions(found), num)
