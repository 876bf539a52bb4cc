"""Moving a chunk is what the group does; rescaling reaches its gauge."""

import numpy as np
import pytest

from onebasin.analysis.alignment.features import factors, rescale
from onebasin.models.symmetry.blocks import Rescalable
from onebasin.models.symmetry.group import Group

DEEP = (Rescalable({"W1": 1, "b1": 0}, {"W2": 0}), Rescalable({"W2": 1}, {"W3": 0}))
SHAPES = {"W1": (4, 5), "b1": (5,), "W2": (5, 6), "W3": (6, 2)}


@pytest.mark.parametrize("gauge", ["balanced", "unit"])
def test_a_gauge_does_not_depend_on_the_scaling_of_the_input(gauge, rng):
    group = Group(DEEP, SHAPES)
    values = {n: rng.normal(size=(9, *s)) for n, s in SHAPES.items()}
    other = group.act(group.random(rng, (9,)), values)
    one = rescale(values, DEEP, factors(values, DEEP, gauge))
    two = rescale(other, DEEP, factors(other, DEEP, gauge))
    for name in SHAPES:
        np.testing.assert_allclose(one[name], two[name], rtol=1e-10)
    if gauge == "unit":
        norm = np.sqrt((one["W1"] ** 2).sum(axis=1) + one["b1"] ** 2)
        np.testing.assert_allclose(norm, 1.0, rtol=1e-12)
        np.testing.assert_allclose((one["W2"] ** 2).sum(axis=1), 1.0, rtol=1e-12)


def test_balance_is_the_smallest_norm_on_the_orbit(rng):
    group = Group(DEEP, SHAPES)
    values = {n: rng.normal(size=(9, *s)) for n, s in SHAPES.items()}
    least = rescale(values, DEEP, factors(values, DEEP, "balanced"))

    def norm(of):
        return sum((v**2).reshape(9, -1).sum(axis=1) for v in of.values())

    for _ in range(20):
        assert (norm(group.act(group.random(rng, (9,)), least)) > norm(least)).all()


def test_dead_units_stay_as_they_are():
    values = {"W1": np.zeros((1, 2, 3)), "W2": np.ones((1, 3, 1))}
    block = (Rescalable({"W1": 1}, {"W2": 0}),)
    for gauge in ("balanced", "unit"):
        (found,) = factors(values, block, gauge)
        np.testing.assert_array_equal(found.factors, np.ones((1, 3)))
