"""Symmetries of models with known answers: all found, none besides, nothing left open."""

import numpy as np
import pytest

from onebasin.inference.symmetries.find import find

from .known import MODELS

THREE = MODELS["mixture of three"]
UNBROKEN = "mu[1]~mu[2],sigma[1]~sigma[2],theta[1]~theta[2]"
"""What is left of three components whose first one is unlike the others."""


@pytest.mark.parametrize("read", [False, True], ids=["searched", "read"])
@pytest.mark.parametrize("name", MODELS)
def test_a_models_symmetries_are_found_and_no_others(name, read):
    model = MODELS[name]
    density = model.readable() if read else model.density()
    found = find(density, seconds=np.inf)
    others = {(block.status, block.title) for block in found.blocks if block.status != "live"}
    said = model.as_read if read else {}
    assert set(found.words) == {said.get(word, word) for word in model.live}
    assert others == {(status, said.get(word, word)) for status, word in model.others}
    assert found.open == ()
    assert density.ascents or found.evaluations == density.calls


@pytest.mark.parametrize("seed", [1, 2])
def test_a_gate_that_is_one_to_rounding_far_away_hides_no_exchange(seed):
    model = MODELS["experts whose gate is one to rounding far away"]
    (block,) = find(model.density(), seed=seed, seconds=np.inf).blocks
    assert (block.title, block.status) == (*model.live, "live")
    assert "does not hold at random points far from the posterior" in block.evidence[-1]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (lambda p: 1e9, THREE.live),
        (lambda p: 1e-3 * p["mu"][0], (UNBROKEN,)),
        (lambda p: 1e-6 * p["mu"][0], (UNBROKEN,)),
        (lambda p: 1.0 if p["mu"][0] > 8 else 0.0, (UNBROKEN,)),  # beyond narrow points
    ],
)
def test_a_constant_hides_nothing_and_a_break_of_a_millionth_of_a_nat_is_seen(more, words):
    found = find(THREE.density(more), seconds=np.inf)
    assert found.words == words
    assert {block.status for block in found.blocks} <= {"live", "undecided"}
