"""How far apart draws have to lie to be independent; two-sample distances against SciPy, loops and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.spatial.distance import cdist

from onebasin.analysis.compare.compare import compare
from onebasin.analysis.compare.distances import compare_moments, thin, two_sample
from onebasin.analysis.compare.distances import stride as stride_of
from onebasin.posteriors.draws import Draws

from ..conftest import autoregression


def independent_draws(values, **options):
    """Draws (chain, draw, param) that may be taken for independent."""
    return thin(Draws(("",) * values.shape[2], values), **options)


def energy_distance(a, b):
    return two_sample(a, b, permutations=0).energy


def stride(values):
    return stride_of(Draws(("",) * values.shape[2], values))


@pytest.mark.parametrize("rho", [0.5, 0.9])
def test_stride_leaves_little_correlation(rng, rho):
    step = stride(autoregression(rng, rho, (4, 4000, 1)))
    assert 0.005 < rho**step < 0.07


def test_stride_looks_at_the_slowest_parameters_too(rng):
    fast = autoregression(rng, 0.0, (4, 1000, 20))
    slow = autoregression(rng, 0.95, (4, 1000, 1))
    assert stride(fast) <= 3
    assert stride(np.concatenate([fast, slow], axis=-1)) > 30


def test_unbiased_forms_leave_the_diagonal_out(rng):
    a, b = rng.normal(size=(6, 3)), rng.normal(size=(4, 3))
    within = [cdist(s, s).sum() / (len(s) * (len(s) - 1)) for s in (a, b)]
    expected = 2 * cdist(a, b).mean() - sum(within)
    assert energy_distance(a, b) == pytest.approx(expected, rel=1e-10)


def test_the_p_value_is_that_of_all_relabellings(rng):
    # Every hundredth of the 184756 choices of ten among twenty.
    from itertools import combinations

    a, b = rng.normal(size=(10, 2)), 0.7 + rng.normal(size=(10, 2))
    pooled = np.concatenate([a, b])
    statistic = energy_distance(a, b)
    some = list(combinations(range(20), 10))[::100]
    parts = [(pooled[list(c)], np.delete(pooled, list(c), axis=0)) for c in some]
    exact = np.mean([energy_distance(*each) >= statistic for each in parts])
    found = two_sample(a, b, permutations=1999).energy_p
    error = np.sqrt(exact * (1 - exact) * (1 / len(some) + 1 / 2000))
    assert 0 < abs(found - exact) < 5 * error


def test_ties_count_as_large():
    ones = np.ones((12, 2))
    found = two_sample(ones, ones, permutations=19)
    assert (found.energy, found.energy_p) == (0, 1)


@pytest.mark.parametrize(("rho", "size"), [(0.5, 12), ((0.9, 0.2, 0.2, 0.2), 4)])
def test_false_alarms_of_autocorrelated_chains_are_one_in_twenty(rng, rho, size):
    repeats = 100
    alarms = _alarms(rng, rho, size, repeats, thin=True)
    assert alarms <= stats.binom.isf(1e-5, repeats, 0.05)
    assert alarms >= stats.binom.ppf(1e-5, repeats, 0.05)


def test_chains_that_jump_to_and_fro_raise_no_more_alarms(rng):
    # Every second of their draws would be kept for the number alone, with the correlation 0.36.
    p_values = []
    for seed in range(250):
        chains = (autoregression(rng, -0.6, (2, 200, 3)) for _ in range(2))
        samples = [independent_draws(c, max_draws=200) for c in chains]
        found = two_sample(*samples, permutations=19, seed=seed)
        p_values.append(found.energy_p)
    alarms = (np.array(p_values) <= 0.05).sum()
    assert alarms <= stats.binom.isf(1e-5, 250, 0.05)


def _alarms(rng, rho, size, repeats, *, thin):
    p_values = []
    for seed in range(repeats):
        chains = autoregression(rng, rho, (4, 100, size)), autoregression(rng, rho, (2, 150, size))
        samples = [independent_draws(c, autocorrelated=thin) for c in chains]
        found = two_sample(*samples, permutations=19, seed=seed)
        p_values.append(found.energy_p)
    return (np.array(p_values) <= 0.05).sum()


def test_a_shift_of_half_a_standard_deviation_is_found(rng):
    found = []
    for seed in range(8):
        chains = [autoregression(rng, 0.8, (4, 1000, 3)) for _ in range(2)]
        a, b = (independent_draws(c) for c in chains)
        found.append(two_sample(a, b + 0.5, permutations=99, seed=seed))
    assert all(f.energy_p <= 0.05 for f in found)


VERDICT = ["verdict", "energy_p", "num_draws"]
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
    columns = ["max_abs_z", "max_abs_d", "energy"]
    np.testing.assert_allclose(found[columns], expected[columns], rtol=digits, atol=digits)
    np.testing.assert_allclose(
        found[VERDICT[1:]].astype(float), expected[VERDICT[1:]].astype(float), atol=0.005
    )


def _compare(make_mcmc, posteriors, unit, offset):
    trees = {name: make_mcmc({"mu": unit * (v + offset)}) for name, v in posteriors.items()}
    return compare(trees, truth="truth", permutations=199).table


def test_spread_lost_in_rounding_is_refused_and_does_not_agree(make_mcmc, posteriors):
    with pytest.raises(
        ValueError, match=r"truth.* does not vary: all draws of mu are equal up to rounding"
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
    assert found.energy_p == expected.energy_p
    assert found.energy / unit == pytest.approx(expected.energy, rel=1e-9)
    apart = energy_distance(unit * a, unit * b) / unit
    assert apart == pytest.approx(energy_distance(a, b), rel=1e-9)
