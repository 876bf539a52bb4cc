"""How far apart draws have to lie to be taken for independent."""

import numpy as np

from onebasin.analysis.compare import thinning
from onebasin.analysis.compare.two_sample import two_sample
from onebasin.posteriors.draws import Draws

from ...each import each
from ..conftest import autoregression


def independent_draws(values, **options):
    """Draws (chain, draw, param) that may be taken for independent."""
    return thinning.thin(Draws(("",) * values.shape[2], values), **options)


def stride(values):
    return thinning.stride(Draws(("",) * values.shape[2], values))


@each("rho", [0.5, 0.9])
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
