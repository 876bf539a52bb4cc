"""Priors, likelihoods and conditioning: what the NumPyro model states, and how a model is described."""

import pickle

import jax.numpy as jnp
import numpy as np
import pytest
from numpyro import handlers
from numpyro.infer.util import log_density
from scipy import special, stats

from onebasin.models.networks.parametrisation import BIASES, WEIGHTS
from onebasin.networks import (
    BayesianNetwork,
    Categorical,
    Gaussian,
    Network,
    NormalPrior,
    Parametrisation,
)

X = np.random.default_rng(1).normal(size=(5, 3))
Y = np.random.default_rng(2).normal(size=(5, 2))
LABELS = np.array([0, 1, 1, 0, 1])


def draw_of(model, seed=0):
    traced = handlers.trace(handlers.seed(model.condition(X, data_for(model)).numpyro_model, seed))
    sites = traced.get_trace()
    return {n: s["value"] for n, s in sites.items() if not s["is_observed"]}


def data_for(model):
    return LABELS if model.is_classifier else Y[:, : model.network.out_dim]


def log_joint(model, draw):
    target = model.condition(X, data_for(model))
    return float(log_density(target.numpyro_model, (), {}, draw)[0])


def by_hand(model, draw, weight_scales, bias_scales):
    """Log joint density of a free model, with SciPy."""
    total = 0.0
    for layer, (w, b) in enumerate(zip(weight_scales, bias_scales, strict=True), start=1):
        total += stats.norm(scale=w).logpdf(draw[f"W{layer}"]).sum()
        total += stats.norm(scale=b).logpdf(draw[f"b{layer}"]).sum()
    out = np.asarray(model.network.apply(draw, jnp.asarray(X)))
    if model.predicts_noise:
        sd = model.likelihood.noise_scale * np.log1p(np.exp(out[:, 2:]))
        return total + stats.norm(out[:, :2], sd).logpdf(Y).sum()
    if model.is_classifier:
        return total + special.log_softmax(out, axis=1)[np.arange(5), LABELS].sum()
    if model.infers_noise:
        total += stats.halfnorm(scale=model.likelihood.noise_scale).logpdf(draw["sigma"])
    sigma = draw["sigma"] if model.infers_noise else model.likelihood.noise_sd
    return total + stats.norm(out, sigma).logpdf(data_for(model)).sum()


@pytest.mark.parametrize(
    "likelihood",
    [Gaussian(noise_scale=0.4), Gaussian(noise_sd=0.3), Gaussian("predicted", 0.4), Categorical()],
)
def test_log_density_is_that_of_scipy(likelihood):
    # A scale a layer: each is honoured, in its place.
    prior = NormalPrior((0.5, 2.0, 1.1), (3.0, 0.2, 0.7))
    model = BayesianNetwork(Network(3, (4, 3), 2, "tanh"), likelihood, prior)
    draw = draw_of(model)
    assert ("sigma" in draw) == model.infers_noise
    expected = by_hand(model, draw, (0.5, 2.0, 1.1), (3.0, 0.2, 0.7))
    np.testing.assert_allclose(log_joint(model, draw), expected, rtol=1e-10)


def test_pointwise_log_density_sums_to_the_models():
    out = jnp.asarray(Y) + 0.3
    gaussian = Gaussian(noise_sd=0.5)
    found = gaussian.log_density(out, jnp.asarray(Y), 0.5)
    assert found.shape == (5,)
    np.testing.assert_allclose(found, stats.norm(out, 0.5).logpdf(Y).sum(1), rtol=1e-10)
    found = Categorical().log_density(out, jnp.asarray(LABELS))
    expected = special.log_softmax(out, axis=1)[np.arange(5), LABELS]
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("biases", BIASES)
def test_draws_lie_in_their_constraints_and_the_last_layer_is_free(weights, biases):
    model = BayesianNetwork(Network(3, (4, 3), 2), parametrisation=Parametrisation(weights, biases))
    draws = [draw_of(model, seed) for seed in range(3)]
    assert {n: v.shape for n, v in draws[0].items() if n != "sigma"} == model.network.shapes
    norms = [np.linalg.norm(d[n], axis=0) for d in draws for n in ("W1", "W2")]
    assert all(np.allclose(norm, 1) for norm in norms) == (weights != "free")
    sorted_ = [np.all(np.diff(d[n]) > 0) for d in draws for n in ("b1", "b2")]
    assert all(sorted_) == (biases == "ordered")
    assert not np.allclose(np.linalg.norm(draws[0]["W3"], axis=0), 1)
    assert not all(np.all(np.diff(d["b3"]) > 0) for d in draws)


def test_model_without_data_gives_prior_predictions():
    model = BayesianNetwork(Network(3, (4,), 2))
    sites = handlers.trace(
        handlers.seed(lambda: model.numpyro_model(jnp.asarray(X)), 0)
    ).get_trace()
    assert sites["y"]["value"].shape == (5, 2)
    assert not sites["y"]["is_observed"]


def test_condition_gives_a_complete_target():
    model = BayesianNetwork(Network(3, (4,), 1))
    target = model.condition(X.astype(np.float32), Y[:, 0].tolist(), name="toy")
    assert (target.name, target.model, target.symmetry) == ("toy", model, model.symmetry)
    assert target.dims == model.network.dims
    assert target.x.dtype == target.y.dtype == np.float64
    assert target.y.shape == (5, 1)
    labels = BayesianNetwork(Network(3, (4,), 2), Categorical()).condition(X, LABELS * 1.0).y
    assert labels.dtype == np.int64


DESCRIBED = [
    BayesianNetwork(Network(3, (4,))),
    BayesianNetwork(
        Network(3, (4, 2), 2, "relu", skip="orthogonal", skip_seed=4),
        Gaussian(0.3, 2.0),
        NormalPrior((1.0, 2.0, 3.0), 0.5),
        Parametrisation("givens_seamless", "ordered"),
    ),
    BayesianNetwork(Network(3, (4,), 5, "tanh", biases=False), Categorical()),
    BayesianNetwork(Network(1, (2,), 1, biases=False, readout="sum"), Gaussian(noise_sd=1.0)),
    BayesianNetwork(Network(2, (4,), 2), Gaussian("predicted", noise_scale=0.6)),
]


@pytest.mark.parametrize("model", DESCRIBED)
def test_description_and_pickle_give_the_model_back(model):
    assert BayesianNetwork.from_description(model.describe()) == model
    assert pickle.loads(pickle.dumps(model)) == model


def test_a_target_gives_its_data_with_names_of_axes(rng):
    x, y = rng.normal(size=(4, 2)), rng.normal(size=4)
    target = BayesianNetwork(Network(2, (3,))).condition(x, y)
    assert [(n, dims) for n, (dims, _) in target.inputs.items()] == [("x", ("obs", "in"))]
    assert [(n, dims) for n, (dims, _) in target.outputs.items()] == [("y", ("obs", "out"))]
    labels = BayesianNetwork(Network(2, (3,), 2), Categorical()).condition(x, [0, 1, 1, 0])
    assert labels.outputs["y"][0] == ("obs",)
    assert labels.describe() == labels.model.describe()
