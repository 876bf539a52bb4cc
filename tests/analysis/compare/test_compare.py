"""Comparisons against forward passes by hand; what is rejected, what is left empty and said."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import norm

from onebasin.analysis.compare.compare import compare
from onebasin.analysis.compare.comparison import BASELINE
from onebasin.analysis.diagnostics.diagnose import diagnose
from onebasin.analysis.report import comparison_table
from onebasin.base.table import Table
from onebasin.models.networks.architecture import Network
from onebasin.models.networks.bayesian import BayesianNetwork, predict
from onebasin.models.networks.likelihood import Categorical, Gaussian
from onebasin.models.networks.parametrisation import Parametrisation
from onebasin.models.symmetry.blocks import Exchangeable, to_json

from ..conftest import network_posterior

SHAPE = (4, 60)
REGRESSION = BayesianNetwork(Network(2, (3,)))
CLASSES = BayesianNetwork(Network(2, (3,), out_dim=3), likelihood=Categorical())


@pytest.fixture
def make():
    """Build a posterior of a network; hidden units are well apart, chains under labels of their own."""

    def build(model, *, seed, spread=0.1, data=0, shape=SHAPE):
        rng = np.random.default_rng(seed)
        centres = np.random.default_rng(17)
        draws = {}
        for name, size in model.network.shapes.items():
            centre = 1.5 * centres.normal(size=size)
            draws[name] = centre + spread * rng.normal(size=(*shape, *size))
        for chain in range(shape[0]):
            order = rng.permutation(3)
            draws["W1"][chain] = draws["W1"][chain][..., order]
            draws["b1"][chain] = draws["b1"][chain][..., order]
            draws["W2"][chain] = draws["W2"][chain][:, order]
        if model.infers_noise:
            draws["sigma"] = 0.5 * np.exp(0.05 * rng.normal(size=shape))
        return network_posterior(model, draws, _data(model, data))

    return build


def _data(model, seed):
    rng = np.random.default_rng(100 + seed)
    x = rng.normal(size=(20, 2))
    return x, (rng.integers(0, 3, 20) if model.is_classifier else rng.normal(size=(20, 1)))


def _outputs(tree, x):
    """The network's outputs (draw, obs, out)."""
    return np.concatenate(predict(REGRESSION, tree["posterior"].to_dataset(), x))


def test_the_floor_is_the_second_half_against_the_first(make):
    tree = make(REGRESSION, seed=1)
    table = compare({"one": tree, "two": tree}, truth="one", weights=False).table
    baseline = table.loc["baseline"]
    outputs = _outputs(tree, _data(REGRESSION, 0)[0]).reshape(2, -1, 20, 1)
    apart = (outputs[1].mean(0) - outputs[0].mean(0)) / outputs[0].std(0)
    assert baseline["mean_distance"] == pytest.approx(np.sqrt(np.mean(apart**2)))
    assert np.isnan(table.loc["one", "mean_distance"])


def test_equal_posteriors_are_equal_modulo_labels_and_others_are_not(make):
    trees = {name: make(REGRESSION, seed=seed) for seed, name in ((1, "one"), (2, "two"))}
    trees["wide"] = make(REGRESSION, seed=3, spread=0.2)
    table = compare(trees, truth="one", permutations=199).table
    assert table.loc["two", "energy_p"] > 1e-2
    assert table.loc["wide", "energy_p"] == 0.005
    assert table.loc["wide", "energy"] > 10 * abs(table.loc["two", "energy"])
    raw = compare(trees, truth="one", symmetry=(), permutations=9).table
    assert raw.loc["two", "num_draws"] < table.loc["two", "num_draws"] / 4


def test_another_parametrisation_is_compared_in_prediction_alone(make):
    ordered = BayesianNetwork(Network(2, (3,)), parametrisation=Parametrisation(biases="ordered"))
    trees = {"free": make(REGRESSION, seed=1), "ordered": make(ordered, seed=2)}
    found = compare(trees, truth="free", permutations=9)
    row = found.table.loc["ordered"]
    assert np.isfinite(row["mean_distance"])
    assert row[["energy", "energy_p"]].isna().all()
    assert any("`ordered`" in note and "only by their predictions" in note for note in found.notes)


def test_posteriors_of_no_network_have_moments_and_weight_space(make_mcmc, rng):
    def mixture(shift):
        mu = np.array([-3.0, 0.0, 3.0]) + 0.2 * rng.normal(size=(4, 300, 3)) + shift
        for chain in range(4):
            mu[chain] = mu[chain][:, rng.permutation(3)]
        return make_mcmc({"mu": mu}, attrs={"symmetry": to_json((Exchangeable({"mu": 0}),))})

    trees = {"one": mixture(0.0), "two": mixture(0.0), "moved": mixture(0.3)}
    found = compare(trees, truth="one", permutations=99)
    assert found.kind == "parameters"
    assert found.table.loc["two", "verdict"] == "agree"
    assert found.table.loc["moved", "verdict"] == "differ"
    assert found.table.loc["moved", "max_abs_d"] == pytest.approx(1.5, rel=0.1)
    assert found.table.loc["moved", "energy_p"] == 0.01
    with pytest.raises(
        ValueError, match=r"`x` is given, but `one` is not the posterior of a network"
    ):
        compare(trees, truth="one", x=np.zeros((3, 1)))


def test_draws_that_both_have_are_no_evidence(make_mcmc, rng):
    mu = rng.normal(size=(2, 2, 60, 3))
    one = make_mcmc({"mu": mu[0]})
    mixed = make_mcmc({"mu": np.stack([mu[1, 0], mu[0, 1]])})
    found = compare({"one": one, "two": make_mcmc({"mu": mu[1]}), "mixed": mixed}, permutations=9)
    (warning,) = (each for each in found.warnings if "evidence" in each)
    assert warning.startswith("`mixed` and `one` share all or many draws of a chain")
    thinned = compare({"one": one, "thinned": make_mcmc({"mu": mu[0, :, ::5]})}, permutations=9)
    assert any("evidence" in each for each in thinned.warnings)


def test_labels_in_another_order_are_named_with_what_compares_modulo_them(make_mcmc, rng):
    places = np.array([-5.0, 5.0]) + rng.normal(size=(2, 2, 200, 2))
    width = np.array([1.0, 3.0]) + 0.1 * rng.normal(size=(2, 2, 200, 2))
    one, other = ({"mu": m, "sigma": s} for m, s in zip(places, width, strict=True))
    swapped = {name: value[..., ::-1] for name, value in other.items()}
    for second, told in ((swapped, 1), ({**other, "mu": other["mu"] + 1}, 0)):
        found = compare({"a": make_mcmc(one), "b": make_mcmc(second)}, permutations=9)
        assert sum('`symmetry="mu,sigma"` or `--exch' in each for each in found.warnings) == told


def test_a_symmetry_is_given_in_words(make_mcmc, rng):
    places = np.array([-5.0, 5.0]) + rng.normal(size=(2, 40, 2))
    swapped = np.concatenate([places[:1], places[1:, :, ::-1]])
    trees = {"one": make_mcmc({"mu": places}), "other": make_mcmc({"mu": swapped})}
    options = {"truth": "one", "permutations": 9}
    blocks = compare(trees, symmetry=(Exchangeable({"mu": 0}),), **options)
    assert blocks.table.loc["other", "energy"] < 1
    for words in ("mu", ("mu",)):
        assert compare(trees, symmetry=words, **options).table.equals(blocks.table)


def test_the_result_is_strict_json_and_a_table(make):
    trees = {"one": make(CLASSES, seed=1), "two": make(CLASSES, seed=2)}
    found = compare(trees, truth="two", permutations=9)
    text = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert [row["posterior"] for row in text["posteriors"]] == ["two", "one", "baseline"]
    assert text["truth"] == "two"
    assert isinstance(comparison_table(found), Table)
    assert comparison_table(found).rows[0][0] == "two (truth)"


def test_every_posterior_has_the_noise_of_its_own_network(make):
    # One infers its noise, about 0.5, one knows that it is 2: compared in prediction, each by its own.
    known = BayesianNetwork(Network(2, (3,)), likelihood=Gaussian(noise_sd=2.0))
    trees = {"one": make(REGRESSION, seed=1), "two": make(known, seed=2)}
    found = compare(trees, truth="one", permutations=9)
    x, y = _data(known, 0)
    density = norm.pdf(y, _outputs(trees["two"], x), 2.0).mean(axis=0)
    assert found.table.loc["two", "log_score"] == pytest.approx(np.log(density).mean())
    assert np.isnan(found.table.loc["two", "energy"])
    assert any("`two`" in note and "lacks sigma" in note for note in found.notes)


def test_labels_that_switch_in_the_draws_are_aligned_though_nothing_declares_them(make_mcmc):
    """Unaligned, both means of a component would lie halfway between the two."""

    def mixture(seed, swapped, wide=1.0):
        rng = np.random.default_rng(seed)
        mu = np.stack([rng.normal(m, wide * sd, (4, 400)) for m, sd in ((-2, 0.1), (2, 0.2))], -1)
        mu[list(swapped)] = mu[list(swapped)][..., ::-1]
        return make_mcmc({"mu": mu})

    trees = {"a": mixture(1, (1, 3)), "b": mixture(2, (0,)), "narrow": mixture(3, (2, 3), 0.6)}
    found = compare(trees, permutations=99)
    assert found.means["mean a"].abs().to_numpy() == pytest.approx([2, 2], abs=0.05)
    assert found.means["mean b"].to_numpy() == pytest.approx(found.means["mean a"], abs=0.05)
    assert found.moments["b"].verdict == "agree"
    assert len(found.moments["narrow"].spreads) == 2
    assert found.sentences[1].startswith("`narrow`: 2 sds differ")
    assert any("`symmetry=" in sentence for sentence in found.warnings)


@pytest.fixture
def fit(make_variational, rng):
    """Independent draws of two parameters, the last quarter moved."""

    def make(moved=0.0):
        lp, mu = rng.normal(size=(1, 400)), rng.normal(size=(1, 400, 2))
        mu[:, 300:] += moved
        return make_variational({"mu": mu}, lp=lp, log_q=lp)

    return make


def test_of_the_truth_only_the_half_that_was_set_aside_is_compared(fit):
    table = compare({"a": fit(), "b": fit()}, truth="a", permutations=9).table
    assert table["num_draws"].to_dict() == {"a": 200, "b": 400, BASELINE: 100}


def test_a_drift_within_the_truth_voids_the_other_p_values(fit):
    # The baseline holds the third quarter against the last.
    assert compare({"a": fit(moved=2.0), "b": fit()}, truth="a").warnings
    found = compare({"a": fit(), "b": fit(moved=2.0)}, truth="a")
    assert found.warnings == ()


def test_a_diagnosis_at_hand_is_what_a_comparison_says_of_a_posterior(make_mcmc, rng):
    trees = {name: make_mcmc({"mu": rng.normal(size=(4, 100))}) for name in "ab"}
    stuck = diagnose(make_mcmc({"mu": np.ones((4, 100))}))
    found = compare(trees, permutations=9, diagnoses={"b": stuck})
    (warning,) = (each for each in found.warnings if each.startswith("`b`: Do not use these draws"))
    assert "Nothing varies" in warning
    assert found.table.equals(compare(trees, permutations=9).table)
