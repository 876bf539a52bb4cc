"""Shortcuts change no result: turned references, settled blocks, prices on parts, costs in pieces."""

import numpy as np
import pytest

from onebasin.analysis.alignment import align, solving
from onebasin.analysis.alignment.descent import improve
from onebasin.analysis.alignment.draws import move
from onebasin.analysis.alignment.reference import (
    AlignmentReference,
    cost_matrices,
    distance,
    targets,
)
from onebasin.models.symmetry.group import Group

from .conftest import CASES, chain, plant


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
