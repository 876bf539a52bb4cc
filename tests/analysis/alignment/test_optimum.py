"""The cheapest element is found: always for one block, mostly for blocks that share variables, by order for numbers."""

import numpy as np
import pytest

from onebasin.analysis.alignment import align, descent
from onebasin.analysis.alignment.alignment import (
    AlignmentReference,
    cost_matrices,
    distance,
    targets,
)
from onebasin.analysis.alignment.descent import assign, improve
from onebasin.analysis.alignment.draws import move
from onebasin.models.symmetry.blocks import Exchangeable, Group, as_symmetry
from onebasin.models.symmetry.elements import Permuted
from onebasin.models.symmetry.plain import plain_view

from .conftest import CASES, chain, dataset, plant, price

PARTS = {
    "a slice and a factor": (
        as_symmetry("k:1[1:5],b:0[4,*4],c"),
        {"k": (2, 6), "b": (16,), "c": (4,)},
    ),
    "repeats with gaps": (as_symmetry("+-k:0[start=1,count=4,repeats=2,period=5]"), {"k": (11, 2)}),
    "twice": (as_symmetry("k:0[0:4]:0[5:9],m:1"), {"k": (9, 2), "m": (2, 4)}),
    "gates": (as_symmetry("r:0:1[2,*4],i:1[2,*4]"), {"r": (4, 8), "i": (2, 8)}),
}
EXACT = ["mixture", "tanh network", "factors", "complements", "complement", "hidden Markov", *PARTS]


def optimum(group: Group, values: dict[str, np.ndarray], reference: dict) -> np.ndarray:
    """Lowest squared distance of what moves over all elements, by going through them."""
    view = plain_view(group.symmetry, group.shapes)
    best = np.full(next(iter(values.values())).shape[:2], np.inf)
    for element in group.elements():
        lead = best.shape
        everywhere = tuple(
            type(p)(*(None if a is None else np.broadcast_to(a, (*lead, *a.shape)) for a in p))
            for p in element
        )
        moved = view.stack(group.act(everywhere, values), 2)
        gap = sum(((moved[n] - reference[n]) ** 2).reshape(*lead, -1).sum(-1) for n in reference)
        best = np.minimum(best, gap)
    return best


def small(name: str) -> tuple:
    symmetry, shapes = (CASES | PARTS)[name]
    return chain(4, 4, 2, flips=True) if name == "tanh network" else (symmetry, shapes)


@pytest.mark.parametrize("noise", [0.7, 3.0])
@pytest.mark.parametrize("name", EXACT)
def test_one_block_is_solved_exactly(name, noise, rng):
    planted = plant(*small(name), rng, noise=noise, lead=(1, 12))
    found = align(planted.seen, planted.group.symmetry, reference="draw", scales=planted.scales)
    values = {n: v.values for n, v in planted.seen.items()}
    best = optimum(planted.group, values, found.reference)
    np.testing.assert_allclose(found.distance_after, best, rtol=1e-10, atol=1e-10)
    assert found.distance_after[0, 0] == pytest.approx(0.0, abs=1e-20)


@pytest.mark.parametrize(("noise", "least"), [(0.1, 1.0), (1.0, 0.65), (3.0, 0.6)])
def test_shared_variables_are_solved_mostly(noise, least, rng):
    # Measured from one start: 1.00, 0.70, 0.675 of the draws at the optimum; from 20 starts all.
    planted = plant(*chain(3, 4, 4, 2), rng, noise=noise, lead=(1, 40))
    scales, symmetry = planted.scales, planted.group.symmetry
    values = {n: v.values for n, v in planted.seen.items()}
    once = align(planted.seen, symmetry, reference="draw", scales=scales)
    often = align(planted.seen, symmetry, reference="draw", scales=scales, restarts=20)
    moved = {n: values[n] for n in scales}
    best = optimum(planted.group, moved, once.reference)
    assert (once.distance_after >= best - 1e-9).all()
    assert (often.distance_after <= once.distance_after + 1e-9).all()
    rate = (once.distance_after < best + 1e-9).mean()
    assert rate >= least, rate
    rate = (often.distance_after < best + 1e-9).mean()
    assert rate >= 0.95, rate


@pytest.mark.parametrize("case", ["tanh network", "factors", "mixture"])
def test_costs_of_assignments_are_distances_up_to_a_constant(case, rng):
    # With weights that differ by entry, as a Gaussian's do; signs are the better ones.
    symmetry, shapes = small(case)
    group = Group(symmetry, shapes)
    names = tuple(symmetry[0].variables)
    values = {n: rng.normal(size=(6, *shapes[n])) for n in names}
    mean = {n: rng.normal(size=shapes[n]) for n in names}
    weight = {n: rng.uniform(0.1, 5.0, size=shapes[n]) for n in names}
    reference = AlignmentReference(mean, weight)
    costs, signs = cost_matrices(values, targets(values, symmetry[0], reference))
    gaps = []
    for _ in range(20):
        order = group.random(rng, (6,))[0].permutation
        best = None
        if signs is not None:
            best = np.take_along_axis(signs, order[:, :, None], axis=2)[..., 0]
        moved = move(values, symmetry, (Permuted(order, best),), names)
        gaps.append(distance(moved, reference, names) - price(costs, order))
    np.testing.assert_allclose(gaps, np.broadcast_to(gaps[0], (20, 6)), rtol=1e-10, atol=1e-10)


def test_scales_weigh_variables(rng):
    symmetry = (Exchangeable({"a": 0, "b": 0}),)
    a = np.array([[[0.0, 1.0], [0.0, 1.0]]])
    b = np.array([[[0.0, 10.0], [10.0, 0.0]]])
    seen = dataset({"a": a, "b": b})
    by_b = align(seen, symmetry, reference="draw", scales={"a": 1.0, "b": 1.0})
    by_a = align(seen, symmetry, reference="draw", scales={"a": 1.0, "b": 100.0})
    assert by_b.element[0].permutation.tolist() == [[[0, 1], [1, 0]]]
    assert by_a.element[0].permutation.tolist() == [[[0, 1], [0, 1]]]
    np.testing.assert_allclose(by_b.distance_after, [[0.0, 2.0]])
    np.testing.assert_allclose(by_a.distance_after, [[0.0, 0.02]])


def test_certified_assignments_equal_solved_ones(rng):
    costs = rng.normal(size=(300, 5, 5))
    costs[::2] -= 5 * np.eye(5)[rng.permuted(np.tile(np.arange(5), (150, 1)), axis=1)]
    start = np.tile(np.arange(5), (300, 1))
    found = assign(costs, start)
    group = Group((Exchangeable({"a": 0}),), {"a": (5,)})
    orders = np.array([e[0].permutation for e in group.elements()])
    every = np.stack([price(costs, np.tile(order, (300, 1))) for order in orders])
    np.testing.assert_allclose(price(costs, found), every.min(axis=0), rtol=1e-12)


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
