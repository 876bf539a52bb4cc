"""Shortcuts change no result: settled blocks are passed over, and no block is left that could be better."""

import numpy as np
import pytest

from onebasin.analysis.alignment import align, descent
from onebasin.analysis.alignment.descent import improve
from onebasin.analysis.alignment.draws import move
from onebasin.analysis.alignment.reference import AlignmentReference, distance

from .conftest import CASES, chain, plant


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
    plain = descent.solve

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
