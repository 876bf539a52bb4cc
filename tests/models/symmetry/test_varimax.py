"""Varimax finds optima of its criterion, and every optimum does not depend on the rotation that loadings came with."""

import numpy as np
import pytest

from onebasin.models.symmetry.blocks import Rotation
from onebasin.models.symmetry.canonical import canonical
from onebasin.models.symmetry.elements import Rotated, in_order
from onebasin.models.symmetry.exchangeable import Exchangeable
from onebasin.models.symmetry.varimax import Curvature, criterion, nearest_rotation, refine, varimax


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


def test_the_criterion_is_the_variance_of_squares(rng):
    loadings = rng.normal(size=(3, 4, 6))
    expected = 6 * np.square(loadings).var(axis=2).sum(axis=1)
    np.testing.assert_allclose(criterion(loadings), expected, rtol=1e-12)


@pytest.mark.parametrize("size", [2, 3, 6, 15])
def test_climbing_from_starts_finds_what_turning_pairs_finds(size, rng):
    mean = simple(rng, size, 6 * size)
    draws = mean + 0.1 * rng.normal(size=(30, *mean.shape))
    like = varimax(mean[None])[0] @ mean
    came = rotations(rng, 30, size) @ draws
    start, expected = nearest_rotation(like @ np.swapaxes(came, 1, 2)), varimax(draws) @ draws
    for precision in (np.float64, np.float32):
        turns = refine(came.astype(precision), start)
        np.testing.assert_allclose(criterion(turns @ came), criterion(expected), rtol=1e-9)
        np.testing.assert_allclose(turns @ came, expected, atol=1e-4)
        np.testing.assert_allclose(
            turns @ np.swapaxes(turns, 1, 2), np.tile(np.eye(size), (30, 1, 1)), atol=1e-12
        )


@pytest.mark.parametrize("precision", [np.float64, np.float32])
def test_steps_by_the_curvature_of_the_mean_are_few(precision, rng, monkeypatch):
    """Nothing is left for steps by each draw's own curvature, whatever the draws' size."""
    mean = simple(rng, 8, 48)
    mean = varimax(mean[None])[0] @ mean
    draws = 7 * (mean + 0.02 * rng.normal(size=(20, *mean.shape)))
    expected = varimax(draws) @ draws
    for name in ("varimax", "_inverse_curvature"):
        monkeypatch.setattr(f"onebasin.models.symmetry.varimax.{name}", None)
    came = rotations(rng, 20, 8) @ draws
    start = nearest_rotation(mean @ np.swapaxes(came, 1, 2))
    turns = refine(came.astype(precision), start, Curvature.at(mean))
    np.testing.assert_allclose(turns @ came, expected, atol=2e-3)


def test_draws_far_from_the_curvature_that_is_given_find_their_optima(rng):
    mean, other = simple(rng, 5, 40), simple(rng, 5, 40)
    draws = mean + 0.3 * rng.normal(size=(50, *mean.shape))
    start = nearest_rotation(mean @ np.swapaxes(draws, 1, 2))
    turns = refine(draws, start, Curvature.at(other))
    again = refine(turns @ draws, np.tile(np.eye(5), (50, 1, 1)))
    np.testing.assert_allclose(again, np.tile(np.eye(5), (50, 1, 1)), atol=1e-4)
    assert (criterion(turns @ draws) >= criterion(start @ draws)).all()


def test_components_of_unlike_sizes_are_climbed_to_the_same_optima(rng, monkeypatch):
    """Each plane has its own curvature: nothing is left for turning pair by pair."""
    mean = simple(rng, 8, 48, noise=0.02) * np.exp(np.linspace(0, -3, 8))[:, None]
    draws = mean * (1 + 0.05 * rng.normal(size=(20, *mean.shape)))
    expected = varimax(draws) @ draws
    monkeypatch.setattr("onebasin.models.symmetry.varimax.varimax", None)
    came = rotations(rng, 20, 8) @ draws
    turns = refine(came, nearest_rotation(mean @ np.swapaxes(came, 1, 2)))
    np.testing.assert_allclose(turns @ came, expected, atol=1e-4)


def test_climbing_never_ends_below_its_start(rng):
    """Loadings that are alike nothing: the curvature that scales the steps is another's."""
    loadings = rng.normal(size=(50, 4, 5)) * 10 ** rng.uniform(-3, 3, size=(50, 1, 1))
    start = rotations(rng, 50, 4)
    turns = refine(loadings, start)
    assert (criterion(turns @ loadings) >= criterion(start @ loadings) * (1 - 1e-9)).all()


def test_draws_that_are_turned_pair_by_pair_get_rotations_too(rng, monkeypatch):
    """A start in single precision is orthogonal up to its rounding alone, by which the log density would change."""
    loadings, start = rng.normal(size=(50, 4, 5)), rotations(rng, 50, 4)
    monkeypatch.setattr("onebasin.models.symmetry.varimax.STEPS", 1)
    turns = refine(loadings.astype(np.float32), start.astype(np.float32))
    orthogonal = np.tile(np.eye(4), (50, 1, 1))
    np.testing.assert_allclose(turns @ np.swapaxes(turns, 1, 2), orthogonal, atol=1e-12)


def test_the_nearest_rotation_is_that_of_the_singular_vectors(rng):
    matrices = rng.normal(size=(40, 5, 5))
    matrices[0, 4] = matrices[0, 3]  # singular
    matrices[1] = 0.0
    left, _, right = np.linalg.svd(matrices)
    found = nearest_rotation(matrices)
    np.testing.assert_allclose(found[2:], (left @ right)[2:], atol=1e-9)
    np.testing.assert_allclose(
        found @ np.swapaxes(found, 1, 2), np.tile(np.eye(5), (40, 1, 1)), atol=1e-12
    )
    at_most = np.abs(np.linalg.svd(matrices[0])[1]).sum()
    np.testing.assert_allclose(np.trace(found[0].T @ matrices[0]), at_most, rtol=1e-9)


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
