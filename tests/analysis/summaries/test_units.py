"""The same draws in another unit, and far from zero: the same diagnostics; and draws that are read in blocks."""

import numpy as np
import pytest

from onebasin.analysis.summaries.summary import is_constant, summary
from onebasin.posteriors.draws import Draws

FREE_OF_UNITS = ["rhat", "ess_bulk", "ess_tail"]
IN_UNITS = ["mean", "sd", "mcse_mean"]


@pytest.fixture
def draws(rng):
    """A parameter that mixes, one whose chains differ, and a heavy tail."""
    mixed, apart = rng.normal(size=(2, 4, 200))
    apart += 0.4 * np.arange(4)[:, None]
    return np.stack([mixed, apart, rng.standard_t(2, size=(4, 200))], axis=-1)


def _table(values):
    return summary(Draws(tuple(map(str, range(values.shape[2]))), values))


def _same(found, expected, digits):
    np.testing.assert_allclose(
        found[["ess_bulk", "ess_tail"]], expected[["ess_bulk", "ess_tail"]], rtol=digits
    )
    # The two middle draws are equally far from the median, and rounding decides which of them ranks higher.
    np.testing.assert_allclose(found["rhat"], expected["rhat"], rtol=max(digits, 2e-4))


@pytest.mark.parametrize("unit", [1e-300, 1e20, 1e300])
def test_summary_is_the_same_in_every_unit(draws, unit):
    expected, found = _table(draws), _table(unit * draws)
    _same(found, expected, 1e-10)
    np.testing.assert_allclose(found[IN_UNITS] / unit, expected[IN_UNITS], rtol=1e-10)


@pytest.mark.parametrize(("offset", "digits"), [(1e3, 1e-12), (-1e12, 1e-3)])
def test_summary_is_the_same_far_from_zero(draws, offset, digits):
    expected, found = _table(draws), _table(draws + offset)
    _same(found, expected, max(digits, 1e-10))
    np.testing.assert_allclose(
        found[["sd", "mcse_mean"]], expected[["sd", "mcse_mean"]], rtol=digits
    )
    np.testing.assert_allclose(found["mean"] - offset, expected["mean"], atol=digits)


def test_a_spread_that_is_lost_in_rounding_has_no_diagnostics(draws):
    found = _table(draws[..., :2] + 1e16)
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

    path = save(
        make_mcmc({"mu": rng.normal(size=(4, 100, 3)), "sigma": rng.gamma(2, size=(4, 100))}),
        tmp_path / "x.nc",
    )
    in_memory, in_file = open_posterior(path), open_posterior(path, lazy=True)
    assert not in_file["posterior"]["mu"].variable._in_memory
    np.testing.assert_array_equal(diagnose(in_file).parameters, diagnose(in_memory).parameters)
    assert not in_file["posterior"]["mu"].variable._in_memory
