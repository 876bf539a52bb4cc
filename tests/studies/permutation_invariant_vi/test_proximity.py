"""The nearest permuted copy of a network: distances, and bounds."""

import math
from itertools import permutations

import numpy as np
import pytest

from onebasin.models import BayesianNetwork, Categorical, Network
from onebasin.models.symmetry.blocks import Exchangeable
from onebasin.studies.permutation_invariant_vi.proximity import mean_bound, nearest, theorem_bound

BLOCK = Exchangeable({"W1": 1, "b1": 0, "W2": 0})
MODEL = BayesianNetwork(Network(3, (4,), 2, "relu"), Categorical())


def random_values(rng, model, count, sd=1.0):
    return {n: sd * rng.standard_normal((count, *s)) for n, s in model.network.shapes.items()}


def test_the_nearest_copy_is_one_transposition_away(rng):
    values = random_values(rng, MODEL, 20)
    found = nearest(values, BLOCK).distance
    for network in range(20):
        one = {name: value[network] for name, value in values.items()}
        norm = np.sqrt(sum((v**2).sum() for v in one.values()))
        distances = {}
        for order in permutations(range(4)):
            moved = {
                "W1": one["W1"][:, order],
                "b1": one["b1"][list(order)],
                "W2": one["W2"][list(order)],
            }
            squares = sum(((moved[name] - one[name]) ** 2).sum() for name in moved)
            distances[order] = np.sqrt(squares) / norm
        del distances[tuple(range(4))]
        assert found[network] == pytest.approx(min(distances.values()), rel=1e-12)
        best = min(distances, key=distances.get)
        assert sum(place != unit for place, unit in enumerate(best)) == 2


@pytest.mark.parametrize(("width", "inputs"), [(2, 30), (3, 1), (8, 2), (40, 1)])
def test_bounds_hold_for_random_networks(width, inputs, rng):
    model = BayesianNetwork(Network(inputs, (width,), 2, "relu"), Categorical())
    values = random_values(rng, model, 50) | {"b2": np.zeros((50, 2))}
    worst = nearest(values, BLOCK).distance.max()
    assert worst <= mean_bound(width) * (1 + 1e-12)
    assert worst <= min(2.0, theorem_bound(width, inputs + 3)) * (1 + 1e-12)


@pytest.mark.parametrize("width", [2, 3, 6])
def test_a_simplex_attains_the_bound_by_the_mean(width):
    corners = np.eye(width) - 1 / width
    found = nearest({"W1": corners[None]}, Exchangeable({"W1": 1})).distance
    assert found[0] == pytest.approx(mean_bound(width), rel=1e-12)


def test_the_separation_is_that_of_two_modes_in_their_own_standard_deviations(rng):
    """Of N(-a, S) and N(a, S) it is sqrt(a' S^-1 a), found here from the whole vectors."""
    values, sd = random_values(rng, MODEL, 1), random_values(rng, MODEL, 1)
    sd = {name: np.exp(0.3 * value) for name, value in sd.items()}
    flat = {n: v[0] for n, v in values.items()}
    least = np.inf
    for i in range(4):
        for j in range(i):
            order = np.arange(4)
            order[[i, j]] = j, i
            total = 0.0
            for name, axis in BLOCK.axes.items():
                half = (flat[name] - np.take(flat[name], order, axis)) / 2
                variance = (sd[name][0] ** 2 + np.take(sd[name][0], order, axis) ** 2) / 2
                total += (half**2 / variance).sum()
            least = min(least, math.sqrt(total))
    found = nearest(values, BLOCK, sd=sd, within=least * 1.0001)
    assert found.separation[0] == pytest.approx(least, rel=1e-12)
    assert found.close[0] == 0.5
    assert nearest(values, BLOCK, sd=sd, within=least * 0.999).close[0] == 0.0
