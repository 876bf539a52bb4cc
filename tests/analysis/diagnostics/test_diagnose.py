"""May it be used? Posteriors of known answers, what is said of them, and what is never passed without evidence."""

import json

import numpy as np
import pytest
import xarray as xr

from onebasin.analysis.alignment import align
from onebasin.analysis.diagnostics.diagnose import diagnose
from onebasin.analysis.diagnostics.verdict import LABELS, PREDICTIONS, SAMPLER, listed
from onebasin.models import BayesianNetwork, Network
from onebasin.models.symmetry.blocks import Exchangeable, Group, to_json

from ..conftest import switched_mixture

SHAPE = (4, 500)


def regression(rng, shape=SHAPE):
    return {
        "alpha": rng.normal(size=shape),
        "beta": rng.normal(np.array([-2.0, 0.5, 3.0]), size=(*shape, 3)),
    }


def mixture(rng, every_draw=False):
    return switched_mixture(rng, *SHAPE, apart=4.0, sd=1.0, every_draw=every_draw)


def test_a_sound_posterior_is_usable(make_mcmc, rng):
    found = diagnose(make_mcmc(regression(rng)))
    assert (found.verdict, found.causes, found.exchangeable) == ("usable", (), ())
    assert [row.outcome for row in found.judgement.rows] == ["passed"] * 3
    assert found.judgement.unjudged == ()
    assert list(found.to_dict())[:3] == ["verdict", "causes", "exchangeable"]
    json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize("every_draw", [False, True])
def test_switched_labels_are_found_from_draws_alone(make_mcmc, rng, every_draw):
    found = diagnose(make_mcmc(mixture(rng, every_draw)))
    assert (found.verdict, found.causes) == ("aligned", ("labels",))
    assert found.exchangeable == ("mu,sigma",)
    assert found.aligned is not None
    assert found.aligned.aligned.rhat.value < 1.02
    assert [row.name for row in found.judgement.rows] == [LABELS, PREDICTIONS, SAMPLER]
    assert [row.outcome for row in found.judgement.rows] == ["warned", "passed", "passed"]
    said = "labels switch all the time" if every_draw else "R-hat falls from"
    assert said in found.judgement.sentence
    alone = {name: v.reshape(1, -1, 3) for name, v in mixture(rng, every_draw).items()}
    assert "Chains agree" not in diagnose(make_mcmc(alone)).judgement.sentence


def test_a_given_symmetry_whose_labels_stay_leaves_draws_usable(make_mcmc, rng):
    values = {"mu": np.arange(3) * 4 + rng.normal(size=(*SHAPE, 3))}
    found = diagnose(make_mcmc(values), symmetry=(Exchangeable({"mu": 0}),))
    assert (found.verdict, found.causes) == ("usable", ())
    assert "one labelling" in found.judgement.rows[0].sentence


def test_parts_with_one_posterior_under_a_given_symmetry_are_nobodys(make_mcmc, rng):
    tree = make_mcmc({"mu": rng.normal(size=(*SHAPE, 3))})
    found = diagnose(tree, symmetry=(Exchangeable({"mu": 0}),))
    assert (found.verdict, found.causes) == ("invariant", ("labels",))
    unasked = diagnose(make_mcmc({"mu": rng.normal(size=(*SHAPE, 3))}))
    assert unasked.verdict == "usable"
    assert "`mu[0..2]` have the same posterior" in " ".join(unasked.judgement.unjudged)


@pytest.mark.parametrize("word", ["a~b", "1-p"])
@pytest.mark.parametrize(
    ("distance", "before", "after"), [(6, "aligned", "usable"), (0.5, "invariant", "invariant")]
)
def test_aligned_draws_are_told_apart_where_they_were_before(
    make_mcmc, rng, word, distance, before, after
):
    """Sorted draws look like separate components, however much these overlap."""
    first, other = rng.normal(size=SHAPE), distance + rng.normal(size=SHAPE)
    swap = rng.random(SHAPE) < 0.5
    p = 1 / (1 + np.exp(-np.where(swap, -other / 2, other / 2)))
    pair = {"a": np.where(swap, other, first), "b": np.where(swap, first, other)}
    tree = make_mcmc({"p": p} if word == "1-p" else pair)
    assert diagnose(tree, symmetry=word).verdict == before
    found = diagnose(align(tree, symmetry=word).posterior)
    assert found.verdict == after
    assert ("can only sort them" in found.judgement.sentence) == (after == "invariant")


def test_a_stuck_chain_is_named_with_its_run(make_mcmc, rng):
    values = regression(rng)
    for drawn in values.values():
        drawn[2, 100:300] = drawn[2, 100]
    found = diagnose(make_mcmc(values))
    assert (found.verdict, found.causes) == ("unusable", ("stuck",))
    assert found.judgement.rows[2].outcome == "failed"


def test_chains_with_the_same_draws_are_no_evidence(make_mcmc, rng):
    values = regression(rng)
    for drawn in values.values():
        drawn[3] = drawn[1]
    found = diagnose(make_mcmc(values))
    assert (found.verdict, found.causes) == ("unusable", ("copies",))
    values["beta"][3] += 1e-9
    assert diagnose(make_mcmc(values)).causes == ()
    for drawn in values.values():
        drawn[3, 300:] = drawn[1, :200]
    shifted = diagnose(make_mcmc(values))
    assert shifted.causes == ("copies",)
    rounded = {"mu": rng.normal(size=(4, 500)).round(2)}
    assert diagnose(make_mcmc(rounded)).verdict == "usable"


@pytest.mark.parametrize("levels", [(1.0, 1.0, 1.0, 1.0), (1.0, 1.0, 1.0, 1.5)])
def test_a_parameter_that_stands_still_in_every_chain_is_stuck(make_mcmc, rng, levels):
    """It stays at an end of its range, but in no chain does it ever leave it."""
    values = {"mu": np.repeat(np.array(levels)[:, None], 100, axis=1)}
    values |= {"nu": rng.normal(size=(4, 100))} if len(set(levels)) > 1 else {}
    assert diagnose(make_mcmc(values)).causes == ("stuck",)


def test_a_probability_that_rounds_to_one_is_not_stuck(make_mcmc, rng):
    share = np.minimum(1 - 10 ** rng.normal(-6.0, 0.5, size=(*SHAPE, 2)), 1.0)
    share[2, 100:260, 1] = 1.0
    values = regression(rng) | {"share": share}
    assert "stuck" not in diagnose(make_mcmc(values)).causes
    share[2, 100:260, 1] = np.median(share)
    assert diagnose(make_mcmc(values)).causes == ("stuck",)


def test_a_metropolis_chain_repeats_draws_honestly(make_mcmc, rng):
    moves = rng.random(SHAPE) < 0.3
    moves[:, 0] = True
    last = np.maximum.accumulate(np.where(moves, np.arange(SHAPE[1]), 0), axis=1)
    values = {"x": np.take_along_axis(rng.normal(size=SHAPE), last, axis=1)}
    assert "stuck" not in diagnose(make_mcmc(values)).causes


def test_what_is_finite_in_some_draws_is_named_with_chain_and_draw(make_mcmc, rng):
    values = regression(rng)
    values["beta"][2, 412:, 1] = np.nan
    found = diagnose(make_mcmc(values))
    assert (found.verdict, found.causes) == ("unusable", ("not-finite",))
    assert "`beta[1]` is finite in some draws and not in others, first in draw 412 of chain 2" in (
        found.judgement.sentence
    )


def test_a_triangle_of_nan_and_a_constant_are_structure(make_mcmc, rng):
    factor = rng.normal(size=(*SHAPE, 3, 3)) + 5
    factor[..., *np.triu_indices(3, 1)] = np.nan
    factor[..., 0, 0] = 1.0
    found = diagnose(make_mcmc({"L": factor}))
    assert found.verdict == "usable"
    said = " ".join(found.judgement.left_out)
    assert "`L[0,1]`, `L[0,2]` and `L[1,2]`: never finite" in said
    assert "`L[0,0]`: the same in every draw" in said
    assert listed(["a", "b", "c"], shown=1) == "`a` and 2 more"


def funnel(rng):
    log_tau = np.cumsum(0.1 * rng.normal(size=SHAPE), axis=1)
    return log_tau, np.exp(log_tau)[..., None] * rng.normal(size=(*SHAPE, 8))


def of_funnel(make_mcmc, log_tau, theta):
    """A posterior whose draws diverge in the neck."""
    diverging = log_tau < np.quantile(log_tau, 0.03)
    return make_mcmc({"tau": np.exp(log_tau), "theta": theta}, stats={"diverging": diverging})


def test_a_funnel_is_named_with_both_variables(make_mcmc, rng):
    found = diagnose(of_funnel(make_mcmc, *funnel(rng)))
    assert found.verdict == "unusable"
    assert found.causes[0] == "funnel"
    (cause,) = found.judgement.causes
    assert "where `tau` is small, `theta` becomes narrow" in cause.evidence.lower()
    assert "Non-centre `theta`" in cause.remedy


def test_modes_of_unlike_height_are_named(make_mcmc, rng):
    values = regression(rng)
    values["beta"][3] += [0.0, 9.0, 4.0]
    lp = -0.5 * rng.chisquare(4, size=SHAPE)
    lp[3] -= 14
    found = diagnose(make_mcmc(values, stats={"lp": lp}))
    assert (found.verdict, found.causes) == ("unusable", ("modes",))
    assert "`ob.sample_modes(target)`" in found.judgement.causes[0].remedy


def test_a_chain_whose_parts_are_paired_otherwise_is_not_passed(make_mcmc, rng):
    """Labels change at every draw, and each variable's moments are those of the other chains."""
    mu = np.array([-2.0, 0.5, 3.0]) + 0.4 * rng.normal(size=(*SHAPE, 3))
    w = np.array([0.2, 0.3, 0.5]) + 0.02 * rng.normal(size=(*SHAPE, 3))
    w[3] = w[3][:, [2, 1, 0]]
    block = Exchangeable({"mu": 0, "w": 0})
    group = Group((block,), {"mu": (3,), "w": (3,)})
    switched = group.act(group.random(rng, SHAPE), {"mu": mu, "w": w})
    found = diagnose(make_mcmc(switched))
    assert (found.verdict, found.causes[0]) == ("unusable", "modes")
    rows = {row.name: row for row in found.judgement.rows}
    assert rows["predictions and invariants"].outcome == "failed"
    assert "`cov(mu,w)`" in rows["predictions and invariants"].sentence


def test_short_chains_are_told_how_many_draws_they_lack(make_mcmc, rng):
    walk = np.cumsum(rng.normal(size=(*SHAPE, 2)), axis=1)
    found = diagnose(make_mcmc({"x": walk}))
    assert found.verdict == "unusable"
    assert found.causes[0] == "short"
    # Of any number of chains an ESS of 400 is enough.
    assert diagnose(make_mcmc({"x": rng.normal(size=(8, 30))})).causes == ("short",)
    assert diagnose(make_mcmc({"x": rng.normal(size=(64, 30))})).verdict == "usable"


@pytest.mark.parametrize(
    ("chains", "stats", "row"),
    [
        (1, {}, "labels"),
        (4, {"diverging": None}, "sampler"),
        (4, dict.fromkeys(("diverging", "tree_depth", "energy", "lp")), "sampler"),
    ],
)
def test_what_was_not_seen_is_never_passed(make_mcmc, rng, chains, stats, row):
    values = regression(rng, (chains, 1000))
    stats = {name: None for name in stats}
    found = diagnose(make_mcmc(values, stats=stats))
    assert found.verdict == "usable"
    assert {r.name: r.outcome for r in found.judgement.rows}[row] == "not judged"
    said = "cannot reveal modes that it did not visit" if chains == 1 else "could not be judged"
    assert said in found.judgement.sentence
    assert found.judgement.unjudged


def test_generated_quantities_do_not_decide(make_mcmc, rng):
    values = regression(rng)
    values["log_lik"] = np.cumsum(rng.normal(size=(*SHAPE, 40)), axis=1)
    values["z"] = (np.repeat(np.arange(4), 500).reshape(SHAPE) % 2)[..., None]
    found = diagnose(make_mcmc(values))
    assert found.verdict == "usable"
    said = " ".join(found.judgement.left_out)
    assert "Not used for the verdict: `log_lik` (generated quantities, as their names say)" in said
    assert "Not used for the verdict: `z` (discrete" in said
    assert diagnose(make_mcmc(values), var_names="log_lik").verdict == "unusable"


def test_thresholds_have_the_names_of_arviz_and_decide(make_mcmc, rng):
    tree = make_mcmc(regression(rng))
    assert diagnose(tree, rhat_max=1.0 + 1e-9).verdict == "unusable"
    assert diagnose(tree, ess_threshold=1e6).causes == ("short",)
    assert diagnose(tree, bfmi_threshold=9.0).judgement.rows[2].outcome == "warned"


def test_draws_of_a_program_without_parameters_are_independent(make_mcmc, rng):
    flat = {"lp": np.zeros(SHAPE), "energy": np.zeros(SHAPE)}
    found = diagnose(make_mcmc({"y_rep": rng.normal(size=(*SHAPE, 3))}, stats=flat))
    assert found.verdict == "usable"
    assert "independent" in found.judgement.sentence


def test_a_networks_units_are_its_labels(make_network, rng):
    model = BayesianNetwork(Network(1, (2,), 1, "relu"))
    attrs = {"model": model.describe(), "symmetry": to_json(model.symmetry)}
    tree = make_network(rng, draws=500, swap=True, **attrs)
    found = diagnose(tree)
    assert (found.verdict, found.causes, found.exchangeable) == ("aligned", ("labels",), ())
    assert found.judgement.rows[1].outcome == "passed"
    assert "output[" in " ".join(found.aligned.invariants.index)


def test_a_chain_that_sticks_in_the_neck_of_a_funnel_is_a_funnels(make_mcmc, rng):
    log_tau, theta = funnel(rng)
    low = int(log_tau[0, :400].argmin())
    log_tau[0, low : low + 70], theta[0, low : low + 70] = log_tau[0, low], theta[0, low]
    found = diagnose(of_funnel(make_mcmc, log_tau, theta))
    assert found.causes == ("funnel", "stuck")
    assert found.judgement.rows[2].outcome == "failed"


def test_chains_from_one_point_are_mentioned(make_mcmc, rng):
    tree = make_mcmc({"mu": rng.normal(size=SHAPE)})
    for starts in ([0.5] * 4, np.linspace(-1, 1, 4)):
        tree["starts"] = xr.DataTree(xr.Dataset({"mu": ("chain", starts)}))
        found = diagnose(tree)
        assert found.verdict == "usable"
        said = " ".join(row.fact for row in found.judgement.remarks)
        assert ("All 4 chains began at the same point" in said) == (starts[0] == starts[1])
