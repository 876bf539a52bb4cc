"""Diagnoses of posteriors with a known ailment: is it found, counted and explained?"""

from __future__ import annotations

import json

import numpy as np
import pytest

from onebasin.analysis.diagnostics.checks import check
from onebasin.analysis.diagnostics.diagnose import diagnose
from onebasin.analysis.diagnostics.labels import diagnose_aligned
from onebasin.analysis.diagnostics.measure import measure
from onebasin.models.symmetry.blocks import Exchangeable

SHAPE = (4, 500)


@pytest.fixture
def healthy(rng):
    """Draws, energy and log density as an ideal sampler leaves them."""
    return {"mu": rng.normal(size=(*SHAPE, 2))}, {"lp": -0.5 * rng.chisquare(2, size=SHAPE)}


def outcomes(tree):
    """The outcome of each check of a posterior as sampled."""
    return {found.name: found.outcome for found in check(measure(tree))}


def test_diagnose_finds_nothing_wrong_with_independent_draws(make_mcmc, healthy):
    draws, stats = healthy
    tree = make_mcmc(draws, stats=stats)
    assert {*outcomes(tree).values()} == {"passed"}
    diagnosis = measure(tree)
    assert list(diagnosis.parameters.index) == ["mu[0]", "mu[1]"]
    assert diagnosis.ess_bulk.value == pytest.approx(2000, rel=0.25)
    assert diagnosis.rhat.value < 1.01
    assert (diagnosis.num_chains, diagnosis.num_draws, diagnosis.total_draws) == (4, 500, 2000)


def test_diagnose_counts_trees_that_reached_the_limit(make_mcmc, healthy):
    draws, stats = healthy
    depth = np.full(SHAPE, 3)
    depth[0, :10], depth[2, 0] = 6, 7
    tree = make_mcmc(draws, stats=stats | {"tree_depth": depth}, attrs={"max_tree_depth": 6})
    sampler = measure(tree).sampler
    assert (sampler.reached_max_treedepth, sampler.deepest_tree) == (11, 7)
    assert sampler.max_tree_depth == 6
    assert sampler.mean_tree_depth == pytest.approx(depth.mean())


def test_diagnose_computes_bfmi_per_chain(make_mcmc, healthy, rng):
    draws, stats = healthy
    # Of independent energies 2, for differences have twice the variance.
    energy = rng.normal(size=SHAPE)
    energy[1] = np.cumsum(energy[1])  # a random walk: near 0
    diagnosis = measure(make_mcmc(draws, stats=stats | {"energy": energy}))
    bfmi = diagnosis.sampler.bfmi
    assert len(bfmi) == 4
    assert [bfmi[c] for c in (0, 2, 3)] == pytest.approx([2.0] * 3, abs=0.4)
    assert bfmi[1] < 0.1


def test_diagnose_reports_cost(make_mcmc, healthy):
    draws, stats = healthy
    diagnosis = measure(make_mcmc(draws, stats=stats))
    assert diagnosis.sampler.sampling_seconds == 10.0
    assert diagnosis.sampler.warmup_seconds == 2.0
    assert diagnosis.ess_per_second == pytest.approx(diagnosis.ess_bulk.value / 10.0)
    assert diagnosis.sampler.gradient_evaluations == 14_000
    assert diagnosis.ess_per_gradient == pytest.approx(diagnosis.ess_bulk.value / 14_000)


def test_diagnose_judges_a_variational_fit_by_khat(make_variational, rng):
    x = 0.2 * rng.normal(size=(1, 2000, 5))
    target, narrow = (-0.5 * (x**2).sum(-1) / scale**2 for scale in (1.0, 0.2))
    tree = make_variational({"mu": x}, lp=target, log_q=narrow)
    bad = measure(tree)
    assert bad.sampler is None
    assert bad.variational.khat > bad.variational.khat_limit
    assert bad.parameters["rhat"].isna().all()
    assert [name for name, outcome in outcomes(tree).items() if outcome != "passed"] == ["k-hat"]
    tree = make_variational({"mu": x}, lp=narrow - 3.0, log_q=narrow)
    exact = measure(tree)
    assert exact.variational.khat == 0.0
    assert {*outcomes(tree).values()} == {"passed"}
    assert exact.variational.elbo == -10.25


def test_to_dict_is_strict_json(make_mcmc, make_variational, rng):
    one = rng.normal(size=(1, 100))
    for tree in (
        make_mcmc({"mu": one, "fixed": np.ones((1, 100))}),
        make_variational({"mu": one}, lp=one, log_q=one),
    ):
        back = json.loads(json.dumps(diagnose(tree).to_dict(), allow_nan=False))
        assert back["summary"]["rhat_value"] is None
        assert back["parameters"][0]["parameter"] == "mu"
        assert back["parameters"][0]["rhat"] is None
        assert back["parameters"][0]["mean"] == pytest.approx(one.mean())


SYMMETRY = (Exchangeable({"mu": 0}),)


@pytest.fixture
def draws(rng):
    return {"mu": rng.normal(size=(*SHAPE, 2))}


def with_nan(values, where):
    values = np.array(values, dtype=np.float64)
    values[where] = np.nan
    return values


ZEROS, NOISE = np.zeros(SHAPE), np.random.default_rng(5).normal(size=SHAPE)


@pytest.mark.parametrize(
    ("stat", "values", "outcome", "name"),
    [
        ("lp", np.where(np.arange(500) == 3, -np.inf, NOISE), "failed", "log density"),
        ("lp", ZEROS, "not judged", "log density"),
        ("lp", ZEROS * np.nan, "not judged", "log density"),
        ("energy", with_nan(NOISE, 3), "failed", "E-BFMI"),  # in the last chain
        ("energy", ZEROS + 1, "not judged", "E-BFMI"),
        ("diverging", with_nan(ZEROS, (0, 3)), "not judged", "divergences"),
        ("tree_depth", with_nan(ZEROS + 3, (0, 3)), "not judged", "tree depth"),
    ],
)
def test_what_is_missing_or_not_finite_never_passes(make_mcmc, draws, stat, values, outcome, name):
    tree = make_mcmc(draws, stats={stat: values})
    found = outcomes(tree)
    assert found[name] == outcome
    assert {*found.values()} == {"passed", outcome}
    json.dumps(diagnose(tree).to_dict(), allow_nan=False)


def test_the_limit_of_trees_has_to_be_known(make_mcmc, draws):
    tree = make_mcmc(draws)
    del tree.attrs["max_tree_depth"]
    assert outcomes(tree)["tree depth"] == "not judged"
    recorded = make_mcmc(draws, stats={"reached_max_treedepth": np.zeros(SHAPE, bool)})
    del recorded.attrs["max_tree_depth"]
    assert outcomes(recorded)["tree depth"] == "passed"  # ArviZ's word for the same
    recorded.sample_stats["reached_max_treedepth"][0, :3] = True
    assert outcomes(recorded)["tree depth"] == "warned"


def test_posterior_in_which_nothing_varies_cannot_pass(make_mcmc):
    found = outcomes(make_mcmc({"mu": np.ones((*SHAPE, 2))}))
    assert "failed" not in found.values()
    assert {found[name] for name in ("varying parameters", "R-hat", "bulk ESS")} == {"not judged"}


def test_members_of_an_ensemble_are_no_chain(make_mcmc, rng):
    members = {"W1": rng.normal(size=(1, 200, 1, 2))}
    found = outcomes(make_mcmc(members, attrs={"method": "ensemble"}))
    assert found["R-hat"] == "not judged"
    assert "divergences" not in found


def test_one_chain_has_no_rhat_modulo_symmetry(make_mcmc, rng):
    one = make_mcmc({"mu": rng.normal(size=(1, 200, 2))})
    found = diagnose_aligned(one, SYMMETRY, noise=False)
    assert "R-hat" not in [each.name for each in check(found.aligned) if each.outcome == "passed"]
    assert not any("nan" in sentence for sentence in found.sentences)
