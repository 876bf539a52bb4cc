"""Settled blocks are passed over, and moves unsettle their neighbours."""

import numpy as np

from onebasin.analysis.alignment import descent
from onebasin.analysis.alignment.alignment import AlignmentReference
from onebasin.analysis.alignment.descent import improve

from .conftest import chain, plant


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
