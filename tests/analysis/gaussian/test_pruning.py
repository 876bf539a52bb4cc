"""Pruning: small exact cases, all scores, and curves against networks pruned by hand."""

import dataclasses
import json

import numpy as np
import pytest
import xarray as xr

from onebasin.analysis.gaussian import GaussianFit, fit_gaussian
from onebasin.models.networks.architecture import Network
from onebasin.models.networks.bayesian import BayesianNetwork
from onebasin.models.networks.likelihood import Categorical, Gaussian
from onebasin.models.networks.prediction import predict
from onebasin.studies.compact_representation.pruning import LEVELS, SCORES, prune, pruning_curve

from ...each import each

MODEL = BayesianNetwork(Network(2, (2,), 1, activation="tanh"))
MEAN = {
    "W1": np.asarray([[4.0, -1.0], [0.5, 2.0]]),
    "b1": np.asarray([0.3, -0.2]),
    "W2": np.asarray([[-3.0], [0.1]]),
    "b2": np.asarray([0.7]),
    "sigma": np.asarray(0.5),
}
SD = {
    "W1": np.asarray([[0.9, 0.1], [0.4, 0.5]]),
    "b1": np.asarray([0.01, 2.0]),
    "W2": np.asarray([[0.2], [0.05]]),
    "b2": np.asarray([0.3]),
    "sigma": np.asarray(0.02),
}


def planted(mean, sd, model, num=40) -> GaussianFit:
    """A diagonal fit with these moments, by draws that have them."""
    rng = np.random.default_rng(3)

    def draws(name):
        raw = rng.standard_normal((num, *mean[name].shape))
        raw = (raw - raw.mean(axis=0)) / raw.std(axis=0, ddof=1)
        return (mean[name] + sd[name] * raw)[None]

    variables = {
        name: (("chain", "draw", *model.network.dims.get(name, ())), draws(name)) for name in mean
    }
    tree = xr.DataTree.from_dict({"posterior": xr.Dataset(variables)})
    tree.attrs |= {"model": model.describe(), "method": "nuts"}
    return fit_gaussian(tree)


@pytest.fixture(scope="module")
def fit() -> GaussianFit:
    return planted(MEAN, SD, MODEL)


def kept(tree) -> dict[str, list]:
    """Which entries are not 0."""
    return {n: (v.values[0, 0] != 0).ravel().tolist() for n, v in tree["posterior"].items()}


# Of the six weights W1 (4, -1, .5, 2), W2 (-3, .1), half are kept.
EXACT = {
    "sd": ([False, True, False, False], [True, True]),  # .9 .1 .4 .5 | .2 .05
    "signal": ([True, True, False, False], [True, False]),  # 4.4 10 1.25 4 | 15 2
    "magnitude": ([True, False, False, True], [True, False]),
}


@each("by", EXACT)
def test_prune_keeps_the_weights_with_the_best_scores(fit, by):
    tree = prune(fit, 0.5, by=by)
    weights, out = EXACT[by]
    assert kept(tree) == {
        "W1": weights,
        "b1": [True, True],
        "W2": out,
        "b2": [True],
        "sigma": [True],
    }
    for name in ("W1", "W2"):
        found = tree["posterior"][name].values[0, 0]
        np.testing.assert_allclose(found[found != 0], MEAN[name][found != 0], rtol=1e-12)


def test_prune_compares_biases_with_weights_where_asked_to(fit):
    tree = prune(fit, 3 / 9, biases=True)  # sd .01 of b1[0], .05 of W2[1], .1 of W1[0,1]
    assert kept(tree) == {
        "W1": [False, True, False, False],
        "b1": [True, False],
        "W2": [False, True],
        "b2": [False],
        "sigma": [True],
    }


def test_prune_keeps_all_or_no_weights(fit):
    everything = prune(fit, 1.0)["posterior"].to_dataset()
    xr.testing.assert_identical(everything, fit.mean_draw()["posterior"].to_dataset())
    nothing = prune(fit, 0.0)["posterior"]
    assert not nothing["W1"].values.any() and not nothing["W2"].values.any()
    np.testing.assert_allclose(nothing["b1"].values[0, 0], MEAN["b1"], rtol=1e-12)


@each(("keep", "num"), [(0.08, 0), (0.09, 1), (0.25, 2), (0.58, 3), (0.59, 4)])
def test_prune_keeps_the_nearest_number(fit, keep, num):
    tree = prune(fit, keep)
    settings = json.loads(tree.attrs["settings"])
    assert settings["num_kept"] == num
    assert sum(kept(tree)["W1"]) + sum(kept(tree)["W2"]) == num


def test_prune_breaks_ties_by_order():
    fit = planted(MEAN, SD, MODEL)
    tied = dataclasses.replace(fit, scale=np.ones_like(fit.scale))
    assert fit.names == ("W1", "b1", "W2", "b2", "sigma")
    assert kept(prune(tied, 0.5))["W1"] == [True, True, True, False]
    assert kept(prune(tied, 5 / 6))["W2"] == [True, False]


def test_prune_breaks_many_ties_by_order():
    model = BayesianNetwork(Network(10, (20,), 1), likelihood=Gaussian(noise_sd=1.0))
    ones = {name: np.ones(shape) for name, shape in model.network.shapes.items()}
    fit = planted(ones, ones, model)
    levels = np.random.default_rng(5).integers(1, 4, fit.scale.size).astype(np.float64)
    tied = dataclasses.replace(fit, scale=levels)
    assert fit.names == ("W1", "b1", "W2", "b2")
    weights = [*levels[:200], *levels[220:240]]
    first = sorted(range(220), key=lambda i: (weights[i], i))[:110]
    assert kept(prune(tied, 0.5))["W1"] == [i in first for i in range(200)]


def test_prune_at_random_depends_on_the_seed_alone_and_is_nested(fit):
    def places(keep, seed):
        found = kept(prune(fit, keep, by="random", seed=seed))
        return {(n, i) for n in ("W1", "W2") for i, k in enumerate(found[n]) if k}

    assert places(0.5, 1) == places(0.5, 1)
    assert len({frozenset(places(0.5, seed)) for seed in range(20)}) > 5
    for seed in range(5):
        assert places(1 / 6, seed) < places(0.5, seed) < places(5 / 6, seed)


def test_prune_gives_a_posterior_that_predicts(fit):
    x = np.asarray([[1.0, -2.0], [0.5, 0.3], [0.0, 0.0]])
    tree = prune(fit, 0.5)
    found = predict(MODEL, tree["posterior"].to_dataset(), x)
    hidden = np.tanh(x @ np.asarray([[0.0, -1.0], [0.0, 0.0]]) + MEAN["b1"])
    np.testing.assert_allclose(found[0, 0], hidden @ MEAN["W2"] + MEAN["b2"], rtol=1e-10)
    assert set(tree.children) == {"posterior"}
    assert tree.attrs["model"] == MODEL.describe()
    settings = json.loads(tree.attrs["settings"])
    assert (settings["point"], settings["keep"], settings["by"]) == ("pruned mean", 0.5, "sd")


@each("by", SCORES)
@each("batch_size", [1, 8])
def test_curve_is_the_error_of_each_pruned_network(fit, by, batch_size, rng):
    x, y = rng.standard_normal((25, 2)), rng.standard_normal(25)
    levels = (0.2, 1.0, 0.5)
    curve = pruning_curve(fit, x, y, keep=levels, by=by, seed=4, batch_size=batch_size)
    expected = [
        np.sqrt(np.mean((network(prune(fit, keep, by=by, seed=4), x)[:, 0] - y) ** 2))
        for keep in levels
    ]
    np.testing.assert_allclose(curve.score, expected, rtol=1e-10)
    assert (curve.by, curve.measure) == (by, "rmse")
    assert curve.keep.tolist() == list(levels)
    assert curve.num_kept.tolist() == [1, 6, 3]


def network(tree, x):
    """Outputs of the one draw, in NumPy."""
    w = {name: v.values[0, 0] for name, v in tree["posterior"].items()}
    return np.tanh(x @ w["W1"] + w["b1"]) @ w["W2"] + w["b2"]


def test_curve_of_a_classifier_shows_which_weights_matter(rng):
    """Three inputs decide the class; the others have weights near 0 with a wide posterior."""
    model = BayesianNetwork(Network(20, (6,), 2, activation="tanh"), likelihood=Categorical())
    shapes = model.network.shapes
    mean = {name: np.zeros(shape) for name, shape in shapes.items()}
    mean["W1"] = 0.05 * rng.standard_normal((20, 6))
    mean["W1"][:3] = np.kron([[1.0, -1.0]], np.eye(3))
    mean["W2"] = np.kron([[1.0], [-1.0]], np.ones((3, 1))) * [[0.5, -0.5]]
    sd = {name: np.full(shape, 0.9) for name, shape in shapes.items()}
    sd["W1"][:3] = np.where(mean["W1"][:3] != 0, 0.1, 0.9)
    sd["W2"][:] = 0.1
    fit = planted(mean, sd, model)
    x = rng.standard_normal((500, 20))
    labels = (np.tanh(x[:, :3]).sum(axis=1) < 0).astype(np.int64)
    curves = {by: pruning_curve(fit, x, labels, keep=(0.14, 1.0), by=by) for by in ("sd", "random")}
    assert curves["sd"].measure == "accuracy"
    assert curves["sd"].num_kept.tolist() == [18, 132]  # 6 + 12 weights of standard deviation 0.1
    assert curves["sd"].score[0] == 1.0
    assert curves["random"].score[0] < 0.8
    assert curves["sd"].score[1] == curves["random"].score[1]


def test_levels_of_the_default_curve_grow_to_all(fit, rng):
    curve = pruning_curve(fit, rng.standard_normal((5, 2)), rng.standard_normal(5))
    assert curve.keep.tolist() == list(LEVELS) == sorted(LEVELS)
    assert curve.num_kept[-1] == 6


@each("keep", [-0.1, 1.1, float("nan"), True, "half"])
@pytest.mark.usefixtures("unchecked")
def test_shares_are_checked(fit, keep):
    with pytest.raises(ValueError, match=r"`keep` must be a share from 0 to 1; got"):
        prune(fit, keep)
    with pytest.raises(ValueError, match=r"`keep` must be a share from 0 to 1; got"):
        pruning_curve(fit, np.zeros((1, 2)), np.zeros(1), keep=(0.5, keep))


def test_bad_arguments_are_refused(fit):
    with pytest.raises(ValueError, match=r"`by` is 'SD'; choose one of sd, signal"):
        prune(fit, 0.5, by="SD")
    with pytest.raises(
        ValueError, match=r"`seed` must be a whole number from 0 to 4294967295; got -1"
    ):
        prune(fit, 0.5, by="random", seed=-1)
    with pytest.raises(ValueError, match=r"`keep` is empty"):
        pruning_curve(fit, np.zeros((1, 2)), np.zeros(1), keep=())
    with pytest.raises(ValueError, match=r"`x` has shape \(1, 3\), but the network has 2 inputs"):
        pruning_curve(fit, np.zeros((1, 3)), np.zeros(1))
    with pytest.raises(ValueError, match=r"`y` has shape \(2,\), but 1 rows of `x`"):
        pruning_curve(fit, np.zeros((1, 2)), np.zeros(2))
    with pytest.raises(ValueError, match=r"`batch_size` must be"):
        pruning_curve(fit, np.zeros((1, 2)), np.zeros(1), batch_size=0)


def test_only_whole_networks_are_pruned(fit, network_tree):
    with pytest.raises(ValueError, match=r"`fit` has no attribute `model`.*only networks"):
        prune(fit_gaussian(network_tree), 0.5)
    network_tree.attrs["model"] = BayesianNetwork(Network(1, (2,))).describe()
    part = fit_gaussian(network_tree, var_names=["W1", "W2", "sigma"])
    with pytest.raises(ValueError, match=r"`fit` lacks b1, b2 of its network"):
        prune(part, 0.5)
    assert "sample_stats" not in prune(fit_gaussian(network_tree), 0.5).children
