"""Points moved to their nearest copy: exact for one block, the same point for all copies, one domain a copy."""

import jax
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist

from onebasin.inference.modes import optima as module
from onebasin.inference.modes.optima import Folding
from onebasin.models import Exchangeable, Target


def target(parts: int, *, flips: bool = False) -> Target:
    def model() -> None:
        numpyro.sample("a", dist.Normal(0, 1).expand([parts]).to_event(1))
        numpyro.sample("b", dist.Normal(0, 1).expand([2, parts]).to_event(2))
        numpyro.sample("c", dist.Normal(0, 1))

    return Target(
        "parts", numpyro_model=model, symmetry=(Exchangeable({"a": 0, "b": 1}, flips=flips),)
    )


@pytest.fixture(params=[False, True], ids=["orders", "signs"])
def folding(request) -> Folding:
    with jax.enable_x64(True):
        return Folding.of(target(3, flips=request.param))


def points(num: int, folding: Folding) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((num, folding.density.size))


def test_assignment_and_trying_all_elements_agree(folding, monkeypatch):
    some, size = points(200, folding), folding.density.size
    reference, weight = points(1, folding)[0] + 0.3, np.linspace(0.5, 2, size)
    every, home = folding.fold(some, reference, weight)
    monkeypatch.setattr(module, "ENUMERATED", 1)
    assigned, also = folding.fold(some, reference, weight)
    np.testing.assert_allclose(assigned, every)
    np.testing.assert_array_equal(home, also)
    assert 0 < home.sum() < 200


def test_all_copies_of_a_point_fold_to_one_of_them(folding):
    some, size = points(20, folding), folding.density.size
    reference, weight = points(21, folding)[-1], np.ones(size)
    element = folding.layout.random(jax.random.key(1))
    moved = np.asarray(jax.vmap(folding.layout.act, (None, 0))(element, some))
    assert not np.allclose(moved, some)
    np.testing.assert_allclose(
        folding.fold(moved, reference, weight)[0], folding.fold(some, reference, weight)[0]
    )


def test_one_copy_in_so_many_is_at_home(folding):
    some = points(20000, folding)
    reference = points(1, folding)[0]
    share = folding.fold(some, reference, np.ones(len(reference)))[1].mean()
    order = np.exp(folding.log_order)
    assert share == pytest.approx(1 / order, abs=5 * np.sqrt(1 / order / 20000))


def test_a_symmetric_point_has_fewer_copies(folding):
    assert folding.log_copies(points(1, folding)[0]) == pytest.approx(folding.log_order)
    flips = folding.layout.blocks[0].has_flips
    assert folding.log_copies(np.zeros(folding.density.size)) == pytest.approx(0)
    halves = folding.density.ravel({"a": np.array([1.0, 1, 2]), "b": np.ones((2, 3)), "c": 0.0})
    assert np.exp(folding.log_order - folding.log_copies(np.asarray(halves))) == pytest.approx(2), (
        flips
    )
