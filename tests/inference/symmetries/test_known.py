"""Symmetries of models with known answers: all found, none besides, nothing left open."""

import numpy as np

from onebasin.inference.symmetries.find import find

from ...each import each
from .functions import FunctionDensity
from .known import MODELS

UNBROKEN = "mu[1]~mu[2],sigma[1]~sigma[2],theta[1]~theta[2]"
"""What is left of three components whose first one is unlike the others."""


@each("name", MODELS)
def test_a_models_symmetries_are_found_and_no_others(name):
    model = MODELS[name]
    density = model.density()
    found = find(density, seconds=np.inf)
    others = {(block.status, block.title) for block in found.blocks if block.status != "live"}
    assert set(found.words) == set(model.live)
    assert others == set(model.others)
    assert found.open == ()
    assert density.ascents or found.evaluations == density.calls


@each("seed", [1, 2])
def test_a_gate_that_is_one_to_rounding_far_away_hides_no_exchange(seed):
    model = MODELS["experts whose gate is one to rounding far away"]
    (block,) = find(model.density(), seed=seed, seconds=np.inf).blocks
    assert (block.title, block.status) == (*model.live, "live")
    assert "farther from the posterior it does not hold" in block.evidence[-1]


def test_a_large_constant_hides_nothing_and_adds_nothing():
    model = MODELS["mixture of three"]
    density = FunctionDensity(model.parameters, lambda p: model.function(p) + 1e9)
    assert find(density, seconds=np.inf).words == model.live


@each("size", [1e-3, 1e-6])
def test_a_break_of_a_millionth_of_a_nat_is_seen(size):
    model = MODELS["mixture of three"]
    density = FunctionDensity(model.parameters, lambda p: model.function(p) + size * p["mu"][0])
    found = find(density, seconds=np.inf)
    assert found.words == (UNBROKEN,)
    assert {block.status for block in found.blocks} <= {"live", "near", "undecided"}


def test_a_break_beyond_narrow_points_is_seen():
    model = MODELS["mixture of three"]

    def broken(p):
        return model.function(p) + (1.0 if p["mu"][0] > 8 else 0.0)

    density = FunctionDensity(model.parameters, broken)
    assert find(density, seconds=np.inf).words == (UNBROKEN,)
