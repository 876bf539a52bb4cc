"""The same draws in another unit, and far from zero: the same elements, and the same word on whether they settled."""

from __future__ import annotations

import numpy as np
import pytest

from onebasin.analysis.alignment import align, switching
from onebasin.analysis.alignment.features import factors, rescale
from onebasin.models.symmetry.blocks import Exchangeable, Group, Rescalable

from .conftest import CASES, dataset, plant

SCALED = ["mixture", "network", "tanh network", "two hidden layers", "factors", "hidden Markov"]
SHIFTED = ["mixture", "network", "two hidden layers", "hidden Markov"]
SHIFTED += ["transitions alone", "large hidden Markov"]
OFFSETS = [(1e3, 1e-9), (1e9, 1e-3), (-1e12, 0.1)]
UNITS = [1e-300, 1e-150, 1e-20, 1e20, 1e150, 1e160, 1e300]


def _draws(name, rng):
    symmetry, shapes = CASES[name]
    planted = plant(symmetry, shapes, rng, noise=0.3, lead=(2, 20))
    return symmetry, {n: v.values for n, v in planted.seen.items()}


def _moved(values, unit, offset):
    return dataset({n: unit * (v + offset) for n, v in values.items()})


def _same(found, expected):
    for part, other in zip(found.element, expected.element, strict=True):
        for ours, theirs in zip(part, other, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    assert (found.converged, found.sweeps) == (expected.converged, expected.sweeps)


@pytest.mark.parametrize(("name", "unit"), list(zip([*SCALED, "mixture"], UNITS, strict=True)))
def test_elements_are_the_same_in_every_unit(name, unit, rng):
    symmetry, values = _draws(name, rng)
    expected, found = (align(_moved(values, u, 0.0), symmetry) for u in (1.0, unit))
    _same(found, expected)
    np.testing.assert_allclose(found.distance_after, expected.distance_after, rtol=1e-6)
    assert switching(found, noise=False).ratio == pytest.approx(
        switching(expected, noise=False).ratio, rel=1e-6
    )


@pytest.mark.parametrize(
    ("name", "reference", "offset", "digits"),
    [
        (name, ("gaussian", "mean", "draw")[(place + place // 3) % 3], *OFFSETS[place % 3])
        for place, name in enumerate(SHIFTED)
    ],
)
def test_elements_are_the_same_far_from_zero(name, reference, offset, digits, rng):
    symmetry, values = _draws(name, rng)
    expected = align(dataset(values), symmetry, reference=reference)
    found = align(_moved(values, 1.0, offset), symmetry, reference=reference)
    _same(found, expected)
    apart, wanted = found.distance_after, expected.distance_after
    np.testing.assert_allclose(apart, wanted, rtol=digits, atol=digits)


@pytest.mark.parametrize("offset", [1e15, 1e17])
def test_parts_that_are_lost_in_rounding_are_refused(offset, rng):
    values = rng.permuted(rng.normal(size=(2, 50, 5)) + 2 * np.arange(5), axis=2)
    with pytest.raises(ValueError, match=r"values of mu in `posterior` .* lost in rounding"):
        align(dataset({"mu": values + offset}), (Exchangeable({"mu": 0}),))


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
