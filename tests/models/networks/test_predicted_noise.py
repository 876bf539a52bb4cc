"""Noise that a network predicts, from the weights to the scores, against closed forms by SciPy."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

import onebasin as ob
from onebasin.analysis.predictive.predictions import Points, predict_held_out, predict_points
from onebasin.inference.runs.posterior import build
from onebasin.posteriors.pointwise import network_groups

MODEL = ob.networks.BayesianNetwork(
    ob.networks.Network(2, (4,), out_dim=2), ob.networks.Gaussian("predicted", noise_scale=0.6)
)
X = np.random.default_rng(1).normal(size=(12, 2))
Y = np.random.default_rng(2).normal(size=(12, 2))


@pytest.fixture(scope="module")
def draws():
    rng = np.random.default_rng(3)
    return {n: rng.normal(size=(2, 150, *s)) for n, s in MODEL.network.shapes.items()}


@pytest.fixture(scope="module")
def tree(draws):
    return build(MODEL.condition(X, Y), draws, {"lp": np.zeros((2, 150))}, {"seed": 1})


def by_hand(draws, x=X):
    """Means and standard deviations (chain, draw, obs, out), with NumPy alone."""
    hidden = np.maximum(x @ draws["W1"] + draws["b1"][..., None, :], 0)
    output = hidden @ draws["W2"] + draws["b2"][..., None, :]
    return output[..., :2], 0.6 * special.softplus(output[..., 2:])


def log_scores(draws):
    mean, sd = by_hand(draws)
    return stats.norm.logpdf(Y, mean, sd).sum(axis=-1)


def test_the_last_layer_has_a_second_head_and_data_have_not():
    assert MODEL.network.shapes["W2"] == (4, 4)
    assert (MODEL.network.out_dim, MODEL.infers_noise, MODEL.predicts_noise) == (2, False, True)
    target = MODEL.condition(X, Y)
    assert target.dims["W2"] == ("hidden1", "head")
    assert target.coords["head"] == ["mean[0]", "mean[1]", "noise[0]", "noise[1]"]
    of_units = ob.networks.BayesianNetwork(ob.networks.Network(2, (4,), out_dim=2)).symmetry
    assert target.symmetry == of_units
    assert "network 2-4-4 (relu, means and noise)" in repr(target)
    assert "predicted too, 0.6 times the softplus" in MODEL._repr_html_()


@pytest.mark.usefixtures("unchecked")
def test_a_plain_sum_cannot_predict_noise_and_another_word_is_refused():
    of_sum = ob.networks.Network(2, (4,), readout="sum")
    with pytest.raises(ValueError, match=r"`noise_sd` is 'predicted', but .* 'sum'.*'linear'"):
        ob.networks.BayesianNetwork(of_sum, ob.networks.Gaussian("predicted"))
    with pytest.raises(ValueError, match="`noise_sd` is 'learned'; give a positive number, None"):
        ob.networks.Gaussian("learned")


def test_predictions_are_means_and_noise(draws, tree):
    mean, sd = ob.networks.predict_with_noise(MODEL, tree, X)
    expected = by_hand(draws)
    np.testing.assert_allclose(mean, expected[0], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(sd, expected[1], rtol=1e-10)
    np.testing.assert_array_equal(ob.networks.predict(MODEL, tree, X), mean)
    np.testing.assert_array_equal(ob.predict(tree, X), mean)


@pytest.mark.parametrize("noise_sd", [0.3, None])
def test_constant_noise_is_given_for_every_prediction(draws, noise_sd):
    model = dataclasses.replace(MODEL, likelihood=ob.networks.Gaussian(noise_sd))
    own = {**draws, "W2": draws["W2"][..., :2], "b2": draws["b2"][..., :2]}
    own["sigma"] = np.random.default_rng(4).uniform(1, 2, (2, 150))
    mean, sd = ob.networks.predict_with_noise(model, own, X)
    expected = own["sigma"][..., None, None] if noise_sd is None else noise_sd
    np.testing.assert_array_equal(sd, np.broadcast_to(expected, mean.shape))


def test_log_likelihoods_and_replicates_are_of_the_predicted_noise(draws):
    groups = network_groups(MODEL, draws, X, Y, seed=1, limit_mb=10)
    found = groups["log_likelihood"].values["y"]
    np.testing.assert_allclose(found, log_scores(draws), rtol=1e-10)
    mean, sd = by_hand(draws)
    standard = ((groups["posterior_predictive"].values["y"] - mean) / sd).ravel()
    assert abs(standard.mean()) < 5 / np.sqrt(standard.size)
    assert abs(standard.std() - 1) < 5 / np.sqrt(2 * standard.size)


def test_scores_are_those_of_the_mixture(draws, tree):
    expected = (special.logsumexp(log_scores(draws), axis=(0, 1)) - np.log(300)).mean()
    found = predict_points(MODEL, tree, Points.of(MODEL, X, Y))
    assert found.scores["log_score"] == pytest.approx(expected, rel=1e-10)
    mean, _ = by_hand(draws)
    assert found.scores["rmse"] == pytest.approx(np.sqrt(np.mean((mean.mean((0, 1)) - Y) ** 2)))
    held_out = predict_held_out(tree, MODEL, X, Y)
    assert held_out.scores.log_score == pytest.approx(expected, rel=1e-10)
    assert held_out.points.index[0] == "f[0,0]"
    assert len(held_out.points) == 24
    assert list(held_out.table.index[24:26]) == ["sigma[0,0]", "sigma[0,1]"]


def test_deep_underflow_of_the_noise_is_no_number_that_passes_unseen():
    # softplus(-1000) is 0 in double precision: the density is not finite, so that a sampler turns back.
    output = jnp.array([[0.0, 0.0, -1000.0, 0.0]])
    density = jax.jit(MODEL.likelihood.log_density)(output, jnp.ones((1, 2)))
    assert not np.isfinite(density).any()
