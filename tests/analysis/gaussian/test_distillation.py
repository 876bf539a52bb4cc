"""Distilling a posterior's predictions: the score, planted Gaussians, scrambled units, bad input."""

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from scipy.spatial.distance import cdist
from scipy.special import softmax

from onebasin import diagnose
from onebasin.analysis.gaussian import distillation
from onebasin.analysis.gaussian.distillation import DistillationSettings, distil, energy_score
from onebasin.networks import (
    BayesianNetwork,
    Categorical,
    Gaussian,
    Network,
    Parametrisation,
    predict,
)

pytestmark = pytest.mark.full

QUICK = DistillationSettings(
    iterations=500, learning_rate=0.03, points=300, draws=200, batch_size=64, initial_sd=0.3
)
SHORT = DistillationSettings(iterations=2, points=20, draws=10, learning_rate=1e-4)
REGRESSION = BayesianNetwork(Network(1, (4,), 1, "tanh"), Gaussian(noise_sd=0.1))
CLASSES = BayesianNetwork(Network(2, (4,), 3, "relu"), Categorical())


def planted(model: BayesianNetwork, *, scrambled: bool, num: int = 300) -> xr.DataTree:
    """Draws of a diagonal Gaussian over the weights, each with its hidden units in an order of its own."""
    rng = np.random.default_rng(0)
    shapes = model.network.shapes
    centre = {name: 1.5 * rng.normal(size=shape) for name, shape in shapes.items()}
    draws = {
        name: c + rng.uniform(0.1, 0.4, size=c.shape) * rng.normal(size=(1, num, *c.shape))
        for name, c in centre.items()
    }
    if scrambled:
        orders = np.argsort(rng.uniform(size=(1, num, 4)), axis=-1)
        draws["W1"] = np.take_along_axis(draws["W1"], orders[..., None, :], axis=3)
        draws["b1"] = np.take_along_axis(draws["b1"], orders, axis=2)
        draws["W2"] = np.take_along_axis(draws["W2"], orders[..., :, None], axis=2)
    dims = model.network.dims
    variables = {name: (("chain", "draw", *dims[name]), draws[name]) for name in draws}
    tree = xr.DataTree.from_dict({"posterior": xr.Dataset(variables)})
    tree.attrs = {"model": model.describe()}
    return tree


def outputs(model: BayesianNetwork, draws, x) -> np.ndarray:
    return predict(model, draws, x)[0]


def test_energy_score_is_the_mean_over_pairs(rng):
    ours, y = rng.normal(size=(2, 5, 3)), rng.normal(size=(2, 4, 3))
    pairs = zip(ours, y, strict=True)
    expected = [cdist(a, b).mean() - cdist(a, a).sum() / (2 * 5 * 4) for a, b in pairs]
    found = energy_score(jnp.asarray(ours), jnp.asarray(y))
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_regression_is_distilled_whatever_the_order_of_units():
    tree = planted(REGRESSION, scrambled=True)
    x = np.linspace(-2, 2, 40)[:, None]
    fit = distil(tree, x, settings=QUICK)
    truth = outputs(REGRESSION, tree["posterior"].to_dataset(), x)
    ours = outputs(REGRESSION, fit.sample(500, seed=1)["posterior"].to_dataset(), x)
    spread = truth.std(axis=0)
    assert np.abs((ours.mean(axis=0) - truth.mean(axis=0)) / spread).mean() < 0.15
    assert 0.8 < np.median(ours.std(axis=0) / spread) < 1.25
    # What a Gaussian with the draws' own moments makes of them.
    dataset = tree["posterior"].to_dataset()
    rng = np.random.default_rng(3)
    matched = {
        name: v.values.mean(1)[:, None]
        + v.values.std(1)[:, None] * rng.normal(size=(1, 500, *v.shape[2:]))
        for name, v in dataset.items()
    }
    loose = outputs(REGRESSION, matched, x).std(axis=0)
    assert np.median(loose / spread) > 1.5


def test_classes_keep_their_spread():
    tree = planted(CLASSES, scrambled=True)
    x = np.random.default_rng(1).normal(size=(60, 2))
    fit = distil(tree, x, settings=QUICK)
    truth = softmax(outputs(CLASSES, tree["posterior"].to_dataset(), x), axis=-1)
    ours = softmax(outputs(CLASSES, fit.sample(500, seed=1)["posterior"].to_dataset(), x), axis=-1)
    assert 0.5 * np.abs(ours.mean(0) - truth.mean(0)).sum(-1).mean() < 0.05
    assert 0.8 < ours.std(axis=0).mean() / truth.std(axis=0).mean() < 1.25


def test_a_sample_is_a_posterior_that_proves_nothing_and_has_the_sources_noise():
    model = BayesianNetwork(Network(1, (4,), 1, "tanh"))
    tree = planted(model, scrambled=False)
    sigma = np.random.default_rng(4).uniform(0.1, 0.2, size=(1, 300))
    tree["posterior"] = tree["posterior"].to_dataset().assign(sigma=(("chain", "draw"), sigma))
    tree.attrs["target"] = "teacher"
    drawn = distil(tree, np.linspace(-2, 2, 10)[:, None], settings=SHORT).sample(70, seed=1)
    assert drawn.attrs["target"] == "teacher"
    assert drawn.attrs["method"] == "distilled"
    assert drawn["posterior"].sizes["draw"] == 70
    assert np.isin(drawn["posterior"]["sigma"].values, sigma).all()
    assert drawn["posterior"]["W1"].dims == tree["posterior"]["W1"].dims
    found = diagnose(drawn)
    assert [cause.name for cause in found.judgement.causes] == ["unproved"]
    with pytest.raises(ValueError, match="`num_draws` must be a whole number, at least 1; got 0"):
        distil(tree, np.zeros((3, 1)), settings=SHORT).sample(0)


def test_seed_decides_start_is_taken_and_progress_is_reported_to_the_end(monkeypatch):
    monkeypatch.setattr(distillation, "CHUNK", 1)
    tree, calls = planted(REGRESSION, scrambled=False), []
    x = np.linspace(-2, 2, 10)[:, None]
    first, again, other = (distil(tree, x, settings=SHORT, seed=s) for s in (0, 0, 1))
    for name in first.mean:
        np.testing.assert_array_equal(first.mean[name], again.mean[name])
        last = tree["posterior"][name].values[0, -1]
        np.testing.assert_allclose(first.mean[name], last, atol=1e-3)
    assert any(not np.array_equal(first.mean[n], other.mean[n]) for n in first.mean)
    start = {name: np.zeros(shape) for name, shape in REGRESSION.network.shapes.items()}
    from_zero = distil(tree, x, start=start, settings=SHORT, progress=lambda *a: calls.append(a))
    assert all(np.abs(value).max() < 1e-3 for value in from_zero.mean.values())
    assert calls == [(1, 2), (2, 2)]


def test_constrained_networks_are_refused():
    network, noise = Network(2, (4,), 1, "relu"), Gaussian(noise_sd=0.1)
    tree = planted(BayesianNetwork(network, noise), scrambled=False)
    givens = BayesianNetwork(network, noise, parametrisation=Parametrisation("givens"))
    tree.attrs["model"] = givens.describe()
    with pytest.raises(ValueError, match=r"parametrisation of `posterior` \(givens\) constrains"):
        distil(tree, np.zeros((3, 2)))


def test_a_loss_that_is_not_finite_ends_it():
    tree = planted(REGRESSION, scrambled=False)
    start = {name: np.full(s, 1e38) for name, s in REGRESSION.network.shapes.items()}
    with pytest.raises(RuntimeError, match="The distillation failed: the loss is"):
        distil(tree, np.ones((3, 1)), start=start, settings=QUICK)
