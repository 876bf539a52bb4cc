"""R-hat, ESS, moments and quantiles with their errors: against known answers, arviz_stats, offsets and constants."""

import numpy as np
import pytest
from arviz_stats.base import array_stats
from scipy.stats import norm

from onebasin.analysis.summaries.quantiles import DESCRIBED, QUANTILES, describe
from onebasin.analysis.summaries.summary import is_constant, rhats, summary
from onebasin.posteriors.draws import Draws

from ...each import each
from ..conftest import autoregression

CHAINS, DRAWS = 4, 4000


def _table(values):
    return summary(Draws(("x",), values[..., None])).loc["x"]


@each("phi", [-0.3, 0.8])
def test_summary_finds_the_ess_of_an_autoregressive_chain(rng, phi):
    # For the mean it is N (1 - phi) / (1 + phi).
    row = _table(autoregression(rng, phi, (CHAINS, DRAWS)))
    known = CHAINS * DRAWS * (1 - phi) / (1 + phi)
    # Geyer's estimator at these sizes, over 40 seeds: ESS off by at most 17 %, MCSE by 10 %.
    assert row["ess_bulk"] == pytest.approx(known, rel=0.25)
    assert row["mcse_mean"] == pytest.approx(1 / np.sqrt(known), rel=0.15)
    assert 0.99 < row["rhat"] < 1.01
    assert abs(row["mean"]) < 5 * row["mcse_mean"]


def test_summary_gives_constants_no_diagnostics(rng):
    values = np.stack([rng.normal(size=(2, 50)), np.full((2, 50), 0.7)], axis=-1)
    table = summary(Draws(("free", "fixed"), values))
    assert np.isfinite(table.loc["free"]).all()
    assert table.loc["fixed", "mean"] == pytest.approx(0.7)
    assert table.loc["fixed", ["mcse_mean", "mcse_sd", "rhat", "ess_bulk", "ess_tail"]].isna().all()


def test_summary_calls_chains_that_stand_still_apart_infinitely_bad():
    values = np.repeat([[0.0], [1.0]], 50, axis=1)
    row = _table(values)
    assert row["rhat"] == np.inf


def test_is_constant_sees_through_rounding_but_not_through_small_scales(rng):
    vectors = rng.normal(size=(2, 50, 3))
    norms = np.linalg.norm(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True), axis=-1)
    tiny = 1e-20 * rng.normal(size=(2, 50))
    zero = np.zeros((2, 50))
    assert is_constant(np.stack([norms, tiny, zero], axis=-1)).tolist() == [True, False, True]


def test_rhat_of_one_quantity_agrees_with_the_table(rng):
    values = rng.normal(size=(CHAINS, 100))
    assert rhats(values[..., None])[0] == _table(values)["rhat"]
    assert np.isnan(rhats(np.ones((CHAINS, 100, 1))))


def test_summary_has_the_columns_of_arviz(rng):
    from arviz_base import convert_to_datatree
    from arviz_stats import summary as their_summary

    values = np.cumsum(rng.normal(size=(4, 200)), axis=1) / 9
    ours = _table(values)
    theirs = their_summary(convert_to_datatree({"x": values}), ci_kind="eti", round_to="none").loc[
        "x"
    ]
    assert ours["rhat"] == pytest.approx(float(theirs["r_hat"]), rel=1e-12)
    for name in ("mean", "sd", "mcse_mean", "mcse_sd", "ess_bulk"):
        assert ours[name] == pytest.approx(float(theirs[name]), rel=1e-9)
    np.testing.assert_array_equal(
        ours[["q5", "median", "q95"]], np.quantile(values, [0.05, 0.5, 0.95])
    )


def test_summary_of_what_is_not_finite_is_nan_and_leaves_its_neighbours_alone(rng):
    values = rng.normal(size=(4, 50, 2))
    alone = summary(Draws(("a", "b"), values)).loc["a"]
    values[2, 7, 1] = np.inf
    table = summary(Draws(("a", "b"), values))
    assert table.loc["b"].isna().all()
    np.testing.assert_array_equal(table.loc["a"], alone)


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
