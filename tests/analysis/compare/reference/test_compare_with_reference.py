"""Runs held against what is known: right ones, planted errors, stuck chains, labels, fits, networks."""

import json
import re

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy.stats import norm

from onebasin.analysis.alignment import align
from onebasin.analysis.alignment.rule import AlignmentTarget
from onebasin.analysis.compare.reference.compare import compare_with_reference
from onebasin.analysis.compare.reference.judging import FALSE_ALARM, differences, tried
from onebasin.analysis.compare.reference.known import Known, known_of
from onebasin.analysis.summaries.quantiles import describe
from onebasin.models import BayesianNetwork, Gaussian, Network
from onebasin.models.symmetry.blocks import Exchangeable, to_json
from onebasin.posteriors.draws import Draws

from ....each import each
from ...conftest import ORDERS, autoregression, switched_mixture

CORRELATION = 0.3
SHAPE = (4, 500, 6)
CENTRES = np.array([-3.0, 0.0, 3.0])
SYMMETRY = to_json((Exchangeable({"mu": 0, "sigma": 0}),))


def truth_of(rng, count=SHAPE[2]):
    """Ten thousand independent draws of independent standard normals."""
    names = tuple(f"mu[{place}]" for place in range(count))
    return describe(Draws(names, rng.normal(size=(1, 10_000, count))), independent=True)


def run_of(rng, change=lambda values: values):
    values = change(autoregression(rng, CORRELATION, SHAPE))
    names = tuple(f"mu[{place}]" for place in range(SHAPE[2]))
    return describe(Draws(names, values))


def shifted(values):
    values[..., 3] += 0.2
    return values


def narrowed(values):
    values[..., 3] *= 0.8
    return values


def held(known, run):
    table = differences(known, run, chains=4)
    assert table["passed"].all()
    return tried(table)


def test_runs_that_are_right_are_said_to_differ_as_rarely_as_stated():
    rng = np.random.default_rng(1)
    count = 40
    alarms = sum(bool(held(truth_of(rng), run_of(rng)).beyond) for _ in range(count))
    expected = FALSE_ALARM * count
    assert alarms <= expected + 3 * np.sqrt(expected)


@each(("change", "statistic", "about"), [(shifted, "d_mean", 0.2), (narrowed, "width_ratio", 0.8)])
def test_a_planted_error_is_found_every_time(change, statistic, about):
    rng = np.random.default_rng(2)
    for _ in range(4):
        known, run = truth_of(rng), run_of(rng, change)
        found = held(known, run)
        assert "mu[3]" in found.beyond
        assert differences(known, run, chains=4).loc["mu[3]", statistic] == pytest.approx(
            about, abs=0.1
        )


def test_what_is_said_to_be_visible_is_seen():
    rng = np.random.default_rng(3)
    known = truth_of(rng)
    visible = held(known, run_of(rng)).visible
    assert 0.1 < visible < 0.3

    def moved(values):
        values[..., 5] += visible
        return values

    seen = sum("mu[5]" in held(known, run_of(rng, moved)).beyond for _ in range(10))
    assert seen >= 8  # of 9.5 expected


@pytest.fixture(scope="module")
def known(make_mcmc):
    """A mixture in one labelling, and what is known of it."""
    rng = np.random.default_rng(4)
    return known_of(mixture(make_mcmc, rng, chains=4, draws=2000), name="mixture")


def mixture(make_mcmc, rng, *, chains=4, draws=500, shift=0.0, labels=True):
    values = switched_mixture(rng, chains, draws, orders=ORDERS if labels else ORDERS[:1])
    values["mu"] += shift
    return make_mcmc(values, attrs={"symmetry": SYMMETRY})


def test_a_run_under_other_labels_agrees(known, make_mcmc, rng):
    found = compare_with_reference(mixture(make_mcmc, rng), known, name="mine")
    assert (found.verdict, found.beyond) == ("agrees", ())
    assert found.table["kind"].tolist()[0] == "invariant"
    assert "mean(mu)" in found.table.index and "lp" not in found.table.index
    assert abs(found.table.loc["mu[0]", "d_mean"]) < 0.2
    first, seen, *_ = found.sentences
    assert first.startswith("Agrees with `mixture`, as far as its Monte Carlo error can see")
    assert "would have been seen" in seen
    assert 0.05 < found.visible < 0.4
    assert "Bonferroni" in found.notes[0] and "canonical labelling" in found.notes[1]
    assert found.heading in repr(found)
    plain = found.to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert {"verdict", "quantities", "visible", "z_bound"} <= set(plain)


def test_a_run_that_differs_says_where_and_by_how_much(known, make_mcmc, rng):
    found = compare_with_reference(mixture(make_mcmc, rng, shift=0.15), known)
    assert found.verdict == "differs"
    assert found.sentences[0].startswith(
        "Differs from `mixture` by more than Monte Carlo error, in "
    )
    assert "sds too high" in found.sentences[0]
    assert found.worst(1).index[0] in found.beyond


def test_narrow_fits_are_called_narrow(known, make_variational, rng):
    mu = CENTRES + 0.18 * rng.normal(size=(1, 1000, 3))
    sigma = np.array([0.5, 1.0, 2.0]) * np.exp(0.1 * rng.normal(size=(1, 1000, 3)))
    lp = rng.normal(size=(1, 1000))
    fit = make_variational({"mu": mu, "sigma": sigma}, lp=lp, log_q=lp)
    found = compare_with_reference(fit, known)
    assert (found.table["ess_bulk"] == 1000).all()
    assert found.table["rhat"].isna().all()
    assert found.verdict == "differs"
    (narrow,) = re.findall(r"(\d+) % too narrow", found.sentences[0])
    assert 36 <= int(narrow) <= 44
    assert found.table.loc["mu[1]", "sd_ratio"] == pytest.approx(0.6, abs=0.05)


def test_a_stuck_chain_is_not_judged_whatever_its_z(known, make_mcmc, rng):
    tree = mixture(make_mcmc, rng, labels=False)
    values = tree["posterior"]["mu"].values
    values[1] += 15.0
    found = compare_with_reference(tree, known)
    assert abs(found.table.loc["mean(mu)", "z_mean"]) < 5  # which would pass: what the gate is for
    assert found.verdict == "cannot be judged"
    assert (found.tests, found.beyond) == (0, ())
    assert "R-hat above 1.05" in found.sentences[0] and "onebasin diagnose" in found.sentences[0]
    assert np.isnan(found.z_bound) and np.isnan(found.visible)


def test_a_short_run_is_told_how_much_longer(known, make_mcmc, rng):
    found = compare_with_reference(mixture(make_mcmc, rng, draws=60), known)
    assert found.verdict == "cannot be judged"
    assert "fewer than 400 effective draws" in found.sentences[0]
    assert "Draw about 3 times as many" in found.sentences[0]


def test_where_labels_do_not_settle_invariants_are_judged_alone(known, make_mcmc, rng):
    tree = mixture(make_mcmc, rng, labels=False)
    sigma = tree["posterior"]["sigma"].values
    for chain in (0, 1):  # what belongs to what differs: nothing that the measured quantities see
        sigma[chain] = sigma[chain][:, ::-1]

    def measure(view):
        return Draws(("mean(mu)",), view.values("mu").mean(axis=2)[..., None])

    blind = Known(
        known.name, known.draws, known.symmetry, known.labelling, known.parameters,
        describe(measure(known.draws)), measure,
    )  # fmt: skip
    found = compare_with_reference(tree, blind)
    assert found.verdict == "agrees in part"
    assert set(found.table.loc[~found.table["passed"], "kind"]) == {"parameter"}
    assert "in label-free quantities" in found.sentences[0]
    assert any(sentence.startswith("Its parameters are not judged") for sentence in found.sentences)


def test_a_single_chain_can_be_judged(known, make_mcmc, rng):
    found = compare_with_reference(mixture(make_mcmc, rng, chains=1, draws=2000), known)
    assert found.verdict == "agrees"


def test_covariances_over_parts_do_not_depend_on_the_largest_draw(make_mcmc, rng):
    """Their unit was a power of two near it, so that two posteriors' could not be compared."""
    run, wide = (mixture(make_mcmc, rng) for _ in range(2))
    wide["posterior"]["mu"].values[0, 0, 0] = 40.0
    known = known_of(wide)
    found = compare_with_reference(run, known)
    assert abs(found.table.loc["cov(mu,sigma)", "d_mean"]) < 0.3


def test_a_posterior_may_be_the_reference(make_mcmc, rng):
    truth, run = (mixture(make_mcmc, rng) for _ in range(2))
    found = compare_with_reference(run, truth)
    assert (found.reference, found.verdict) == ("the reference", "agrees")


def test_constants_that_differ_are_far_apart():
    table = describe(Draws(("a", "b"), np.ones((1, 9, 2))), independent=True)
    other = table.copy()
    other.loc["b", ["mean", "q5", "q50", "q95"]] = 2.0
    found = differences(table, other, chains=4)
    assert found.loc["a", "z_mean"] == 0.0
    assert found.loc["b", "z_mean"] == np.inf
    assert found["passed"].all()
    assert tried(found).beyond == ("b",)


def test_weights_and_variables_can_be_left_out(known, make_mcmc, rng):
    run = mixture(make_mcmc, rng)
    assert set(compare_with_reference(run, known, weights=False).table["kind"]) == {"invariant"}
    rows = compare_with_reference(run, known, var_names=["sigma"]).table
    assert rows.index[rows["kind"] == "parameter"].tolist() == ["sigma[0]", "sigma[1]", "sigma[2]"]


def test_networks_are_held_against_by_their_predictions_too(make_network, rng):
    model = BayesianNetwork(Network(1, (2,), 1, "relu"), Gaussian()).describe()
    truth = make_network(rng, swap=True, draws=400, model=model)
    run = make_network(rng, draws=400, model=model)
    for group in ("constant_data", "observed_data"):
        run[group] = xr.DataTree(truth[group].to_dataset())  # those that both are fitted to
    known = known_of(truth, name="net", symmetry="W1:1,b1,W2")
    found = compare_with_reference(run, known)
    assert found.predictions["mean_distance"] < 3 * found.predictions["mean_distance_floor"] + 0.3
    assert any(s.startswith("Mean predictions lie") for s in found.sentences)
    assert "output[0,0]" in found.table.index
    far = compare_with_reference(run, known, x=np.array([[9.0]]))
    assert far.predictions["mean_distance"] != found.predictions["mean_distance"]
    bare = xr.DataTree.from_dict({"posterior": run["posterior"].to_dataset()})
    assert compare_with_reference(bare, known).predictions["mean_distance"] > 0


def test_a_reference_without_errors_is_refused(known):
    table = known.parameters.drop(columns="mcse_q5")
    with pytest.raises(ValueError, match=r"`reference` mixture lacks mcse_q5"):
        Known("mixture", known.draws, (), None, table, known.invariants, known.measure)


def test_draws_are_matched_with_a_labelling_known_by_its_numbers(make_mcmc, rng):
    tree = mixture(make_mcmc, rng)
    aligned = align(tree)
    data = aligned.posterior["posterior"].to_dataset()
    centre = {name: data[name].values.mean(axis=(0, 1)) for name in ("mu", "sigma")}
    scale = {name: data[name].values.std(axis=(0, 1)) for name in ("mu", "sigma")}
    again = align(mixture(make_mcmc, rng), reference=AlignmentTarget.of(centre, scale))
    got = again.posterior["posterior"]["mu"].values.mean(axis=(0, 1))
    np.testing.assert_allclose(got, centre["mu"], atol=0.1)
    np.testing.assert_allclose(again.reference["mu"], centre["mu"])
    with pytest.raises(ValueError, match="`scale` of mu must be positive and of shape"):
        AlignmentTarget.of(centre, {"mu": [1.0], "sigma": scale["sigma"]})


def test_tables_of_a_report_show_the_worst_first(known, make_mcmc, rng):
    from onebasin.analysis.report import reference_table

    found = compare_with_reference(mixture(make_mcmc, rng, shift=0.2), known)
    table = reference_table(found, worst=3)
    assert len(table.rows) == 3
    assert table.rows[0][5].flag == "bad"
    assert isinstance(found.table, pd.DataFrame)


def test_the_bound_is_two_sided_and_counts_the_tests(rng):
    found = held(truth_of(rng), run_of(rng))
    assert found.number == 24
    assert found.bound == pytest.approx(norm.isf(FALSE_ALARM / 2 / 2 / 24))


@pytest.mark.parametrize("which", ["ess_bulk", "ess_tail"])
def test_both_effective_sizes_have_to_be_large_enough(rng, which):
    known, run = truth_of(rng), run_of(rng)
    run.loc["mu[2]", which] = 399.0
    passed = differences(known, run, chains=4)["passed"]
    assert list(passed.index[~passed]) == ["mu[2]"]
