"""k-hat against its closed form for Gaussians, and the reading of ELBO traces."""

import numpy as np
import pytest

from onebasin.analysis.summaries.variational import elbo_trace, log_ratios
from onebasin.posteriors.pareto import khat_limit, pareto_khat
from onebasin.posteriors.view import as_view

DRAWS = 4000


def _log_ratio(rng, scale):
    """log N(x; 0, 1) - log N(x; 0, scale^2) of draws from the latter."""
    x = scale * rng.normal(size=DRAWS)
    return -0.5 * x**2 + 0.5 * (x / scale) ** 2 + np.log(scale)


def test_pareto_khat_of_a_narrow_approximation_is_one_minus_its_variance(rng):
    # P(ratio > u) falls like u^(-1 / (1 - scale^2)) up to a logarithm, which makes k-hat too small
    # in finite samples: over 40 seeds by 0.08 in the mean.
    khats = [pareto_khat(_log_ratio(rng, 0.5)) for _ in range(20)]
    assert np.mean(khats) == pytest.approx(1 - 0.5**2, abs=0.2)


def test_pareto_khat_of_a_wide_approximation_is_negative(rng):
    # Its ratios are bounded. With the sign of the ratio turned round this would be the bad case.
    # Over 40 seeds it lay between -1.93 and -1.51.
    assert -2.5 < pareto_khat(_log_ratio(rng, 1.5)) < -1.0


def test_pareto_khat_of_special_ratios(rng):
    ratio = _log_ratio(rng, 0.6)
    assert pareto_khat(ratio + 1e3) == pytest.approx(pareto_khat(ratio), abs=1e-8)
    assert pareto_khat(-3.0 + 1e-13 * rng.normal(size=DRAWS)) == 0.0  # of an exact approximation
    assert np.isnan(pareto_khat(rng.normal(size=29)))  # which have no tail
    assert np.isfinite(pareto_khat(rng.normal(size=30)))
    assert pareto_khat(1e4 * rng.normal(size=1000)) > 50  # beyond the range of doubles


@pytest.mark.parametrize("bad", [np.nan, -np.inf])
def test_pareto_khat_propagates_what_is_not_finite(rng, bad):
    ratio = _log_ratio(rng, 0.9)
    ratio[7] = bad
    assert np.isnan(pareto_khat(ratio))


@pytest.mark.parametrize(("draws", "limit"), [(100, 0.5), (1000, 2 / 3), (100_000, 0.7)])
def test_khat_limit_grows_with_the_draws_up_to_its_cap(draws, limit):
    assert khat_limit(draws) == pytest.approx(limit)


def test_log_ratios_and_elbo_are_none_where_not_recorded(make_mcmc, rng):
    view = as_view(make_mcmc({"mu": rng.normal(size=(2, 30))}))
    assert log_ratios(view) is None
    assert elbo_trace(view) is None


def test_elbo_trace_comes_with_its_iterations(make_variational, rng):
    one = rng.normal(size=(1, 30))
    view = as_view(make_variational({"mu": one}, lp=one, log_q=2 * one))
    iteration, elbo = elbo_trace(view)
    assert iteration.tolist() == [100, 200, 300, 400]
    assert elbo[-1] == -10.25
    np.testing.assert_array_equal(log_ratios(view), -one[0])
