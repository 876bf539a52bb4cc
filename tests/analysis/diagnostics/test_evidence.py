"""No pass without evidence: what is NaN, missing or infinite passes no check, and is named with what to do."""

import json

import numpy as np
import pytest
import xarray as xr

from onebasin.analysis.diagnostics.labels import diagnose_aligned
from onebasin.analysis.diagnostics.measure import measure
from onebasin.analysis.diagnostics.verdict import Reason, in_words, worst_of
from onebasin.models.symmetry.blocks import Exchangeable

SHAPE = (4, 500)
SYMMETRY = (Exchangeable({"mu": 0}),)


@pytest.fixture
def draws(rng):
    return {"mu": rng.normal(size=(*SHAPE, 2))}


def with_nan(values, where):
    values = np.array(values, dtype=np.float64)
    values[where] = np.nan
    return values


UNDEFINED = {
    "lp infinite once": (
        {"lp": lambda rng: np.where(np.arange(500) == 3, -np.inf, rng.normal(size=SHAPE))},
        "failed",
        "log density",
    ),
    "lp constant": ({"lp": lambda rng: np.zeros(SHAPE)}, "not judged", "log density"),
    "lp NaN throughout": ({"lp": lambda rng: np.full(SHAPE, np.nan)}, "not judged", "log density"),
    "energies NaN in the last chain": (
        {"energy": lambda rng: with_nan(rng.normal(size=SHAPE), 3)},
        "failed",
        "E-BFMI",
    ),
    "energies constant": ({"energy": lambda rng: np.ones(SHAPE)}, "not judged", "E-BFMI"),
    "divergences NaN in part": (
        {"diverging": lambda rng: with_nan(np.zeros(SHAPE), (0, 3))},
        "not judged",
        "divergences",
    ),
    "trees NaN in part": (
        {"tree_depth": lambda rng: with_nan(np.full(SHAPE, 3.0), (0, 3))},
        "not judged",
        "tree depth",
    ),
}


@pytest.mark.parametrize(("stats", "outcome", "check"), UNDEFINED.values())
def test_what_is_missing_or_not_finite_never_passes(make_mcmc, draws, rng, stats, outcome, check):
    made = {name: values(rng) for name, values in stats.items()}
    found = measure(make_mcmc(draws, stats=made))
    assert (found.outcome, found.outcome_of(check)) == (outcome, outcome)
    assert not found.passed
    assert check in found.checks_in_words
    assert "every check is passed" not in found.checks_in_words
    assert found.warnings if outcome == "failed" else found.notes
    json.dumps(found.to_dict(), allow_nan=False)


def test_the_limit_of_trees_has_to_be_known(make_mcmc, draws):
    tree = make_mcmc(draws)
    del tree.attrs["max_tree_depth"]
    assert measure(tree).outcome_of("tree depth") == "not judged"
    recorded = make_mcmc(draws, stats={"reached_max_treedepth": np.zeros(SHAPE, bool)})
    del recorded.attrs["max_tree_depth"]
    assert measure(recorded).passed  # ArviZ's word for the same
    recorded.sample_stats["reached_max_treedepth"][0, :3] = True
    assert measure(recorded).outcome_of("tree depth") == "warned"


def test_static_trajectories_have_no_trees_to_judge(make_mcmc, draws):
    tree = make_mcmc(draws, stats={"tree_depth": None}, attrs={"method": "hmc"})
    assert measure(tree).passed


def test_what_was_not_recorded_is_named_with_one_remedy(make_mcmc, draws):
    tree = make_mcmc(draws)
    del tree["sample_stats"]
    missing = ("log density", "divergences", "tree depth", "E-BFMI")
    assert [measure(tree).outcome_of(name) for name in missing] == ["not judged"] * 4
    assert len(measure(tree).notes) == 5


def test_posterior_in_which_nothing_varies_cannot_pass(make_mcmc):
    found = measure(make_mcmc({"mu": np.ones((*SHAPE, 2))}))
    assert found.outcome == "not judged"
    assert found.outcome_of("R-hat") == found.outcome_of("bulk ESS") == "not judged"
    assert found.notes[0].startswith(
        "Nothing varies: every draw of `mu[0]` and `mu[1]` is the same"
    )


def test_integers_are_judged_like_other_numbers(make_mcmc, rng):
    assert measure(make_mcmc({"z": rng.integers(0, 5, size=SHAPE)})).passed
    apart = np.repeat(np.arange(4)[:, None], 500, axis=1)  # every chain at a place of its own
    found = measure(make_mcmc({"z": apart}))
    assert found.outcome == "failed"


def test_a_number_that_cannot_be_computed_is_not_judged(make_mcmc, draws, monkeypatch):
    from onebasin.analysis.diagnostics import measure as module

    def without_ess(draws, whole=module.tabulate):
        table, constants = whole(draws)
        return table.assign(ess_bulk=np.nan), constants

    monkeypatch.setattr(module, "tabulate", without_ess)
    found = measure(make_mcmc(draws))
    assert found.outcome_of("bulk ESS") == "not judged"
    assert "Bulk ESS cannot be computed for `mu[0]` and `mu[1]` (2 parameters)" in found.notes[0]


def test_chain_that_moves_at_one_height_is_not_stuck(make_mcmc, draws, rng):
    lp = rng.normal(size=SHAPE)
    lp[2] = 0.0
    assert measure(make_mcmc(draws, stats={"lp": lp})).sampler.stuck_chains == ()


def test_members_of_an_ensemble_are_no_chain(make_mcmc, rng):
    members = make_mcmc({"W1": rng.normal(size=(1, 200, 1, 2))}, attrs={"method": "ensemble"})
    found = measure(members)
    assert found.outcome == "not judged"
    assert found.outcome_of("divergences") is None


@pytest.mark.parametrize(
    ("last", "elbo", "outcome"),
    [([-2.0, -1.0], -2.0, "passed"), ([np.nan, -1.0], np.nan, "failed")],
)
def test_elbo_of_several_fits_is_that_of_the_worst(make_variational, rng, last, elbo, outcome):
    draws = rng.normal(size=(2, 500))
    tree = make_variational({"mu": draws}, lp=draws, log_q=draws)
    traces = np.stack([np.full(2, -3.0), last], axis=1)
    tree["variational"] = xr.Dataset({"elbo": (("chain", "evaluation"), traces)})
    found = measure(tree)
    assert found.outcome_of("ELBO") == outcome
    assert found.variational.elbo == pytest.approx(elbo, nan_ok=True)


def test_log_density_that_is_not_finite_fails_modulo_symmetry_too(make_mcmc, draws, rng):
    stats = {"lp": with_nan(rng.normal(size=SHAPE), (1, slice(250)))}
    found = diagnose_aligned(make_mcmc(draws, stats=stats), SYMMETRY, noise=False)
    assert found.raw.outcome == "failed"
    assert "nan" not in " ".join(found.sentences)
    json.dumps(found.to_dict(), allow_nan=False)


def test_one_chain_has_no_rhat_modulo_symmetry(make_mcmc, rng):
    one = make_mcmc({"mu": rng.normal(size=(1, 200, 2))})
    found = diagnose_aligned(one, SYMMETRY, noise=False)
    assert found.aligned.outcome != "passed"
    assert not any("nan" in sentence for sentence in found.sentences)


def reasons(**outcomes):
    return [Reason(name, outcome.replace("_", " ")) for name, outcome in outcomes.items()]


def test_checks_pass_together_only_if_each_was_judged_and_passed():
    assert worst_of(["passed", "passed"]) == "passed"
    assert worst_of(["passed", "not judged"]) == "not judged"
    assert worst_of(["not judged", "warned"]) == "warned"
    assert worst_of(["not judged", "failed", "warned"]) == "failed"
    assert worst_of([]) == "not judged"
    assert in_words([]) == "nothing could be checked"
    assert in_words(reasons(a="not judged", b="failed")) == "failed: b; not judged: a"
