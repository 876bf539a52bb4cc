"""R-hat, ESS and moments: against known answers, arviz_stats and constants."""

import numpy as np
import pytest

from onebasin.analysis.summaries.summary import is_constant, summary
from onebasin.posteriors.draws import Draws

from ..conftest import autoregression

CHAINS, DRAWS = 4, 4000


def _tables(values):
    return summary(Draws(tuple(map(str, range(values.shape[2]))), values))


def _table(values):
    return _tables(values[..., None]).loc["0"]


@pytest.mark.parametrize("phi", [-0.3, 0.8])
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


def test_summary_has_the_columns_of_arviz(rng):
    from arviz_base import convert_to_datatree
    from arviz_stats import summary as their_summary

    values = np.cumsum(rng.normal(size=(4, 200)), axis=1) / 9
    ours = _table(values)
    tree = convert_to_datatree({"x": values})
    theirs = their_summary(tree, ci_kind="eti", round_to="none").loc["x"]
    assert ours["rhat"] == pytest.approx(float(theirs["r_hat"]), rel=1e-12)
    for name in ("mean", "sd", "mcse_mean", "mcse_sd", "ess_bulk"):
        assert ours[name] == pytest.approx(float(theirs[name]), rel=1e-9)
    quantiles = np.quantile(values, [0.05, 0.5, 0.95])
    np.testing.assert_array_equal(ours[["q5", "median", "q95"]], quantiles)


def test_summary_of_what_is_not_finite_is_nan_and_leaves_its_neighbours_alone(rng):
    values = rng.normal(size=(4, 50, 2))
    alone = summary(Draws(("a", "b"), values)).loc["a"]
    values[2, 7, 1] = np.inf
    table = summary(Draws(("a", "b"), values))
    assert table.loc["b"].isna().all()
    np.testing.assert_array_equal(table.loc["a"], alone)


FREE_OF_UNITS = ["rhat", "ess_bulk", "ess_tail"]
IN_UNITS = ["mean", "sd", "mcse_mean"]


@pytest.fixture
def draws(rng):
    """A parameter that mixes, one whose chains differ, and a heavy tail."""
    mixed, apart = rng.normal(size=(2, 4, 200))
    apart += 0.4 * np.arange(4)[:, None]
    return np.stack([mixed, apart, rng.standard_t(2, size=(4, 200))], axis=-1)


def _same(found, expected, digits):
    for name in ("ess_bulk", "ess_tail"):
        np.testing.assert_allclose(found[name], expected[name], rtol=digits)
    # The two middle draws are equally far from the median, and rounding decides which of them ranks higher.
    np.testing.assert_allclose(found["rhat"], expected["rhat"], rtol=max(digits, 2e-4))


@pytest.mark.parametrize("unit", [1e-300, 1e20, 1e300])
def test_summary_is_the_same_in_every_unit(draws, unit):
    expected, found = _tables(draws), _tables(unit * draws)
    _same(found, expected, 1e-10)
    np.testing.assert_allclose(found[IN_UNITS] / unit, expected[IN_UNITS], rtol=1e-10)


@pytest.mark.parametrize(("offset", "digits"), [(1e3, 1e-12), (-1e12, 1e-3)])
def test_summary_is_the_same_far_from_zero(draws, offset, digits):
    expected, found = _tables(draws), _tables(draws + offset)
    _same(found, expected, max(digits, 1e-10))
    for name in ("sd", "mcse_mean"):
        np.testing.assert_allclose(found[name], expected[name], rtol=digits)
    np.testing.assert_allclose(found["mean"] - offset, expected["mean"], atol=digits)


def test_a_spread_that_is_lost_in_rounding_has_no_diagnostics(draws):
    found = _tables(draws[..., :2] + 1e16)
    assert found[FREE_OF_UNITS].isna().all(axis=None)


def test_sums_with_rounding_of_their_own_are_constants_and_large_numbers_are_not(rng):
    shares = rng.dirichlet(np.ones(30), size=(4, 50))
    total = np.cumsum(shares, axis=-1)[..., -1:]
    assert np.ptp(total) > 0
    assert is_constant(total).all()
    assert not is_constant(1e15 + rng.normal(size=(4, 50, 1))).any()


def test_a_posterior_that_stays_in_its_file_is_diagnosed_as_one_in_memory(tmp_path, make_mcmc, rng):
    from onebasin.analysis.diagnostics.diagnose import diagnose
    from onebasin.posteriors.open import open_posterior
    from onebasin.posteriors.writing import save

    drawn = {"mu": rng.normal(size=(4, 100, 3)), "sigma": rng.gamma(2, size=(4, 100))}
    path = save(make_mcmc(drawn), tmp_path / "x.nc")
    in_memory, in_file = open_posterior(path), open_posterior(path, lazy=True)
    assert not in_file["posterior"]["mu"].variable._in_memory
    np.testing.assert_array_equal(diagnose(in_file).parameters, diagnose(in_memory).parameters)
    assert not in_file["posterior"]["mu"].variable._in_memory
