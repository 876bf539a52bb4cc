"""Bayesian networks: architecture, priors, likelihoods, predicted noise, and predictions."""

import dataclasses
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro import handlers
from numpyro.infer.util import log_density
from scipy import special, stats

import onebasin as ob
from onebasin.analysis.predictive.predictions import Points, predict_points
from onebasin.inference.runs.posterior import build
from onebasin.models import ACTIVATIONS, predict
from onebasin.models.networks.parametrisation import BIASES, WEIGHTS
from onebasin.networks import (
    BayesianNetwork,
    Categorical,
    Gaussian,
    Network,
    NormalPrior,
    Parametrisation,
)
from onebasin.posteriors.pointwise import network_groups
from onebasin.studies.networks.held_out import predict_held_out

FORMULAS = {
    "identity": lambda z: z,
    "relu": lambda z: np.maximum(z, 0),
    "leaky_relu": lambda z: np.maximum(z, 0.01 * z),
    "tanh": np.tanh,
    "selu": lambda z: 1.0507009873554805 * np.where(z > 0, z, 1.6732632423543772 * np.expm1(z)),
    "softplus": lambda z: np.log1p(np.exp(z)),
    "silu": lambda z: z * special.expit(z),
}


def by_hand(network, weights, x):
    """Kurle et al. 2021, equation 7: h_l = O_l h_{l-1} + W_l f_l(h_{l-1}) + b_l, f_1 the identity.

    One observation, unit and input at a time.
    """
    f = FORMULAS[network.activation]
    skips = network.skip_matrices()
    outputs = []
    for observation in x:
        h = observation
        for number in range(1, len(network.hidden) + 2):
            before = h if number == 1 else f(h)
            if f"W{number}" not in weights:
                h = [sum(before)]
                break
            weight = weights[f"W{number}"]
            after = []
            for unit in range(weight.shape[1]):
                total = sum(weight[i, unit] * before[i] for i in range(len(before)))
                if network.biases:
                    total += weights[f"b{number}"][unit]
                if skips:
                    total += sum(skips[number - 1][i, unit] * h[i] for i in range(len(h)))
                after.append(total)
            h = np.array(after)
        outputs.append(h)
    return np.array(outputs)


@pytest.mark.parametrize(
    "network",
    [
        *(Network(3, (4, 2), 1, name, skip="orthogonal") for name in ACTIVATIONS),
        *(Network(3, hidden, 2, "tanh") for hidden in ((4,), (4, 2, 3, 5, 2))),
        *(Network(3, (4, 2), 2, biases=False, skip=skip) for skip in (None, "orthogonal")),
        *(Network(3, (4, 2), biases=biases, readout="sum") for biases in (True, False)),
    ],
)
def test_forward_pass_is_equation_7(rng, network):
    weights = {n: rng.normal(size=s) for n, s in network.shapes.items()}
    x = rng.normal(size=(6, network.in_dim))
    out = network.apply({n: jnp.asarray(w) for n, w in weights.items()}, jnp.asarray(x))
    assert out.shape == (6, network.out_dim)
    np.testing.assert_allclose(out, by_hand(network, weights, x), rtol=1e-10, atol=1e-12)


def test_names_shapes_and_axes():
    network = Network(3, (5, 4), 2)
    assert network.shapes == {
        "W1": (3, 5),
        "b1": (5,),
        "W2": (5, 4),
        "b2": (4,),
        "W3": (4, 2),
        "b3": (2,),
    }
    assert network.dims == {
        "W1": ("in", "hidden1"),
        "b1": ("hidden1",),
        "W2": ("hidden1", "hidden2"),
        "b2": ("hidden2",),
        "W3": ("hidden2", "out"),
        "b3": ("out",),
    }
    assert tuple(Network(3, (5,), biases=False).shapes) == ("W1", "W2")
    assert tuple(Network(3, (5,), readout="sum").dims) == ("W1", "b1")


def test_skip_matrices_are_semi_orthogonal_in_every_layer():
    network = Network(3, (5, 4, 4), 2, skip="orthogonal")
    shapes = [(3, 5), (5, 4), (4, 4), (4, 2)]
    matrices = network.skip_matrices()
    assert [m.shape for m in matrices] == shapes
    for m in matrices:
        product = m.T @ m if m.shape[0] >= m.shape[1] else m @ m.T
        np.testing.assert_allclose(product, np.eye(min(m.shape)), atol=1e-14)
    assert Network(3, (5,)).skip_matrices() == ()


def test_skip_matrices_are_drawn_uniformly():
    # A QR factor alone is not: its diagonal would not be symmetric about 0.
    corners = [
        Network(2, (2,), 2, skip="orthogonal", skip_seed=seed).skip_matrices()[0][0, 0]
        for seed in range(400)
    ]
    assert abs(np.mean(corners)) < 5 * np.sqrt(0.5 / 400)
    assert abs(np.mean(np.square(corners)) - 0.5) < 5 * np.sqrt(0.125 / 400)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"in_dim": 0}, "`in_dim` must be a whole number, at least 1; got 0"),
        ({"out_dim": True}, "`out_dim` must be a whole number, at least 1; got True"),
        ({"hidden": (3, 0)}, "`hidden` must be a whole number, at least 1; got 0"),
        (
            {"hidden": ()},
            r"`hidden` must be a tuple with the number of units of each hidden layer.*got \(\)",
        ),
        ({"skip_seed": -1}, "`skip_seed` must be a whole number, at least 0; got -1"),
        ({"activation": "rleu"}, f"'rleu'; choose one of {', '.join(ACTIVATIONS)}.*'relu'?"),
        ({"readout": "mean"}, "`readout` is 'mean'; choose one of linear, sum"),
        ({"readout": "sum", "out_dim": 2}, "`readout` is 'sum'.*has out_dim=2"),
        ({"readout": "sum", "skip": "orthogonal"}, "`readout` is 'sum'.*skip='orthogonal'"),
    ],
)
def test_network_refuses(options, message):
    with pytest.raises(ValueError, match=message):
        Network(**{"in_dim": 3, "hidden": (4,), **options})


Z = np.array([-3.0, -0.4, 0.7, 5.0])
every = pytest.mark.parametrize("activation", ACTIVATIONS.values(), ids=ACTIVATIONS.keys())


@every
def test_declared_properties_are_true(activation):
    f = activation.function
    same = all(np.allclose(f(a * Z), a * f(Z), rtol=1e-10) for a in (0.2, 7.0))
    assert same == activation.positively_homogeneous
    assert np.allclose(f(-Z), -f(Z), rtol=1e-10) == activation.odd


@every
def test_nan_stays_nan_and_gradients_are_finite_far_out(activation):
    assert jnp.isnan(activation.function(jnp.array(jnp.nan)))
    for z in (-700.0, 0.0, 700.0):
        assert jnp.isfinite(jax.grad(activation.function)(z))


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


def density_by_hand(model, draw, weight_scales, bias_scales):
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
    expected = density_by_hand(model, draw, (0.5, 2.0, 1.1), (3.0, 0.2, 0.7))
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


SKIPPING = BayesianNetwork(Network(3, (4, 2), 2, "tanh", skip="orthogonal"))
POINTS = np.random.default_rng(1).normal(size=(6, 3))


@pytest.fixture
def draws(rng):
    return {n: rng.normal(size=(2, 5, *s)) for n, s in SKIPPING.network.shapes.items()}


@pytest.mark.parametrize("batch_size", [1, 3, 256])
def test_prediction_is_the_network_of_each_draw(draws, batch_size):
    out = predict(SKIPPING, draws, POINTS, batch_size=batch_size)
    assert out.shape == (2, 5, 6, 2)
    for chain, draw in np.ndindex(2, 5):
        weights = {n: jnp.asarray(v[chain, draw]) for n, v in draws.items()}
        expected = SKIPPING.network.apply(weights, jnp.asarray(POINTS))
        np.testing.assert_allclose(out[chain, draw], expected, rtol=1e-10, atol=1e-13)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({"W2": None}, {}, "`draws` must contain W2; got W1, b1, b2, W3, b3"),
        (
            {"b1": np.zeros((2, 4, 4))},
            {},
            r"array b1 in `draws` has shape \(2, 4, 4\).*chain, draw, 4",
        ),
        (
            {"W1": np.zeros((3, 4))},
            {},
            r"array W1 in `draws` has shape \(3, 4\).*chain, draw, 3, 4",
        ),
        ({}, {"batch_size": 0}, "`batch_size` must be a whole number, at least 1; got 0"),
        ({}, {"x": POINTS[:, :2]}, r"`x` must have shape \(obs, 3\).* got \(6, 2\)"),
        ({}, {"x": POINTS * np.nan}, r"`x` has 18 value\(s\) that are not finite"),
    ],
)
def test_prediction_refuses(draws, change, options, message):
    draws = {n: v for n, v in {**draws, **change}.items() if v is not None}
    with pytest.raises(ValueError, match=message):
        predict(SKIPPING, draws, **{"x": POINTS, **options})


@pytest.mark.parametrize("likelihood", [Gaussian(noise_sd=0.5), Categorical()])
def test_the_seed_decides_what_is_drawn_from_the_predictive(draws, likelihood):
    model = BayesianNetwork(SKIPPING.network, likelihood)
    y = np.zeros(6, np.int64) if model.is_classifier else np.zeros((6, 2))

    def drawn(seed):
        groups = network_groups(model, draws, POINTS, y, seed=seed, limit_mb=1.0)
        return np.asarray(groups["posterior_predictive"].values["y"])

    np.testing.assert_array_equal(drawn(1), drawn(1))
    assert (drawn(1) != drawn(2)).any()


NOISY = ob.networks.BayesianNetwork(
    ob.networks.Network(2, (4,), out_dim=2), ob.networks.Gaussian("predicted", noise_scale=0.6)
)
NOISY_X = np.random.default_rng(1).normal(size=(12, 2))
NOISY_Y = np.random.default_rng(2).normal(size=(12, 2))


@pytest.fixture(scope="module")
def noisy_draws():
    rng = np.random.default_rng(3)
    return {n: rng.normal(size=(2, 150, *s)) for n, s in NOISY.network.shapes.items()}


@pytest.fixture(scope="module")
def tree(noisy_draws):
    return build(
        NOISY.condition(NOISY_X, NOISY_Y), noisy_draws, {"lp": np.zeros((2, 150))}, {"seed": 1}
    )


def noise_by_hand(noisy_draws, x=NOISY_X):
    """Means and standard deviations (chain, draw, obs, out), with NumPy alone."""
    hidden = np.maximum(x @ noisy_draws["W1"] + noisy_draws["b1"][..., None, :], 0)
    output = hidden @ noisy_draws["W2"] + noisy_draws["b2"][..., None, :]
    return output[..., :2], 0.6 * special.softplus(output[..., 2:])


def log_scores(noisy_draws):
    mean, sd = noise_by_hand(noisy_draws)
    return stats.norm.logpdf(NOISY_Y, mean, sd).sum(axis=-1)


def test_the_last_layer_has_a_second_head_and_data_have_not():
    assert NOISY.network.shapes["W2"] == (4, 4)
    assert (NOISY.network.out_dim, NOISY.infers_noise, NOISY.predicts_noise) == (2, False, True)
    target = NOISY.condition(NOISY_X, NOISY_Y)
    assert target.dims["W2"] == ("hidden1", "head")
    assert target.coords["head"] == ["mean[0]", "mean[1]", "noise[0]", "noise[1]"]
    of_units = ob.networks.BayesianNetwork(ob.networks.Network(2, (4,), out_dim=2)).symmetry
    assert target.symmetry == of_units
    assert "network 2-4-4 (relu, means and noise)" in repr(target)
    assert "predicted too, 0.6 times the softplus" in NOISY._repr_html_()


@pytest.mark.usefixtures("unchecked")
def test_a_plain_sum_cannot_predict_noise_and_another_word_is_refused():
    of_sum = ob.networks.Network(2, (4,), readout="sum")
    with pytest.raises(ValueError, match=r"`noise_sd` is 'predicted', but .*'sum'.*'linear'"):
        ob.networks.BayesianNetwork(of_sum, ob.networks.Gaussian("predicted"))
    with pytest.raises(
        ValueError, match=r"`noise_sd` must be a positive number, None .*; got 'learned'"
    ):
        ob.networks.Gaussian("learned")


def test_predictions_are_means_and_noise(noisy_draws, tree):
    mean, sd = ob.networks.predict_with_noise(NOISY, tree, NOISY_X)
    expected = noise_by_hand(noisy_draws)
    np.testing.assert_allclose(mean, expected[0], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(sd, expected[1], rtol=1e-10)
    np.testing.assert_array_equal(ob.networks.predict(NOISY, tree, NOISY_X), mean)
    np.testing.assert_array_equal(ob.predict(tree, NOISY_X), mean)


@pytest.mark.parametrize("noise_sd", [0.3, None])
def test_constant_noise_is_given_for_every_prediction(noisy_draws, noise_sd):
    model = dataclasses.replace(NOISY, likelihood=ob.networks.Gaussian(noise_sd))
    own = {**noisy_draws, "W2": noisy_draws["W2"][..., :2], "b2": noisy_draws["b2"][..., :2]}
    own["sigma"] = np.random.default_rng(4).uniform(1, 2, (2, 150))
    mean, sd = ob.networks.predict_with_noise(model, own, NOISY_X)
    expected = own["sigma"][..., None, None] if noise_sd is None else noise_sd
    np.testing.assert_array_equal(sd, np.broadcast_to(expected, mean.shape))


def test_log_likelihoods_and_replicates_are_of_the_predicted_noise(noisy_draws):
    groups = network_groups(NOISY, noisy_draws, NOISY_X, NOISY_Y, seed=1, limit_mb=10)
    found = groups["log_likelihood"].values["y"]
    np.testing.assert_allclose(found, log_scores(noisy_draws), rtol=1e-10)
    mean, sd = noise_by_hand(noisy_draws)
    standard = ((groups["posterior_predictive"].values["y"] - mean) / sd).ravel()
    assert abs(standard.mean()) < 5 / np.sqrt(standard.size)
    assert abs(standard.std() - 1) < 5 / np.sqrt(2 * standard.size)


def test_scores_are_those_of_the_mixture(noisy_draws, tree):
    expected = (special.logsumexp(log_scores(noisy_draws), axis=(0, 1)) - np.log(300)).mean()
    found = predict_points(NOISY, tree, Points.of(NOISY, NOISY_X, NOISY_Y))
    assert found.scores["log_score"] == pytest.approx(expected, rel=1e-10)
    mean, _ = noise_by_hand(noisy_draws)
    assert found.scores["rmse"] == pytest.approx(
        np.sqrt(np.mean((mean.mean((0, 1)) - NOISY_Y) ** 2))
    )
    held_out = predict_held_out(tree, NOISY, NOISY_X, NOISY_Y)
    assert held_out.scores.log_score == pytest.approx(expected, rel=1e-10)
    assert held_out.points.index[0] == "f[0,0]"
    assert len(held_out.points) == 24
    assert list(held_out.table.index[24:26]) == ["sigma[0,0]", "sigma[0,1]"]


def test_deep_underflow_of_the_noise_is_no_number_that_passes_unseen():
    # softplus(-1000) is 0 in double precision: the density is not finite, so that a sampler turns back.
    output = jnp.array([[0.0, 0.0, -1000.0, 0.0]])
    density = jax.jit(NOISY.likelihood.log_density)(output, jnp.ones((1, 2)))
    assert not np.isfinite(density).any()
