"""Varimax finds optima of its criterion, and every optimum does not depend on the rotation that loadings came with."""

import numpy as np
import pytest

from onebasin.models.symmetry.blocks import Rotation
from onebasin.models.symmetry.closest import canonical
from onebasin.models.symmetry.elements import Rotated, in_order
from onebasin.models.symmetry.exchangeable import Exchangeable
from onebasin.models.symmetry.rotation import criterion, nearest_rotation, refine, varimax


def rotations(rng, count, size):
    return Rotation({"any": 0}).random(rng, (count,), size).matrix


def simple(rng, size, rows, noise=0.1):
    """Loadings (component, row), each row large on one component."""
    own = np.arange(rows) % size == np.arange(size)[:, None]
    return own * rng.uniform(0.5, 1, rows) + noise * rng.normal(size=(size, rows))


def test_two_components_are_turned_to_the_best_of_all_angles(rng):
    loadings = rng.normal(size=(20, 2, 7))
    angles = np.linspace(0, np.pi / 2, 2001)
    turns = np.array([[np.cos(angles), np.sin(angles)], [-np.sin(angles), np.cos(angles)]])
    every = np.stack([criterion(turn @ loadings) for turn in np.moveaxis(turns, 2, 0)])
    found = criterion(varimax(loadings) @ loadings)
    assert (found >= every.max(axis=0)).all()
    np.testing.assert_allclose(found, every.max(axis=0), rtol=1e-5)


@pytest.mark.parametrize("size", [2, 3, 6, 15])
def test_climbing_from_starts_finds_what_turning_pairs_finds(size, rng):
    mean = simple(rng, size, 6 * size)
    draws = mean + 0.1 * rng.normal(size=(30, *mean.shape))
    like = varimax(mean[None])[0] @ mean
    came = rotations(rng, 30, size) @ draws
    start, expected = nearest_rotation(like @ np.swapaxes(came, 1, 2)), varimax(draws) @ draws
    turns = refine(came, start)
    np.testing.assert_allclose(criterion(turns @ came), criterion(expected), rtol=1e-9)
    np.testing.assert_allclose(turns @ came, expected, atol=1e-4)


def test_the_labelling_of_one_draw_does_not_depend_on_its_rotation(rng):
    block = Rotation({"L": 1, "scores": 1})
    values = {"L": simple(rng, 3, 12).T[None].repeat(9, 0), "scores": rng.normal(size=(9, 4, 3))}
    turned = block.act(values, rotations(rng, 9, 3))
    one, other = canonical((block,), values), canonical((block,), turned)
    for name in values:
        np.testing.assert_allclose(other[name], one[name], atol=1e-7)


def test_a_rotation_and_then_an_order_with_signs_is_a_rotation(rng):
    turns, block = Rotated(rotations(rng, 6, 4)), Rotation({"L": 1})
    order = Exchangeable(block.axes, flips=True)
    values, part = {"L": rng.normal(size=(6, 5, 4))}, order.random(rng, (6,), 4)
    expected = order.act(block.act(values, *turns), *part)["L"]
    np.testing.assert_allclose(block.act(values, *in_order(turns, part))["L"], expected, 1e-12)
