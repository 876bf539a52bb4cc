"""Shortcuts change no result: turned references, settled blocks, prices on parts, costs in pieces."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from onebasin.analysis.alignment import align, solving
from onebasin.analysis.alignment.descent import improve
from onebasin.analysis.alignment.draws import move
from onebasin.analysis.alignment.reference import (
    AlignmentReference,
    cost_matrices,
    distance,
    targets,
)
from onebasin.analysis.alignment.solving import assign
from onebasin.models.symmetry.arrays import gather
from onebasin.models.symmetry.blocks import Exchangeable, axes_of
from onebasin.models.symmetry.elements import Permuted
from onebasin.models.symmetry.group import Group

from .conftest import CASES, chain, plant, price


@pytest.mark.parametrize("by_entry", [False, True])
@pytest.mark.parametrize("flips", [False, True])
def test_turning_the_reference_costs_what_moving_the_draws_does(rng, flips, by_entry):
    symmetry, shapes = chain(3, 5, 4, 6, 2, flips=flips)
    group = Group(symmetry, shapes)
    values = {n: rng.normal(size=(7, *shape)) for n, shape in shapes.items()}
    mean = {n: rng.normal(size=shape) for n, shape in shapes.items()}
    weight = {n: rng.uniform(0.5, 2, size=s if by_entry else ()) for n, s in shapes.items()}
    parts = group.random(rng, (7,))
    for place, turned in ((0, {"W2": 1}), (1, {"W2": 0, "W3": 2}), (2, {"W3": 1})):
        block = symmetry[place]
        moved = move(values, symmetry, parts, block.variables, without=place)
        reference = AlignmentReference(mean, weight)
        expected = cost_matrices(moved, targets(moved, block, reference))
        turns = {n: symmetry[o].inverse(parts[o], None) for n, o in turned.items()}
        found = cost_matrices(values, targets(values, block, reference, turns), turns)
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-10, atol=1e-10)
        if flips:
            np.testing.assert_array_equal(found[1], expected[1])
        # Negative control: the draws as they came cost something else.
        bare = cost_matrices(values, targets(values, block, reference))
        assert not np.allclose(bare[0], expected[0])


@pytest.mark.parametrize(
    ("name", "noise"),
    [("three hidden layers", 1.0), ("two hidden layers", 3.0), ("hidden Markov", 0.5)],
)
def test_no_block_is_left_that_could_be_better(rng, name, noise):
    # A round over all blocks, as if none were settled, from where alignment came to rest.
    planted = plant(*CASES[name], rng, noise=noise, lead=(1, 60))
    symmetry, names = planted.group.symmetry, tuple(planted.scales)
    found = align(planted.seen, symmetry, reference="draw", scales=planted.scales, max_sweeps=50)
    assert found.converged
    values = {n: planted.seen[n].values[0] for n in names}
    reference = AlignmentReference(found.reference, {n: np.array(1.0) for n in names})
    parts = tuple(type(p)(*(None if a is None else a[0] for a in p)) for p in found.element)
    again = improve(symmetry, values, reference, parts, np.zeros((60, len(symmetry)), bool))
    before = distance(move(values, symmetry, parts, names), reference, names)
    after = distance(move(values, symmetry, again, names), reference, names)
    np.testing.assert_allclose(after, before, rtol=1e-10)
    np.testing.assert_allclose(found.distance_after[0], before, rtol=1e-10, atol=1e-12)


def test_settled_blocks_are_passed_over_and_unsettle_their_neighbours(rng, monkeypatch):
    symmetry, shapes = chain(3, 5, 4, 6, 2)
    planted = plant(symmetry, shapes, rng, noise=0.1, lead=(1, 20))
    values = {n: planted.seen[n].values[0] for n in planted.scales}
    mean = {n: v[0] for n, v in values.items()}
    reference = AlignmentReference(mean, {n: np.array(1.0) for n in values})
    solved = []
    plain = solving.solve

    def counted(seen, block, part, *rest):
        solved.append((symmetry.index(block), len(part.permutation)))
        return plain(seen, block, part, *rest)

    monkeypatch.setattr("onebasin.analysis.alignment.descent.solve", counted)
    settled = np.ones((20, 3), bool)
    settled[:5, 1] = False
    settled[:5, 2] = False
    parts = planted.group.identity((20,))
    moved = improve(symmetry, values, reference, parts, settled)
    assert solved == [(1, 5), (2, 5)]
    changed = (moved[1].permutation != parts[1].permutation).any(axis=1)
    assert changed[:5].any()
    assert not changed[5:].any()
    # What moved in the second block opens the first again; the third was solved after it.
    last = (moved[2].permutation != parts[2].permutation).any(axis=1)
    np.testing.assert_array_equal(settled, np.stack([~changed, ~last, np.ones(20, bool)], axis=1))


@pytest.mark.parametrize(("dtype", "spread"), [(np.float32, 5.0), (np.float64, 0.0)])
def test_prices_leave_the_optimum(rng, dtype, spread):
    # Costs of parts and of places that differ a lot, large enough for prices.
    costs = rng.normal(size=(3, 300, 300)) + spread * rng.normal(size=(3, 300, 1))
    costs = (costs + spread * rng.normal(size=(3, 1, 300))).astype(dtype)
    found = assign(costs, np.tile(np.arange(300), (3, 1)))
    for row, one in enumerate(costs.astype(np.float64)):
        best = one[linear_sum_assignment(one)].sum()
        assert price(costs, found)[row] == pytest.approx(best, rel=1e-12)
    np.testing.assert_array_equal(np.sort(found, axis=1), np.tile(np.arange(300), (3, 1)))


@pytest.mark.parametrize("flips", [False, True])
def test_the_size_of_pieces_changes_nothing(rng, flips, monkeypatch):
    planted = plant(*chain(4, 5, 4, 2, flips=flips), rng, noise=1.0)
    whole = align(planted.seen, planted.group.symmetry, scales=planted.scales)
    monkeypatch.setattr(solving, "_CACHE", 3 * 8 * 5**2)
    pieces = align(planted.seen, planted.group.symmetry, scales=planted.scales)
    for one, other in zip(whole.element, pieces.element, strict=True):
        np.testing.assert_array_equal(one.permutation, other.permutation)
        if flips:
            np.testing.assert_array_equal(one.signs, other.signs)


@pytest.mark.parametrize("shape", [(6,), (6, 2), (2, 6), (6, 70), (70, 6), (3, 6, 4)])
def test_gather_reorders_every_draw_by_its_own(rng, shape):
    values = rng.normal(size=(9, *shape))
    for axis in (a for a, size in enumerate(shape) if size == 6):
        orders = rng.permuted(np.tile(np.arange(6), (9, 1)), axis=1)
        expected = [np.take(v, o, axis=axis) for v, o in zip(values, orders, strict=True)]
        np.testing.assert_array_equal(gather(values, orders, axis), expected)
        swapped = np.asfortranarray(values)
        np.testing.assert_array_equal(gather(swapped, orders, axis), expected)


def test_an_axis_that_is_not_alone_is_not_turned(rng):
    # Two axes of one array under one permutation, beside another block: draws are moved, as ever.
    block = Exchangeable({"A": (0, 1)})
    assert len(axes_of(block.axes["A"])) == 2
    symmetry = (Exchangeable({"B": 0}), Exchangeable({"A": (0, 1), "B": 1}))
    planted = plant(symmetry, {"A": (4, 4), "B": (3, 4)}, rng)
    found = align(planted.seen, symmetry, reference="draw", scales=planted.scales)
    left = planted.left_over(found.element)
    for part in left:
        assert isinstance(part, Permuted)
        assert (part.permutation == part.permutation[0, 0]).all()
