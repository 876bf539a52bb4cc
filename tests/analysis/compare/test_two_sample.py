"""How far apart draws have to lie to be independent; two-sample distances against SciPy, loops and closed forms."""

import numpy as np
import pytest
from scipy import stats
from scipy.spatial.distance import cdist

from onebasin.analysis.compare.distances import MIN_DRAWS, energy_distance, thin, two_sample
from onebasin.analysis.compare.distances import stride as stride_of
from onebasin.posteriors.draws import Draws

from ..conftest import autoregression


def independent_draws(values, **options):
    """Draws (chain, draw, param) that may be taken for independent."""
    return thin(Draws(("",) * values.shape[2], values), **options)


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


def test_chains_that_stand_apart_leave_no_more_than_a_draw_each(rng):
    apart = rng.normal(size=(4, 300, 2)) + 50 * np.arange(4)[:, None, None]
    kept = independent_draws(apart)
    assert len(kept) <= 8
    found = two_sample(kept, kept + 1)
    assert np.isnan([found.energy_p, found.mmd_p]).all()
    assert np.isfinite(found.energy)


def test_independent_draws_keep_all_where_they_are_independent(rng):
    values = rng.normal(size=(2, 100, 3))
    kept = independent_draws(values, autocorrelated=False)
    assert sorted(map(tuple, kept)) == sorted(map(tuple, values.reshape(-1, 3)))
    assert len(independent_draws(values, autocorrelated=False, max_draws=50)) == 50


def test_constants_do_not_count(rng):
    values = autoregression(rng, 0.9, (2, 500, 2))
    fixed = np.concatenate([values, np.ones((2, 500, 1))], axis=-1)
    assert stride(np.ones((2, 50, 3))) == 1
    assert abs(stride(fixed) - stride(values)) <= 1


def test_unbiased_forms_leave_the_diagonal_out(rng):
    a, b = rng.normal(size=(6, 3)), rng.normal(size=(4, 3))
    within = [
        np.mean(
            [np.linalg.norm(s[i] - s[j]) for i in range(len(s)) for j in range(len(s)) if i != j]
        )
        for s in (a, b)
    ]
    expected = 2 * cdist(a, b).mean() - sum(within)
    assert energy_distance(a, b) == pytest.approx(expected, rel=1e-10)


def test_mmd_is_that_of_a_double_loop_with_the_median_distance_as_its_width(rng):
    a, b = rng.normal(size=(7, 2)), 1 + rng.normal(size=(5, 2))
    pooled = np.concatenate([a, b])
    width = np.median([np.linalg.norm(x - y) for i, x in enumerate(pooled) for y in pooled[:i]])

    def mean(s, t, skip):
        values = [
            np.exp(-np.sum((x - y) ** 2) / (2 * width**2))
            for i, x in enumerate(s)
            for j, y in enumerate(t)
            if not (skip and i == j)
        ]
        return np.mean(values)

    expected = mean(a, a, True) + mean(b, b, True) - 2 * mean(a, b, False)
    assert two_sample(a, b, permutations=1).mmd == pytest.approx(expected, rel=1e-10)


def test_two_sample_collects_the_single_distances(rng):
    a, b = rng.normal(size=(30, 4)), rng.normal(size=(20, 4))
    found = two_sample(a, b, permutations=9)
    assert found.energy == pytest.approx(energy_distance(a, b), rel=1e-10)
    assert found == two_sample(a, b, permutations=9)


def test_the_p_value_is_that_of_all_relabellings(rng):
    # Every hundredth of the 184756 choices of ten among twenty.
    from itertools import combinations

    a, b = rng.normal(size=(10, 2)), 0.7 + rng.normal(size=(10, 2))
    pooled = np.concatenate([a, b])
    statistic = energy_distance(a, b)
    some = list(combinations(range(20), 10))[::100]
    exact = np.mean(
        [
            energy_distance(pooled[list(c)], np.delete(pooled, list(c), axis=0)) >= statistic
            for c in some
        ]
    )
    found = two_sample(a, b, permutations=1999).energy_p
    error = np.sqrt(exact * (1 - exact) * (1 / len(some) + 1 / 2000))
    assert 0 < abs(found - exact) < 5 * error


def test_equal_samples_are_no_evidence(rng):
    a = rng.normal(size=(15, 2))
    found = two_sample(a, a.copy(), permutations=99)
    assert found.energy_p > 0.9
    assert found.energy <= 0


def test_ties_count_as_large():
    ones = np.ones((12, 2))
    found = two_sample(ones, ones, permutations=19)
    assert (found.energy, found.mmd) == (0, 0)
    assert (found.energy_p, found.mmd_p) == (1, 1)


@pytest.mark.parametrize(("rho", "size"), [(0.5, 12), ((0.9, 0.2, 0.2, 0.2), 4)])
def test_false_alarms_of_autocorrelated_chains_are_one_in_twenty(rng, rho, size):
    repeats = 100
    alarms = _alarms(rng, rho, size, repeats, thin=True)
    assert (alarms <= stats.binom.isf(1e-5, repeats, 0.05)).all()
    assert (alarms >= stats.binom.ppf(1e-5, repeats, 0.05)).all()


def test_permuting_autocorrelated_draws_as_they_are_would_raise_false_alarms(rng):
    alarms = _alarms(rng, 0.7, 5, 15, thin=False)
    assert (alarms > stats.binom.isf(1e-5, 15, 0.05)).all()


def test_chains_that_jump_to_and_fro_raise_no_more_alarms(rng):
    # Every second of their draws would be kept for the number alone, with the correlation 0.36.
    p_values = []
    for seed in range(250):
        chains = (autoregression(rng, -0.6, (2, 200, 3)) for _ in range(2))
        samples = [independent_draws(c, max_draws=200) for c in chains]
        found = two_sample(*samples, permutations=19, seed=seed)
        p_values.append((found.energy_p, found.mmd_p))
    alarms = (np.array(p_values) <= 0.05).sum(axis=0)
    assert (alarms <= stats.binom.isf(1e-5, 250, 0.05)).all()


def _alarms(rng, rho, size, repeats, *, thin):
    p_values = []
    for seed in range(repeats):
        chains = autoregression(rng, rho, (4, 100, size)), autoregression(rng, rho, (2, 150, size))
        samples = [independent_draws(c, autocorrelated=thin) for c in chains]
        found = two_sample(*samples, permutations=19, seed=seed)
        p_values.append((found.energy_p, found.mmd_p))
    return (np.array(p_values) <= 0.05).sum(axis=0)


def test_a_shift_of_half_a_standard_deviation_is_found(rng):
    found = []
    for seed in range(8):
        chains = [autoregression(rng, 0.8, (4, 1000, 3)) for _ in range(2)]
        a, b = (independent_draws(c) for c in chains)
        found.append(two_sample(a, b + 0.5, permutations=99, seed=seed))
    assert all(f.energy_p <= 0.05 and f.mmd_p <= 0.05 for f in found)


def test_one_draw_is_no_distribution():
    with pytest.raises(ValueError, match=r"`a` has 1 draws; a distribution needs two"):
        two_sample(np.ones((1, 2)), np.ones((5, 2)))
    assert MIN_DRAWS == 10


def test_a_distance_that_is_no_number_has_no_p_value(monkeypatch):
    from onebasin.analysis.compare import distances as module

    a, b = np.random.default_rng(3).normal(size=(2, 40, 2))
    real = module._statistics
    spoilt = np.array([[1.0], [np.nan]])
    monkeypatch.setattr(module, "_statistics", lambda *given: spoilt * real(*given))
    found = module.two_sample(a, b, permutations=19)
    assert np.isfinite(found.energy_p)
    assert np.isnan(found.mmd_p)
