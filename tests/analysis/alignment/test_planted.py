"""Hidden labels are found again, up to one element for all draws, whatever the reference."""

import numpy as np
import pytest

from onebasin.analysis.alignment import align
from onebasin.analysis.alignment.alignment import Moments
from onebasin.models.symmetry.blocks import Exchangeable, as_symmetry
from onebasin.models.symmetry.plain import plain_view

from .conftest import CASES, chain, dataset, equal, plant, same_everywhere

REFERENCES = ("gaussian", "draw", "mean")


@pytest.mark.parametrize(
    ("case", "reference"), [(c, REFERENCES[k % 3]) for k, c in enumerate(CASES)]
)
def test_planted_labels_are_restored(case, reference, rng):
    planted = plant(*CASES[case], rng)
    found = align(planted.seen, planted.group.symmetry, reference=reference, scales=planted.scales)
    assert found.converged
    assert same_everywhere(planted.left_over(found.element))


@pytest.mark.parametrize("case", CASES)
def test_another_posterior_gives_its_own_labels(case, rng):
    planted = plant(*CASES[case], rng)
    other = dataset(planted.clean)
    found = align(planted.seen, planted.group.symmetry, reference=other, scales=planted.scales)
    identity = planted.group.identity(planted.hidden[0][0].shape[:2])
    assert equal(planted.left_over(found.element), identity)
    clean = plain_view(planted.group.symmetry, planted.group.shapes).stack(planted.clean, 2)
    for name, array in found.reference.items():
        np.testing.assert_allclose(array, clean[name].mean(axis=(0, 1)), rtol=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_the_first_draw_keeps_its_labels(case, rng):
    planted = plant(*CASES[case], rng)
    symmetry, scales = planted.group.symmetry, planted.scales
    found = align(planted.seen, symmetry, scales=scales, reference_draw=(1, 3))
    one = tuple(type(p)(*(None if a is None else a[1, 3] for a in p)) for p in found.element)
    assert equal(one, planted.group.identity())


@pytest.mark.parametrize(("parts", "flips"), [(1, True), (16, False), (128, True), (512, False)])
def test_any_number_of_parts(rng, parts, flips):
    # 512 units are few draws of few inputs: what grows with the cube is the assignment problem.
    symmetry, shapes = chain(8, parts, 2, flips=flips)
    lead = (2, 20) if parts < 500 else (1, 6)
    planted = plant(symmetry, shapes, rng, lead=lead)
    found = align(planted.seen, symmetry, scales=planted.scales)
    assert same_everywhere(planted.left_over(found.element))


def test_many_units_whose_gates_share_a_matrix(rng):
    # Both axes of the recurrent matrix: 4,950 exchanges of two units would take hours.
    symmetry = as_symmetry("r:0:1[4,*100],i:1[4,*100],b:0[4,*100]")
    shapes = {"r": (100, 400), "i": (1, 400), "b": (400,)}
    planted = plant(symmetry, shapes, rng, lead=(1, 5), noise=0.7)
    found = align(planted.seen, symmetry, scales=planted.scales)
    assert same_everywhere(planted.left_over(found.element))


@pytest.mark.parametrize(
    ("lead", "reference"), [((1, 1), "gaussian"), ((1, 7), "mean"), ((5, 1), "draw")]
)
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


def test_the_gaussian_has_the_moments_of_the_draws_whatever_they_are_counted_from(rng):
    x = 5 + np.array([0.2, 1.0, 5.0]) * rng.normal(size=(400, 3))
    moments = Moments({"mu": np.zeros(3)}, squares=True)
    for part in np.split(x, 4):
        moments.add({"mu": part})
    found = moments.gaussian({"mu": 1.0})
    np.testing.assert_allclose(found.mean["mu"], x.mean(axis=0))
    np.testing.assert_allclose(1 / found.weight["mu"], x.var(axis=0))


def test_unequal_widths_are_distinguished_by_the_gaussian(rng):
    """Components that differ in their standard deviations only: the best rule looks at the widths."""
    centre, sd = 3.0, np.array([0.2, 1.0, 5.0])
    clean = centre + sd[:, None] * rng.normal(size=(2, 300, 3, 10))
    order = rng.permuted(np.tile(np.arange(3), (2, 300, 1)), axis=-1)
    seen = np.take_along_axis(clean, order[..., None], axis=2)
    found = align(dataset({"mu": seen}), (Exchangeable({"mu": 0}),), reference="gaussian")
    labels = np.take_along_axis(order, np.asarray(found.element[0][0]), axis=-1)
    common = labels.reshape(-1, 3)[0]
    assert (labels == common).all(axis=-1).mean() > 0.95
