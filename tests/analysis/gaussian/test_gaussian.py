"""The fit as a distribution: density, Jacobian, samples, and the posteriors it makes.

What one Gaussian shows of itself: of what it is, and that labels may have been averaged.
"""

import json

import numpy as np
import pytest
import xarray as xr
from scipy.stats import lognorm, multivariate_normal

import onebasin as ob
from onebasin.analysis.gaussian import COVARIANCES, fit_gaussian
from onebasin.models.networks.architecture import Network
from onebasin.models.networks.bayesian import BayesianNetwork
from onebasin.posteriors import schema

from ...cards import check_page
from .conftest import dense, one_variable, random_correlation


def fit_of(rng, covariance="full"):
    """Fit eight parameters on very different scales."""
    scale = np.geomspace(0.01, 100.0, 8)
    root = np.linalg.cholesky(random_correlation(rng, 8))
    return fit_gaussian(
        one_variable(3 + scale * (rng.standard_normal((60, 8)) @ root.T)), covariance
    )


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_log_density_is_scipys(rng, covariance):
    fit = fit_of(rng, covariance)
    draws = fit.sample(30, chains=2)
    expected = multivariate_normal(fit.loc, dense(fit)).logpdf(draws["posterior"]["theta"].values)
    found = fit.log_density(draws)
    assert found.shape == (2, 30)
    np.testing.assert_allclose(found, expected, rtol=1e-8)


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_samples_have_the_mean_and_covariance(rng, covariance):
    fit = fit_of(rng, covariance)
    num = 20_000
    draws = fit.sample(num // 2, seed=5, chains=2)
    rows = draws["posterior"]["theta"].values.reshape(num, 8) - fit.loc
    truth = dense(fit)
    variances = np.diag(truth)
    error = np.sqrt((np.outer(variances, variances) + truth**2) / num)
    assert np.abs((rows.T @ rows / num - truth) / error).max() < 5
    assert np.abs(rows.mean(axis=0) / np.sqrt(variances / num)).max() < 5


@pytest.fixture
def positives():
    """Draws of a number and of a positive one, correlated in its logarithm."""
    rng = np.random.default_rng(8)
    a = rng.standard_normal((1, 200))
    b = np.exp(0.5 * a + 0.4 * rng.standard_normal((1, 200)) - 1)
    return xr.Dataset({"a": (("chain", "draw"), a), "b": (("chain", "draw"), b)})


def test_positive_variable_is_log_normal(positives):
    fit = fit_gaussian(positives, positive="b", var_names="b")
    logs = np.log(positives["b"].values)
    truth = lognorm(s=logs.std(ddof=1), scale=np.exp(logs.mean()))
    points = np.geomspace(0.01, 5.0, 30)[None]
    np.testing.assert_allclose(fit.log_density({"b": points}), truth.logpdf(points), rtol=1e-10)
    assert fit.mean["b"] == pytest.approx(truth.mean(), rel=1e-10)
    assert fit.sd["b"] == pytest.approx(truth.std(), rel=1e-10)


def test_density_outside_the_support(positives):
    fit = fit_gaussian(positives, positive="b")
    draws = {"a": np.asarray([[0.0, 0.0, 0.0, np.nan]]), "b": np.asarray([[1.0, 0.0, -2.0, -1.0]])}
    found = fit.log_density(draws)[0]
    assert np.isfinite(found[0])
    assert found[1:3].tolist() == [-np.inf, -np.inf]
    assert np.isnan(found[3])


def test_log_q_is_over_logarithms(positives):
    fit = fit_gaussian(positives, "full", positive="b")
    draws = fit.sample(50)
    log_q = draws["sample_stats"]["log_q"].values
    logs = np.log(draws["posterior"]["b"].values)
    over_values = fit.log_density(draws)
    over_logs = fit.log_density(draws, jacobian=False)
    np.testing.assert_allclose(log_q, over_logs, rtol=1e-10)
    np.testing.assert_allclose(over_values, log_q - logs, rtol=1e-10)


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_seeds_and_chains(rng, covariance):
    fit = fit_of(rng, covariance)
    one, two = fit.sample(7, seed=3), fit.sample(7, seed=3, chains=2)
    values = two["posterior"]["theta"].values
    np.testing.assert_array_equal(one["posterior"]["theta"].values[0], values[0])
    assert fit.sample(7, seed=3).identical(one)
    assert not np.isclose(values[0], values[1]).any()
    assert not np.isclose(fit.sample(7, seed=4)["posterior"]["theta"].values[0], values[0]).any()


@pytest.fixture
def planted_network(network_tree):
    network_tree.attrs["model"] = BayesianNetwork(Network(1, (2,))).describe()
    return network_tree


def test_samples_are_a_posterior(planted_network):
    source = planted_network
    draws = fit_gaussian(source, "full").sample(40, seed=9, chains=2)
    for name, variable in source["posterior"].data_vars.items():
        assert draws["posterior"][name].dims == variable.dims
    for group in ("constant_data", "observed_data"):
        assert draws[group].to_dataset().identical(source[group].to_dataset())
    groups = {"posterior", "sample_stats", "constant_data", "observed_data"}
    assert set(draws.children) == groups | {"log_likelihood", "posterior_predictive"}
    assert (draws["posterior"]["sigma"] > 0).all()
    for name in ("model", "symmetry", "target", "engine", "versions", "machine"):
        assert draws.attrs[name] == source.attrs[name]
    assert draws.attrs["method"] == "gaussian-full"
    assert draws.attrs["seed"] == 9
    assert draws.attrs["gradient_evaluations"] == 0
    assert not {"wall_time", "sampling_seconds", "max_tree_depth"} & set(draws.attrs)
    settings = json.loads(draws.attrs["settings"])
    assert settings["covariance"] == "full"
    assert (settings["fitted_draws"], settings["num_draws"], settings["chains"]) == (400, 40, 2)
    assert 0 <= settings["shrinkage"] <= 1


MU = (ob.Exchangeable({"mu": 0}),)


@pytest.fixture
def draws(make_mcmc, rng):
    attrs = {"symmetry": schema.encode_symmetry(MU)}
    values = {
        "mu": np.array([-4.0, 4.0]) + rng.normal(size=(4, 50, 2)),
        "tau": rng.normal(size=(4, 50)),
    }
    return make_mcmc(values, attrs=attrs)


def test_a_fit_to_draws_that_were_not_aligned_says_so(draws):
    fit = ob.approximations.fit_gaussian(draws, "full")
    text = " ".join(repr(fit).split())
    assert "the means and a full covariance of 200 draws of `" in text
    assert "The draws were not aligned, but the posterior declares permutations of mu" in text
    assert "not aligned" not in repr(
        ob.approximations.fit_gaussian(ob.align(draws).posterior, "full")
    )
    assert "mu[1]" in text
    check_page(fit._repr_html_())
