"""How improbable it is that all chains chose one labelling."""

import numpy as np
import pytest

from onebasin.analysis.alignment import align
from onebasin.analysis.alignment.switching import one_labelling
from onebasin.models.symmetry.blocks import Exchangeable, Flip

from .conftest import dataset

PARTS = (Exchangeable({"beta": 0}),)


def posterior(rng, chains, size=3, orders=None):
    beta = 5 * np.arange(size) + 0.3 * rng.normal(size=(chains, 50, size))
    if orders is not None:
        beta = np.stack([b[:, order] for b, order in zip(beta, orders, strict=True)])
    return dataset({"beta": beta})


def test_unlike_coefficients_that_are_declared_interchangeable_are_told(rng):
    found = one_labelling(align(posterior(rng, 4), PARTS))
    assert found.probability == pytest.approx(6.0**-3)
    assert found.improbable
    assert found.sentence == (
        "All 4 chains have one of 6 labellings, to which independent starts come once in 216 times: an order, equal "
        "starts or different priors fixed the labels, or the components are not interchangeable."
    )


def test_two_parts_in_four_chains_are_no_evidence(rng):
    found = one_labelling(align(posterior(rng, 4, 2), PARTS))
    assert found.probability == pytest.approx(1 / 8)
    assert found.sentence.endswith("once in 8 times: no evidence for or against the symmetry.")


def test_whole_signs_have_two_labellings(rng):
    draws = dataset({"b": 3 + rng.normal(size=(8, 50, 5))})
    found = one_labelling(align(draws, (Flip("b"),)))
    assert found.probability == pytest.approx(2.0**-7)
    assert found.improbable


def test_many_parts_have_a_number_that_can_be_read(rng):
    found = one_labelling(align(posterior(rng, 4, 12), PARTS))
    assert "one of 10^9 labellings" in found.sentence


def test_one_chain_shows_no_other_mode(rng):
    found = one_labelling(align(posterior(rng, 1), PARTS))
    assert (found.improbable, found.probability) == (False, 1.0)
    assert found.sentence == "One chain in one labelling: other modes cannot be seen."


def test_chains_of_unlike_labellings_are_not_told(rng):
    orders = [[0, 1, 2], [1, 0, 2], [0, 1, 2], [2, 1, 0]]
    assert one_labelling(align(posterior(rng, 4, 3, orders), PARTS)) is None
