"""The same draws in another unit, and far from zero: the same diagnostics; and draws that are read in blocks."""

import numpy as np
import pytest
import xarray as xr

from onebasin.analysis.summaries.summary import is_constant, power_of_two, summary, units_of
from onebasin.posteriors.draws import Columns, Draws, lay_out_columns

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


def test_the_largest_doubles_have_a_mean_and_a_spread():
    values = np.array([[[-1.7e308], [1.7e308]], [[1.7e308], [-1.7e308]]])
    units = units_of(values)
    assert not units.constant.any()
    assert units.mean_of(values) == pytest.approx(0.0)
    assert np.isfinite(units.into(values)).all()


def test_sums_with_rounding_of_their_own_are_constants_and_large_numbers_are_not(rng):
    shares = rng.dirichlet(np.ones(30), size=(4, 50))
    total = np.cumsum(shares, axis=-1)[..., -1:]
    assert np.ptp(total) > 0
    assert is_constant(total).all()
    assert not is_constant(1e15 + rng.normal(size=(4, 50, 1))).any()


def test_powers_of_two_are_no_larger():
    sizes = np.array([0.0, 1.0, 3.0, 1e-310, 1.7e308])
    powers = power_of_two(sizes)
    assert powers[:3].tolist() == [1.0, 1.0, 2.0]
    assert (powers[3:] <= sizes[3:]).all()
    assert (2 * (sizes[3:] / 2 - powers[3:] / 2) < powers[3:]).all()


def test_columns_are_the_same_however_they_are_cut(rng):
    shapes = {"a": (), "b": (3, 4, 2), "c": (5,), "none": (0, 2), "d": (2, 3)}
    arrays = {name: rng.normal(size=(2, 6, *shape)) for name, shape in shapes.items()}
    dims = {n: ("chain", "draw", *(f"{n}{k}" for k in range(len(s)))) for n, s in shapes.items()}
    variables = [xr.DataArray(v, dims=dims[n], name=n) for n, v in arrays.items()]
    whole = np.concatenate(
        [v.reshape(2, 6, -1) if v.size else v.reshape(2, 6, 0) for v in arrays.values()], axis=-1
    )
    columns = Columns(variables)
    assert columns.shape == whole.shape
    for first in range(whole.shape[2]):
        for last in range(first, whole.shape[2] + 1):
            np.testing.assert_array_equal(columns.read(first, last), whole[..., first:last])
    np.testing.assert_array_equal(columns.rows(1, slice(1, None, 2)), whole[1, 1::2])
    laid_out = lay_out_columns(variables)
    np.testing.assert_array_equal(laid_out.values, whole)
    np.testing.assert_array_equal(laid_out.every(4), Draws(laid_out.names, whole).every(4))


def test_a_posterior_that_stays_in_its_file_is_diagnosed_as_one_in_memory(tmp_path, make_mcmc, rng):
    from onebasin.analysis.diagnostics.diagnose import diagnose
    from onebasin.inference.runs.posterior import open_posterior, save

    path = save(
        make_mcmc({"mu": rng.normal(size=(4, 100, 3)), "sigma": rng.gamma(2, size=(4, 100))}),
        tmp_path / "x.nc",
    )
    in_memory, in_file = open_posterior(path), open_posterior(path, lazy=True)
    assert not in_file["posterior"]["mu"].variable._in_memory
    np.testing.assert_array_equal(diagnose(in_file).parameters, diagnose(in_memory).parameters)
    assert not in_file["posterior"]["mu"].variable._in_memory
