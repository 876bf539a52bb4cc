"""Switching of labels and the gain over noise where both are known, and how improbable one labelling is."""

import math

import numpy as np
import pytest

from onebasin.analysis.alignment import align, switching
from onebasin.analysis.alignment.switching import one_labelling
from onebasin.models.symmetry.blocks import Exchangeable, Group

from .conftest import CASES, chain, dataset


def test_chains_that_keep_their_labels(rng):
    symmetry, shapes = CASES["tanh network"]
    group = Group(symmetry, shapes)
    truth = {n: rng.normal(size=s) for n, s in shapes.items()}
    clean = {n: t + 0.05 * rng.normal(size=(3, 130, *t.shape)) for n, t in truth.items()}
    by_chain = tuple(
        type(p)(*(None if a is None else np.repeat(a, 130, axis=1) for a in p))
        for p in group.random(rng, (3, 1))
    )
    found = switching(align(dataset(group.act(by_chain, clean)), symmetry))
    assert found.labellings == (1, 1, 1)
    assert found.ratio < 0.05
    assert found.noise_ratio is not None
    assert found.noise_ratio > 10 * found.ratio


def test_noise_gains_as_much_as_noise(rng):
    symmetry, shapes = chain(4, 6, 2)
    seen = dataset({n: rng.normal(size=(2, 300, *s)) for n, s in shapes.items()})
    found = switching(align(seen, symmetry))
    # Alignment makes noise smaller too, and no more than it makes shuffled noise: measured 0.6 %.
    assert found.ratio < 0.9
    assert found.ratio == pytest.approx(found.noise_ratio, rel=0.03)


PARTS = (Exchangeable({"beta": 0}),)


def posterior(rng, chains, size=3, orders=None):
    beta = 5 * np.arange(size) + 0.3 * rng.normal(size=(chains, 50, size))
    if orders is not None:
        beta = np.stack([b[:, order] for b, order in zip(beta, orders, strict=True)])
    return dataset({"beta": beta})


@pytest.mark.parametrize(
    ("chains", "size", "probability", "said"),
    [
        (
            4,
            3,
            6.0**-3,
            "one of 6 labellings, which happens to independent starts once in 216 times: an ",
        ),
        (4, 2, 1 / 8, "once in 8 times: no evidence for or against the symmetry."),
        (4, 12, math.factorial(12) ** -3.0, "one of 10^9 labellings"),
        (1, 3, 1.0, "The only chain has one labelling, so it cannot reveal other modes."),
    ],
)
def test_one_labelling_is_as_improbable_as_independent_starts(rng, chains, size, probability, said):
    found = one_labelling(align(posterior(rng, chains, size), PARTS))
    assert found.probability == pytest.approx(probability)
    assert found.improbable == (probability < 0.01)
    assert said in found.sentence
    assert found.improbable == ("or the components are not interchangeable" in found.sentence)
