"""A prediction's standard deviation in two parts, against closed forms."""

import numpy as np
import pytest
import xarray as xr
from scipy.special import expit

import onebasin as ob
from onebasin.analysis.predictive import uncertainty
from onebasin.models import BayesianNetwork, Categorical, Gaussian, Network
from onebasin.models.networks import prediction
from onebasin.models.networks.prediction import predict_with_noise

from ...cards import check_page
from ...each import each
from ..conftest import network_posterior

MEAN, COVARIANCE = np.array([0.7, -0.3]), np.array([[0.5, 0.2], [0.2, 0.4]])


def linear(rng, *, likelihood, shape=(3, 50), **more):
    """The line f(x) = w x + b, whose draws (w, b) have exactly this mean and covariance."""
    model = BayesianNetwork(Network(1, (1,), activation="identity"), likelihood)
    z = rng.normal(size=(shape[0] * shape[1], 2))
    z -= z.mean(axis=0)
    z = z @ np.linalg.inv(np.linalg.cholesky(z.T @ z / len(z))).T
    w, b = np.moveaxis((MEAN + z @ np.linalg.cholesky(COVARIANCE).T).reshape(*shape, 2), -1, 0)
    values = {"W1": np.ones((*shape, 1, 1)), "b1": np.zeros((*shape, 1)), "W2": w[..., None, None]}
    return network_posterior(model, {**values, "b2": b[..., None], **more})


def line_sd(x):
    """Its standard deviation."""
    row = np.stack([x, np.ones_like(x)], axis=1)
    return np.sqrt(np.einsum("ij,jk,ik->i", row, COVARIANCE, row))[:, None]


@pytest.fixture
def x():
    return np.linspace(-3, 2, 11)


@each("at_once", [2**22, 400, 1])
def test_a_line_has_the_sds_of_its_closed_form(rng, x, monkeypatch, at_once):
    monkeypatch.setattr(uncertainty, "_AT_ONCE", at_once)  # all draws; pieces of 25; one by one
    sigma = 0.2 + rng.uniform(size=(3, 50))
    tree = linear(rng, likelihood=Gaussian(), sigma=sigma)
    found = ob.networks.predictive_uncertainty(tree, x[:, None])
    noise = np.sqrt(np.mean(sigma**2))
    np.testing.assert_allclose(found.mean[:, 0], MEAN[0] * x + MEAN[1], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.epistemic, line_sd(x), rtol=1e-10)
    np.testing.assert_allclose(found.aleatoric, np.full((11, 1), noise), rtol=1e-10)
    np.testing.assert_allclose(found.total, np.hypot(line_sd(x), noise), rtol=1e-10)
    assert found.num_draws == 150


def test_pieces_are_bounded_and_leave_no_draw_out(rng, monkeypatch):
    monkeypatch.setattr(uncertainty, "_AT_ONCE", 20)
    seen = []
    mean_and_sd = prediction.mean_and_sd
    monkeypatch.setattr(
        prediction,
        "mean_and_sd",
        lambda model, draws, x: seen.append(draws["W1"].shape[:2]) or mean_and_sd(model, draws, x),
    )
    ob.networks.predictive_uncertainty(linear(rng, likelihood=Gaussian(0.1)), [[0.0]])
    assert seen == 3 * [(1, 17), (1, 17), (1, 16)]


def test_known_noise_is_all_that_is_aleatoric(rng, x):
    found = ob.networks.predictive_uncertainty(linear(rng, likelihood=Gaussian(0.25)), x[:, None])
    assert set(found.aleatoric.ravel()) == {0.25}


def test_predicted_noise_is_that_of_each_point_and_draw(rng, x):
    model = BayesianNetwork(Network(1, (3,), 2, activation="tanh"), Gaussian("predicted"))
    values = {name: rng.normal(size=(2, 30, *s)) for name, s in model.network.shapes.items()}
    found = ob.networks.predictive_uncertainty(network_posterior(model, values), x[:, None])
    mean, sd = predict_with_noise(model, values, x[:, None])
    assert found.mean.shape == (11, 2)
    np.testing.assert_allclose(found.epistemic, mean.std(axis=(0, 1)), rtol=1e-10)
    np.testing.assert_allclose(found.aleatoric**2, (sd**2).mean(axis=(0, 1)), rtol=1e-10)


def test_of_a_class_the_total_is_that_of_its_indicator(rng, x):
    model = BayesianNetwork(Network(1, (2,), 2, activation="tanh"), Categorical())
    values = {name: rng.normal(size=(2, 40, *s)) for name, s in model.network.shapes.items()}
    found = ob.networks.predictive_uncertainty(network_posterior(model, values), x[:, None])
    logits = np.asarray(ob.networks.predict(model, values, x[:, None]))
    second = expit(logits[..., 1] - logits[..., 0])
    np.testing.assert_allclose(found.mean[:, 1], second.mean(axis=(0, 1)), rtol=1e-10)
    np.testing.assert_allclose(found.epistemic[:, 1], second.std(axis=(0, 1)), rtol=1e-10)
    np.testing.assert_allclose(found.total**2, found.mean * (1 - found.mean), rtol=1e-10)


def test_far_from_zero_no_digits_are_lost(rng):
    tree = linear(rng, likelihood=Gaussian(0.1))
    posterior = tree["posterior"].to_dataset()
    tree["posterior"] = posterior.assign(b2=posterior["b2"] + 1e8)
    sd = ob.networks.predictive_uncertainty(tree, [[0.5]]).epistemic
    np.testing.assert_allclose(sd, line_sd(np.array([0.5])), rtol=1e-6)


def test_a_single_draw_has_no_epistemic_part(rng, x):
    tree = linear(rng, likelihood=Gaussian(0.1)).isel(chain=[0], draw=[0])
    assert not ob.networks.predictive_uncertainty(tree, x[:, None]).epistemic.any()


def test_inputs_are_those_of_the_data_by_default(rng):
    data = {"constant_data": xr.Dataset({"x": (("obs", "in"), [[0.0], [2.0]])})}
    tree = linear(rng, likelihood=Gaussian(0.1))
    kept = xr.DataTree.from_dict({"posterior": tree["posterior"].to_dataset(), **data})
    kept.attrs = tree.attrs
    found = ob.networks.predictive_uncertainty(kept)
    np.testing.assert_allclose(found.epistemic, line_sd(np.array([0.0, 2.0])), rtol=1e-10)


def test_noise_that_is_inferred_has_to_be_there(rng):
    tree = linear(rng, likelihood=Gaussian())
    with pytest.raises(ValueError, match="`posterior` lacks sigma of its network; it holds W1, b1"):
        ob.networks.predictive_uncertainty(tree, [[0.0]])


def test_it_shows_itself_in_words(rng, x):
    found = ob.networks.predictive_uncertainty(linear(rng, likelihood=Gaussian(0.5)), x[:, None])
    share = 100 * np.mean(found.epistemic**2) / np.mean(found.total**2)
    text = " ".join(repr(found).split())
    assert "Predictive uncertainty at 11 points" in text
    assert f"{share:.3g} % of its variance is epistemic" in text
    assert "aleatoric 0.5 to 0.5, root mean square 0.5" in text
    check_page(found._repr_html_())
