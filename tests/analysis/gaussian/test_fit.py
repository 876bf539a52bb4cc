"""Fits against planted moments, against each other, and on scrambled draws; and what is rejected."""

import numpy as np
import pytest

from onebasin.analysis.alignment import align
from onebasin.analysis.gaussian import COVARIANCES, fit_gaussian
from onebasin.models.networks.architecture import Network
from onebasin.models.networks.bayesian import BayesianNetwork
from onebasin.models.networks.likelihood import Gaussian
from onebasin.models.networks.parametrisation import Parametrisation
from onebasin.models.symmetry.blocks import Group

from ..conftest import network_posterior
from .conftest import dense, one_variable, random_correlation, with_moments

SIZE = 8


@pytest.fixture
def planted(rng):
    """Covariance, mean, and draws that have them to the last digits."""
    scale = np.geomspace(0.01, 100.0, SIZE)
    covariance = random_correlation(rng, SIZE) * np.outer(scale, scale)
    mean = 10 * rng.standard_normal(SIZE)
    return covariance, mean, with_moments(rng, 400, covariance) + mean


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_fit_has_the_draws_moments(planted, covariance):
    truth, mean, rows = planted
    fit = fit_gaussian(one_variable(rows), covariance)
    np.testing.assert_allclose(fit.mean["theta"], mean, rtol=1e-10)
    unbiased = np.sqrt(np.diag(truth) * 400 / 399)
    np.testing.assert_allclose(fit.sd["theta"], unbiased, rtol=1e-10)
    np.testing.assert_allclose(fit.sd["theta"], np.sqrt(np.diag(dense(fit))), rtol=1e-10)


@pytest.mark.parametrize("shrinkage", [0.0, 0.25])
def test_full_fit_shrinks_correlations_alone(planted, shrinkage):
    truth, _, rows = planted
    fit = fit_gaussian(one_variable(rows), "full", shrinkage=shrinkage)
    expected = (1 - shrinkage) * np.cov(rows.T)
    np.fill_diagonal(expected, np.diag(truth) * 400 / 399)
    np.testing.assert_allclose(dense(fit), expected, rtol=1e-8)
    assert fit.settings["shrinkage"] == shrinkage


@pytest.mark.parametrize("num", [6, 400])
def test_full_fit_takes_ledoit_wolfs_shrinkage_by_default(planted, rng, num):
    from sklearn.covariance import ledoit_wolf

    rows = rng.permutation(planted[-1])[:num]
    z = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    fit = fit_gaussian(one_variable(rows), "full")
    assert fit.settings["shrinkage"] == pytest.approx(ledoit_wolf(z)[1], rel=1e-8)
    assert 0 < fit.settings["shrinkage"] < 1


def test_a_singular_covariance_is_refused(rng):
    rows = rng.standard_normal((20, 3))
    for singular in (rows[:4, :].repeat(2, axis=1), np.column_stack([rows, rows[:, 0]])):
        with pytest.raises(ValueError, match="singular"):
            fit_gaussian(one_variable(singular), "full", shrinkage=0.0)


def test_networks_noise_is_fitted_as_its_logarithm(network_tree):
    network_tree.attrs["model"] = BayesianNetwork(Network(1, (2,))).describe()
    fit = fit_gaussian(network_tree)
    logs = np.log(network_tree["posterior"]["sigma"].values)
    assert fit.log_fitted == ("sigma",)
    assert fit.loc[-1] == pytest.approx(logs.mean(), rel=1e-12)
    assert fit.scale[-1] == pytest.approx(logs.std(ddof=1), rel=1e-12)
    assert fit_gaussian(network_tree, var_names=["W1", "b1"]).log_fitted == ()


@pytest.fixture
def scrambled(rng):
    """A tanh network's draws about one truth, every draw in labels and signs of its own."""
    model = BayesianNetwork(Network(4, (6,), 2, activation="tanh"), Gaussian(noise_sd=0.1))
    shapes = model.network.shapes
    truth = {name: rng.standard_normal(shape) for name, shape in shapes.items()}
    noise = {name: 0.02 * (1 + rng.random(shape)) for name, shape in shapes.items()}
    clean = {n: truth[n] + noise[n] * rng.standard_normal((2, 200, *s)) for n, s in shapes.items()}
    group = Group(model.symmetry, shapes)
    seen = group.act(group.random(rng, (2, 200)), clean)
    tree = network_posterior(model, clean | seen)
    return group, truth, noise, tree


def test_aligned_draws_give_the_planted_gaussian_and_scrambled_ones_do_not(scrambled):
    group, truth, noise, tree = scrambled
    raw, fit = fit_gaussian(tree), fit_gaussian(align(tree).posterior)
    assert (raw.gauge, fit.gauge) == (None, "balanced")
    assert raw.sd["W1"].mean() > 10 * fit.sd["W1"].mean()
    lead = {name: value[None, None] for name, value in fit.mean.items()}
    both = {n: np.concatenate([truth[n][None, None], lead[n]], axis=1) for n in truth}
    # Bring the mean to the truth's labels, then the standard deviations along: without signs.
    back = align(both, group.symmetry, reference="draw")
    found = back.posterior["posterior"]
    permutation = back.element[0].permutation[0, 1]
    for name, value in truth.items():
        error = np.abs(found[name].values[0, 1] - value) / (noise[name] / np.sqrt(400))
        assert error.max() < 5
    ratio = fit.sd["W1"][:, permutation] / noise["W1"]
    assert np.abs(ratio - 1).max() < 5 / np.sqrt(2 * 400)


@pytest.mark.parametrize(
    ("parametrisation", "named", "free"),
    [
        (Parametrisation(weights="givens"), r"\(givens\) constrains W1", ["b1", "W2", "b2"]),
        (Parametrisation(biases="ordered"), r"\(ordered\) constrains b1", ["W1", "W2", "b2"]),
        (
            Parametrisation(weights="unit_vector", biases="ordered"),
            r"constrains W1, b1 to unit norm or an order",
            ["W2", "b2"],
        ),
    ],
)
def test_constrained_networks_are_refused_but_for_their_free_variables(
    rng, make_mcmc, parametrisation, named, free
):
    model = BayesianNetwork(Network(3, (4,)), parametrisation=parametrisation)
    shapes = model.network.shapes
    draws = {n: rng.standard_normal((2, 10, *s)) for n, s in shapes.items()}
    tree = make_mcmc(draws, attrs={"model": model.describe()})
    with pytest.raises(ValueError, match=named):
        fit_gaussian(tree)
    assert fit_gaussian(tree, var_names=free).names == tuple(free)


@pytest.mark.parametrize(
    ("unit", "offset"), [(1e-150, 0.0), (1e-300, 0.0), (1e160, 0.0), (1.0, 1e12)]
)
def test_fit_is_the_same_in_every_unit_and_far_from_zero(make_mcmc, rng, unit, offset):
    values = rng.normal(size=(2, 300, 3)) @ rng.normal(size=(3, 3))
    expected = fit_gaussian(make_mcmc({"mu": values}), "full")
    found = fit_gaussian(make_mcmc({"mu": unit * (values + offset)}), "full")
    digits = 1e-3 if offset else 1e-9
    np.testing.assert_allclose(found.sd["mu"] / unit, expected.sd["mu"], rtol=digits)
    np.testing.assert_allclose(found.mean["mu"] / unit - offset, expected.mean["mu"], atol=digits)
    np.testing.assert_allclose(found.correlation, expected.correlation, atol=digits)
