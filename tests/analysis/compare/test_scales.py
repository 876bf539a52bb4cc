"""The same posteriors in another unit, and far from zero: the same verdict."""

import numpy as np
import pytest

from onebasin.analysis.compare.compare import compare
from onebasin.analysis.compare.distances import compare_moments, energy_distance, two_sample

VERDICT = ["verdict", "energy_p", "mmd_p", "num_draws"]
PLACED = [(1e-300, 0.0), (1e160, 0.0), (1e-150, 1e12)]


@pytest.fixture(scope="module")
def posteriors():
    """A truth, one that agrees with it, and one that does not."""
    rng, at = np.random.default_rng(20170411), np.array([0.0, 1.0, -2.0])
    truth, same, other = rng.normal(size=(3, 4, 300, 3)) + at
    return {"truth": truth, "same": same, "other": other + np.array([0.0, 0.0, 0.5])}


@pytest.fixture(scope="module")
def expected(make_mcmc, posteriors):
    """Their comparison in a plain unit, near zero."""
    return _compare(make_mcmc, posteriors, 1.0, 0.0)


@pytest.mark.parametrize(("unit", "offset"), PLACED)
def test_compare_has_the_same_verdict(make_mcmc, posteriors, expected, unit, offset):
    found = _compare(make_mcmc, posteriors, unit, offset)
    assert expected["verdict"].tolist()[1:3] == ["agree", "differ"]
    assert found["verdict"].tolist() == expected["verdict"].tolist()
    digits = 1e-2 if offset else 1e-8
    columns = ["max_abs_z", "max_abs_d", "energy", "mmd"]
    np.testing.assert_allclose(found[columns], expected[columns], rtol=digits, atol=digits)
    np.testing.assert_allclose(
        found[VERDICT[1:]].astype(float), expected[VERDICT[1:]].astype(float), atol=0.005
    )


def _compare(make_mcmc, posteriors, unit, offset):
    trees = {name: make_mcmc({"mu": unit * (v + offset)}) for name, v in posteriors.items()}
    return compare(trees, truth="truth", permutations=199).table


def test_spread_lost_in_rounding_is_refused_and_does_not_agree(make_mcmc, posteriors):
    with pytest.raises(
        ValueError, match=r"truth.* does not vary: the draws of mu are the same up to rounding"
    ):
        _compare(make_mcmc, posteriors, 1.0, 1e17)


def test_constants_are_held_against_their_own_size(make_mcmc, posteriors):
    fixed = np.full((4, 300), 3e-200)
    a, b = (make_mcmc({"mu": posteriors["truth"], "fixed": f}) for f in (fixed, 1.5 * fixed))
    assert compare_moments(a, b).verdict == "differ"
    rounded = make_mcmc({"mu": posteriors["truth"], "fixed": fixed * (1 + 1e-15)})
    assert compare_moments(a, rounded).verdict == "agree"


@pytest.mark.parametrize("unit", [1e-300, 1e300])
def test_two_samples_are_compared_in_every_unit(rng, unit):
    a, b = rng.normal(size=(2, 60, 3))
    b += 0.3
    expected, found = (two_sample(u * a, u * b, permutations=99) for u in (1.0, unit))
    assert (found.energy_p, found.mmd_p) == (expected.energy_p, expected.mmd_p)
    assert found.energy / unit == pytest.approx(expected.energy, rel=1e-9)
    assert found.mmd == pytest.approx(expected.mmd, rel=1e-9)
    assert energy_distance(unit * a, unit * b) / unit == pytest.approx(
        energy_distance(a, b), rel=1e-9
    )


def test_two_samples_are_compared_far_from_zero(rng):
    a, b = rng.normal(size=(2, 60, 3))
    expected, found = (two_sample(a + o, b + o, permutations=99) for o in (0.0, 1e12))
    assert (found.energy, found.mmd) == pytest.approx((expected.energy, expected.mmd), abs=1e-3)
    assert (found.energy_p, found.mmd_p) == pytest.approx(
        (expected.energy_p, expected.mmd_p), abs=0.01
    )
