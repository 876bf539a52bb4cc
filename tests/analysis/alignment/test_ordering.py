"""Components that are single numbers are put in order, which is the cheapest assignment."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from onebasin.analysis.alignment import align
from onebasin.analysis.alignment.costs import AlignmentReference
from onebasin.analysis.alignment.solving import MOST_MATCHED, in_order
from onebasin.models.symmetry.blocks import Exchangeable
from onebasin.models.symmetry.elements import Permuted

from ...each import each
from .conftest import dataset


@each("flips", [False, True])
@each("size", [1, 2, 7, 60])
def test_order_is_the_cheapest_assignment(size, flips, rng):
    draws, mean = rng.normal(size=(40, size)), rng.normal(size=size)
    block = Exchangeable({"mu": 0}, flips=flips)
    start = block.identity((40,), size)
    found = in_order(
        {"mu": draws}, block, start, AlignmentReference({"mu": mean}, {"mu": np.asarray(1.0)})
    )
    moved = block.act({"mu": draws}, *found)["mu"]
    for draw, best in zip(draws, moved, strict=True):
        costs = np.square(draw - mean[:, None])
        costs = np.minimum(costs, np.square(draw + mean[:, None])) if flips else costs
        assert np.square(best - mean).sum() == pytest.approx(
            costs[linear_sum_assignment(costs)].sum()
        )


def test_equals_stay_where_they_are(rng):
    draws = rng.normal(size=(10, 3))[:, [0, 1, 1]]
    present = Permuted(np.tile([0, 2, 1], (10, 1)))
    reference = AlignmentReference({"mu": np.array([5.0, 1.0, 1.0])}, {"mu": np.asarray(1.0)})
    found = in_order({"mu": draws}, Exchangeable({"mu": 0}), present, reference)
    again = in_order({"mu": draws}, Exchangeable({"mu": 0}), found, reference)
    np.testing.assert_array_equal(found.permutation, again.permutation)


@each(("reference", "flips"), [("gaussian", True), ("mean", False), ("draw", True)])
def test_many_single_numbers_are_aligned_by_order(reference, flips, rng):
    size = MOST_MATCHED + 22
    values = np.linspace(5, 5 + size, size) + rng.normal(size=(2, 30, size))
    seen = rng.permuted(values, axis=2) * (rng.choice([-1, 1], size=values.shape) if flips else 1)
    calls = []
    found = align(
        dataset({"mu": seen}),
        (Exchangeable({"mu": 0}, flips=flips),),
        reference=reference,
        progress=lambda done, total: calls.append((done, total)),
    )
    aligned = found.posterior["posterior"]["mu"].values
    ranks = np.argsort(np.argsort(np.abs(aligned) if flips else aligned, axis=-1), axis=-1)
    assert (ranks == ranks[0, 0]).all()
    assert found.converged
    assert calls[-1][0] == calls[-1][1]


def test_thousands_of_single_numbers_take_no_matrix(rng):
    values = rng.permuted(np.arange(3000.0) + rng.normal(size=(1, 40, 3000)), axis=2)
    found = align(dataset({"mu": values}), (Exchangeable({"mu": 0}),))
    assert found.converged


def test_progress_is_told_every_few_draws_where_parts_are_many(rng, monkeypatch):
    monkeypatch.setattr("onebasin.analysis.alignment.descent._AT_A_STRETCH", 2**15)
    values = rng.permuted(rng.normal(size=(1, 200, 60, 2)) + 20 * np.arange(60)[:, None], axis=2)
    block, calls = (Exchangeable({"mu": 0}),), []
    align(dataset({"mu": values}), block, reference="draw", progress=lambda d, _: calls.append(d))
    assert len(calls) > 2
    assert calls == sorted(calls)
