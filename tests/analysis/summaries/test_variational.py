"""k-hat against its closed form for Gaussians, and the reading of ELBO traces."""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray as xr

from onebasin.analysis.summaries.variational import elbo
from onebasin.posteriors.pareto import pareto_khat

from ...cards import check_page

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


LEVEL = np.concatenate([np.linspace(-90, -11, 20), -10 + 0.05 * np.cos(np.arange(20.0))])
RISING = np.linspace(-90, -10, 40)


@pytest.fixture
def make_fit(make_variational, rng):
    """The builder of ADVI fits by NumPyro whose ELBO, by their own draws, is -10."""

    def build(trace, **attrs):
        draws = rng.normal(size=(1, 400))
        lp = -10 - 0.5 * draws**2
        ratio = rng.normal(size=(1, 400))
        settings = json.dumps({"iterations": 10_000, "elbo_samples": 100})
        attrs = {"engine": "numpyro", "settings": settings, **attrs}
        log_q = lp + 10 + 0.1 * (ratio - ratio.mean())
        return make_variational({"mu": draws}, lp=lp, log_q=log_q, elbo=trace, attrs=attrs)

    return build


def symmetrised(make_fit, **changes):
    tree = make_fit(LEVEL)
    numbers = {
        "final_elbo": [-12.0, -11.0],
        "final_elbo_mcse": [0.1, 0.2],
        "information_lower": [1.7, 1.6],
        "information_lower_mcse": [0.01, 0.02],
        "information_upper": [1.75, 1.79],
        "information_upper_mcse": [0.01, 0.01],
        "symmetrised_elbo_lower": [-10.3, -9.4],
        "symmetrised_elbo_upper": [-10.25, -9.21],
        "settled": np.array([1, 1], np.int8),
    } | changes
    trace = np.stack([LEVEL - 2, LEVEL])
    group = {name: ("chain", np.asarray(values)) for name, values in numbers.items()}
    group |= {n: (("chain", "evaluation"), trace) for n in ("elbo", "symmetrised_elbo")}
    group["iteration"] = ("evaluation", 100 * np.arange(1, 41))
    tree["variational"] = xr.DataTree(xr.Dataset(group))
    settings = json.dumps({"steps": 4000})
    tree.attrs |= {"method": "symmetrised-vi", "log_group_order": np.log(6)}
    tree.attrs["settings"] = settings
    return tree


def test_the_end_of_advi_is_that_of_its_own_draws(make_fit):
    found = elbo(make_fit(LEVEL + 3, converged=1))
    assert found.value == pytest.approx(-10, abs=1e-12)
    assert found.mcse == pytest.approx(0.1 / np.sqrt(400), rel=0.15)
    assert (found.best, found.state) == (0, "converged")
    assert found.trace.shape == (1, 40)
    check_page(found._repr_html_())
    assert repr(found).startswith("✓ Variational fit: converged\nThe ELBO is -10.0")


def test_the_end_of_stans_advi_is_its_last_evaluation_with_the_error_of_lp(make_fit):
    tree = make_fit(LEVEL + 3, engine="stan")
    found = elbo(tree)
    assert found.value == LEVEL[-1] + 3
    assert found.mcse == pytest.approx(float(tree.sample_stats.lp.std(ddof=1)) / 10)


def test_an_elbo_that_still_rises_is_not_called_converged(make_fit):
    found = elbo(make_fit(RISING, converged=1))
    assert found.converged
    assert found.state == "rising"
    assert repr(found).startswith("! Variational fit: still rising")


def test_a_rule_that_is_not_met_is_no_alarm_where_the_elbo_is_level(make_fit):
    found = elbo(make_fit(LEVEL, converged=0))
    assert (found.converged, found.state) == (False, "level")


@pytest.mark.parametrize("trace", [LEVEL[-6:], LEVEL + 9 * np.sin(np.arange(40.0))])
def test_too_few_or_too_noisy_evaluations_do_not_pass(make_fit, trace):
    found = elbo(make_fit(trace, converged=0))
    assert found.state == "unfinished"


def test_an_elbo_that_is_not_finite_has_failed(make_fit):
    found = elbo(make_fit(np.array([-3.0, np.nan]), engine="stan"))
    assert found.state == "failed"
    assert repr(found).startswith("✗ Variational fit: failed\nThe fit has failed")


def test_a_symmetrised_fit_has_bounds_and_a_best_fit(make_fit):
    found = elbo(symmetrised(make_fit))
    assert (found.best, found.value) == (1, -9.4)
    assert found.mcse == pytest.approx(0.22)
    assert "of the best of 2 fits (fit 1) is -9.40 ± 0.22 nats" in found.sentences[0]
    check_page(found._repr_html_())
