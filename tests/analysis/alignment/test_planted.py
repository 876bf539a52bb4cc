"""Hidden labels are found again, up to one element for all draws, whatever the reference."""

import numpy as np

from onebasin.analysis.alignment import align
from onebasin.models.symmetry.blocks import Exchangeable

from ...each import each
from .conftest import CASES, chain, dataset, equal, plant, same_everywhere

REFERENCES = ("gaussian", "draw", "mean")


@each(("case", "reference"), [(c, REFERENCES[k % 3]) for k, c in enumerate(CASES)])
def test_planted_labels_are_restored(case, reference, rng):
    planted = plant(*CASES[case], rng)
    found = align(planted.seen, planted.group.symmetry, reference=reference, scales=planted.scales)
    assert found.converged
    assert same_everywhere(planted.left_over(found.element))


@each("case", CASES)
def test_another_posterior_gives_its_own_labels(case, rng):
    planted = plant(*CASES[case], rng)
    other = dataset(planted.clean)
    found = align(planted.seen, planted.group.symmetry, reference=other, scales=planted.scales)
    identity = planted.group.identity(planted.hidden[0][0].shape[:2])
    assert equal(planted.left_over(found.element), identity)
    for name, array in found.reference.items():
        np.testing.assert_allclose(array, planted.clean[name].mean(axis=(0, 1)), rtol=1e-12)


@each("case", CASES)
def test_the_first_draw_keeps_its_labels(case, rng):
    planted = plant(*CASES[case], rng)
    found = align(
        planted.seen, planted.group.symmetry, scales=planted.scales, reference_draw=(1, 3)
    )
    one = tuple(type(p)(*(None if a is None else a[1, 3] for a in p)) for p in found.element)
    assert equal(one, planted.group.identity())


@each(("parts", "flips"), [(1, True), (16, False), (128, True), (512, False)])
def test_any_number_of_parts(rng, parts, flips):
    # 512 units are few draws of few inputs: what grows with the cube is the assignment problem.
    symmetry, shapes = chain(8, parts, 2, flips=flips)
    lead = (2, 20) if parts < 500 else (1, 6)
    planted = plant(symmetry, shapes, rng, lead=lead)
    found = align(planted.seen, symmetry, scales=planted.scales)
    assert same_everywhere(planted.left_over(found.element))


@each(("lead", "reference"), [((1, 1), "gaussian"), ((1, 7), "mean"), ((5, 1), "draw")])
def test_one_draw_and_one_chain(rng, lead, reference):
    planted = plant(*CASES["two hidden layers"], rng, lead=lead)
    found = align(planted.seen, planted.group.symmetry, reference=reference)
    assert found.converged
    assert same_everywhere(planted.left_over(found.element))


def test_without_the_signs_no_labelling_is_restored(rng):
    # Negative control: half of a unit's images under the true group stay far from the reference.
    planted = plant(*CASES["tanh network"], rng)
    blocks = tuple(Exchangeable(block.axes) for block in planted.group.symmetry)
    wrong = align(planted.seen, blocks, scales=planted.scales)
    right = align(planted.seen, planted.group.symmetry, scales=planted.scales)
    assert wrong.distance_after.mean() > 10 * right.distance_after.mean()
