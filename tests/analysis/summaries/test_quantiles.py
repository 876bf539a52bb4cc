"""Moments and quantiles with their Monte Carlo errors: against arviz_stats, closed forms, offsets and constants."""

import numpy as np
import pytest
from arviz_stats.base import array_stats
from scipy.stats import norm

from onebasin.analysis.summaries.quantiles import DESCRIBED, QUANTILES, describe
from onebasin.posteriors.draws import Draws

from ..conftest import autoregression


def correlated(rng, shape=(4, 500, 3)):
    return autoregression(rng, 0.6, shape)


def named(values):
    return Draws(tuple(f"x[{place}]" for place in range(values.shape[2])), values)


def test_errors_of_chains_are_those_of_arviz(rng):
    values = correlated(rng)
    table = describe(named(values))
    assert list(table.columns) == list(DESCRIBED)
    rows = np.moveaxis(values, -1, 0)
    for name, probability in QUANTILES.items():
        wanted = array_stats.mcse(rows, method="quantile", prob=probability)
        np.testing.assert_allclose(table[f"mcse_{name}"], wanted, rtol=1e-10)
    for name in ("mean", "sd"):
        wanted = array_stats.mcse(rows, method=name)
        np.testing.assert_allclose(table[f"mcse_{name}"], wanted, rtol=1e-10)
    np.testing.assert_allclose(table["rhat"], array_stats.rhat(rows, method="rank"), rtol=1e-10)
    np.testing.assert_allclose(table["q25"], np.quantile(values, 0.25, axis=(0, 1)), rtol=1e-10)


def test_independent_draws_all_count(rng):
    values = rng.normal(2.0, 3.0, size=(1, 20_000, 2))
    table = describe(named(values), independent=True)
    n = values.shape[1]
    assert (table[["ess_bulk", "ess_tail"]] == n).all(axis=None)
    assert table["rhat"].isna().all()
    np.testing.assert_allclose(table["mcse_mean"], values.std(axis=(0, 1), ddof=1) / n**0.5)
    np.testing.assert_allclose(table["mcse_sd"], 3 / (2 * n) ** 0.5, rtol=0.1)
    density = norm.pdf(norm.ppf(0.05)) / 3
    np.testing.assert_allclose(table["mcse_q5"], (0.05 * 0.95 / n) ** 0.5 / density, rtol=0.25)


def test_offset_and_unit_change_nothing_else(rng):
    values = correlated(rng)
    plain, moved = describe(named(values)), describe(named(1e9 + 1e-3 * values))
    for name in ("rhat", "ess_bulk", "ess_tail"):
        np.testing.assert_allclose(plain[name], moved[name], rtol=1e-3)
    for name in ("sd", "mcse_mean", "mcse_q5"):
        np.testing.assert_allclose(1e-3 * plain[name], moved[name], rtol=1e-2)
    assert moved.loc["x[0]", "q50"] == pytest.approx(1e9, rel=1e-9)


def test_a_constant_has_no_error_and_a_single_chain_the_r_hat_of_its_halves(rng):
    values = correlated(rng, shape=(1, 400, 2))
    values[..., 1] = 2.5
    for table in (describe(named(values)), describe(named(values), independent=True)):
        still = table.loc["x[1]"]
        assert (still["mean"], still["sd"], still["mcse_q95"]) == (2.5, 0.0, 0.0)
        assert np.isnan(still["rhat"])
    assert 0.99 < describe(named(values)).loc["x[0]", "rhat"] < 1.2


def test_there_may_be_nothing_to_describe():
    assert describe(Draws((), np.empty((2, 10, 0)))).empty
