"""Which coordinates bend a posterior, the Gaussians along them, and weights of posteriors that no Gaussian fits."""

from collections.abc import Callable

import numpy as np
import numpyro
import pytest
from jax import numpy as jnp
from numpyro import distributions as dist
from scipy.stats import norm

import onebasin as ob
from onebasin.inference.density.counted import CountedDensity
from onebasin.inference.fits.conditional import SPACING, WIDTH, BentFit, bending
from onebasin.inference.fits.gaussian import NormalFit

Model = Callable[[], None]


def normal() -> None:
    loc, scale = jnp.array([1.0, 2.0, 3.0]), jnp.array([[2, 0, 0], [1, 1, 0], [0, 1, 0.5]])
    numpyro.sample("x", dist.MultivariateNormal(loc, scale_tril=scale))


def funnel() -> None:
    v = numpyro.sample("v", dist.Normal(0.2, 0.8))
    numpyro.sample("x", dist.Normal(0, jnp.exp(v)).expand([4]).to_event(1))


def funnels() -> None:
    v = numpyro.sample("v", dist.Normal(0, 0.5).expand([2]).to_event(1))
    numpyro.sample("x", dist.Normal(0, jnp.exp(jnp.repeat(v, 6))).to_event(1))


def banana() -> None:
    x = numpyro.sample("x", dist.Normal(0, 1))
    numpyro.sample("y", dist.Normal(0.9 * x**2, 0.4))


def bowl() -> None:
    x = numpyro.sample("x", dist.Normal(0, 1).expand([2]).to_event(1))
    numpyro.sample("y", dist.Normal(0.6 * (x**2).sum(), 0.4))


def counted_of(model: Model) -> CountedDensity:
    return CountedDensity.of(ob.Target("bent", numpyro_model=model))


@pytest.mark.parametrize(
    ("model", "held"), [(normal, []), (funnel, [0]), (funnels, [0, 1]), (bowl, [0, 1])]
)
def test_coordinates_are_held_given_which_the_others_are_normal(model, held):
    """Of y = x1^2 + x2^2 + noise not y, though it is the strongest: given y, x lies on a circle."""
    counted = counted_of(model)
    fit = NormalFit(np.zeros(counted.size), 0.7 * np.eye(counted.size))
    for seed in range(5):
        assert sorted(bending(counted, fit, np.random.default_rng(seed))) == held


def test_the_evidence_of_a_node_is_the_marginal_density_there():
    """Given v, x is normal, so that Laplace's approximation is exact; the unit of the coordinates does not matter."""
    fit = NormalFit(np.array([0.1, 0, 0, 0, 0]), np.diag([0.5, 2, 1, 1, 3.0]))
    found = BentFit(counted_of(funnel), fit, [0]).grid()
    v = np.array([each.loc[0] for each, _ in found])
    assert np.ptp(v) > 4 * 0.8
    np.testing.assert_allclose(np.diff(np.sort(v)), 0.5 * SPACING)
    known = norm.logpdf(v, 0.2, 0.8) + np.log(0.5 * SPACING)
    np.testing.assert_allclose([evidence for _, evidence in found], known, atol=1e-6)
    for each, _ in found:
        np.testing.assert_allclose(each.sds, [0.5 * WIDTH, *[np.exp(each.loc[0])] * 4], rtol=1e-6)


def test_nodes_follow_the_ridge_and_there_are_none_of_a_grid_without_end():
    bent = BentFit(counted_of(banana), NormalFit(np.zeros(2), 0.5 * np.eye(2)), [0])
    places = np.array([each.loc for each, _ in bent.grid()])
    (near,) = bent.at(np.array([[1.5, -3.0], [1.6, 9.0]]))  # one node for both
    flat = BentFit(counted_of(banana), NormalFit(np.zeros(2), 1e-3 * np.eye(2)), [0]).grid()
    np.testing.assert_allclose(places[:, 1], 0.9 * places[:, 0] ** 2, atol=0.1)
    np.testing.assert_allclose(near[0].loc, [1.5, 0.9 * 1.5**2], atol=0.1)
    assert flat == []


@pytest.mark.slow
def test_crossed_groups_that_no_gaussian_fits_are_weighed_along_their_scales():
    """Two factors of six levels, which are normal given their scales, with scales of an sd of .8 in their logs."""

    def model() -> None:
        scales = numpyro.sample("scales", dist.LogNormal(0, 0.8).expand([2]).to_event(1))
        numpyro.sample("effects", dist.Normal(0, jnp.repeat(scales, 6)).to_event(1))

    tree = ob.dadvi(ob.Target("crossed", numpyro_model=model), weights=True, seed=1)
    assert ob.diagnose(tree).verdict == "usable"
    assert tree.attrs["worth"] > 3000
    weights = np.exp(tree["variational"]["log_weight"].to_numpy())
    logs = np.log(tree["weighted"]["scales"].to_numpy())
    np.testing.assert_allclose(weights @ logs, 0, atol=0.08)
    np.testing.assert_allclose(weights @ logs**2, 0.8**2, rtol=0.1)
    effects = np.sqrt(weights @ tree["weighted"]["effects"].to_numpy() ** 2)
    np.testing.assert_allclose(effects, np.exp(0.8**2), rtol=0.15)
