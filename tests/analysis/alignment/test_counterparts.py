"""Components that are separate parameters: aligned, judged and drawn as the same components in arrays are."""

import numpy as np
import pytest
import xarray as xr

import onebasin as ob
from onebasin.analysis.diagnostics.invariants import invariants
from onebasin.models.symmetry.blocks import as_symmetry

from ..conftest import dataset

ARRAYS = "mu,sigma,theta"
APART = "mu1~mu2~mu3,sigma[0]~sigma[1]~sigma[3],theta"


def posterior_of(values) -> xr.DataTree:
    return xr.DataTree.from_dict({"posterior": dataset(values)})


@pytest.fixture(scope="module")
def both():
    """Draws (4 chains of 50) of three components in random order: in arrays, and apart."""
    rng = np.random.default_rng(3)
    order = rng.permuted(np.tile(np.arange(3), (4, 50, 1)), axis=-1)
    noise = 0.2 * rng.normal(size=(3, 4, 50, 3))
    mu, sigma, theta = (
        np.take_along_axis(np.array(centre) + each, order, -1)
        for centre, each in zip([[-2, 0, 2], [1, 2, 3], [0.2, 0.3, 0.5]], noise, strict=True)
    )
    wide = np.insert(sigma, 2, rng.normal(size=(4, 50)), axis=-1)  # a position that stays
    split = {f"mu{k + 1}": mu[..., k] for k in range(3)}
    arrays = posterior_of({"mu": mu, "sigma": sigma, "theta": theta})
    return arrays, posterior_of({**split, "sigma": wide, "theta": theta})


@pytest.fixture(scope="module")
def both_aligned(both):
    arrays, apart = both
    return ob.align(arrays, ARRAYS), ob.align(apart, APART)


def test_components_apart_are_aligned_as_those_of_arrays(both, both_aligned):
    apart, (expected, found) = both[1], both_aligned
    aligned = found.posterior["posterior"]
    mu = np.stack([aligned[f"mu{k}"].values for k in (1, 2, 3)], axis=-1)
    ours = {"mu": mu, "sigma": aligned["sigma"].values[..., [0, 1, 3]]}
    for name, values in (ours | {"theta": aligned["theta"].values}).items():
        np.testing.assert_array_equal(values, expected.posterior["posterior"][name].values)
    before = apart["posterior"]["sigma"].values
    np.testing.assert_array_equal(aligned["sigma"].values[..., 2], before[..., 2])
    np.testing.assert_allclose(found.distance_after, expected.distance_after, rtol=1e-10)
    again = ob.align(apart, APART, reference=found)
    np.testing.assert_array_equal(again.element[0].permutation, found.element[0].permutation)
    assert "exchanges of mu1~mu2~mu3" in repr(found)


def test_what_exchanges_leave_alone_is_that_of_arrays(both):
    arrays, apart = both
    expected = invariants(arrays, as_symmetry(ARRAYS))
    found = invariants(apart, as_symmetry(APART))
    assert "cov(mu1~mu2~mu3,theta)" in found.names
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-10, atol=1e-14)


def test_a_sign_that_changes_with_an_exchange_is_aligned():
    rng = np.random.default_rng(4)
    swapped = rng.random((4, 60)) < 0.5
    a = np.array([-1.0, 1.0]) + 0.2 * rng.normal(size=(4, 60, 2))
    eta = 1.5 + 0.2 * rng.normal(size=(4, 60))
    came = {"a": np.where(swapped[..., None], a[..., ::-1], a), "eta": np.where(swapped, -eta, eta)}
    found = ob.align(posterior_of(came), "a,+-eta:", reference_draw=(0, int(np.argmin(swapped[0]))))
    aligned = found.posterior["posterior"]
    np.testing.assert_array_equal(aligned["a"].values, a)
    np.testing.assert_array_equal(aligned["eta"].values, eta)
    quantities = invariants(posterior_of(came), found.symmetry)
    assert {"cov(a,eta~-eta)", "mean(eta~-eta^2)"} <= set(quantities.names)
