"""Comparison of moments: equal, shifted, stuck and constant posteriors."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy.stats import norm

from onebasin.analysis.compare.compare import compare
from onebasin.analysis.compare.distances import ERRORS, SHIFT, compare_moments
from onebasin.models.symmetry.blocks import to_json
from onebasin.models.symmetry.evidence import Evidence
from onebasin.models.symmetry.exchangeable import Exchangeable
from onebasin.posteriors import schema

from ..conftest import autoregression, mcmc_tree

SHAPE = (4, 1000, 3)


def test_compare_moments_agrees_on_two_samples_of_one_distribution(make_mcmc, rng):
    a, b = (make_mcmc({"mu": rng.normal(size=SHAPE)}) for _ in range(2))
    comparison = compare_moments(a, b)
    assert comparison.verdict == "agree"
    assert comparison.gated == ()
    assert comparison.max_abs_z < comparison.z_bound
    assert comparison.z_bound == pytest.approx(norm.isf(ERRORS / 2 / 3))
    single = make_mcmc({"mu": rng.normal(size=(1, 1000, 3))})
    assert compare_moments(a, single).verdict == "undecided"


def test_compare_moments_measures_a_shift_in_both_units(make_mcmc, rng):
    draws = rng.normal(size=SHAPE)
    shift = np.asarray([0.0, 0.0, -0.5])
    comparison = compare_moments(make_mcmc({"mu": draws}), make_mcmc({"mu": draws + shift}))
    row = comparison.table.loc["mu[2]"]
    sd = draws[..., 2].std(ddof=1)
    assert row["difference"] == pytest.approx(-0.5)
    assert row["d"] == pytest.approx(-0.5 / sd)
    mcse = sd / math.sqrt(draws[..., 2].size)
    assert row["z"] == pytest.approx(-0.5 / (math.sqrt(2) * mcse), rel=0.2)
    assert comparison.table.loc["mu[0]", "z"] == 0.0
    assert comparison.max_abs_d == abs(row["d"])
    assert comparison.verdict == "differ"


def test_compare_moments_does_not_let_a_stuck_chain_pass(make_mcmc, rng):
    a, b = rng.normal(size=SHAPE), rng.normal(size=SHAPE)
    b[1, :, 0] += 50.0  # the mean is 12 sd off, but so is the Monte Carlo error
    comparison = compare_moments(make_mcmc({"mu": a}), make_mcmc({"mu": b}))
    assert abs(comparison.table.loc["mu[0]", "z"]) < comparison.z_bound  # what the gate is for
    assert comparison.gated == ("mu[0]",)
    assert comparison.verdict == "undecided"


def test_compare_moments_lets_a_variational_fit_pass_on_ess(make_mcmc, make_variational, rng):
    draws = rng.normal(size=(1, 1000))
    fit = make_variational({"mu": draws}, lp=draws, log_q=draws)
    chain = make_mcmc({"mu": rng.normal(size=SHAPE[:2])})
    assert compare_moments(chain, fit).verdict == "agree"


def test_compare_moments_compares_constants_exactly(make_mcmc, rng):
    draws = {"mu": rng.normal(size=SHAPE[:2]), "fixed": np.full(SHAPE[:2], 2.0)}
    a = make_mcmc(draws)
    same = compare_moments(a, make_mcmc(draws))
    assert same.verdict == "agree"
    assert same.table.loc["fixed", ["z", "d"]].tolist() == [0.0, 0.0]
    other = compare_moments(a, make_mcmc(draws | {"fixed": np.full(SHAPE[:2], 2.5)}))
    assert other.verdict == "differ"
    assert other.max_abs_z == math.inf


def test_what_cannot_be_computed_agrees_with_nothing(make_mcmc, rng, monkeypatch):
    from onebasin.analysis.compare import distances

    trees = [make_mcmc({"mu": rng.normal(size=SHAPE)}) for _ in range(2)]
    assert compare_moments(*trees).verdict == "agree"
    whole = distances.summary
    monkeypatch.setattr(distances, "summary", lambda v: whole(v).assign(mcse_mean=np.nan))
    found = compare_moments(*trees)
    assert found.verdict == "undecided"
    assert found.gated == ("mu[0]", "mu[1]", "mu[2]")


def test_a_small_sample_that_lacks_what_lies_far_out_does_not_differ(make_mcmc):
    """Of a very skewed law: its sd is then far too small, and so is its error; 33 of 400 seeds are like this one."""
    rng = np.random.default_rng(92)
    long, short = (rng.gamma(0.02, size=(4, draws)) for draws in (5000, 150))
    comparison = compare_moments(make_mcmc({"mu": long}), make_mcmc({"mu": short}))
    assert comparison.gated == ()
    assert comparison.verdict == "agree"
    row = comparison.table.loc["mu"]
    apart = math.hypot(row["sd_a"] / math.sqrt(long.size), row["sd_b"] / math.sqrt(short.size))
    assert abs(row["difference"]) / apart > comparison.z_bound > abs(row["z"])


def test_an_sd_that_is_too_small_differs_and_chance_does_not(make_mcmc, rng):
    """Means agree, so that a fit with sds 40 % too small would pass for the posterior."""
    a, b = (rng.normal(size=(4, 500, 3)) for _ in range(2))
    b[..., 1] *= 0.6
    found = compare_moments(make_mcmc({"mu": a}), make_mcmc({"mu": b}))
    assert (found.verdict, found.spreads) == ("differ", ["mu[1]"])
    row = found.table.loc["mu[1]"]
    assert row["sd_ratio_low"] < 0.6 < row["sd_ratio_high"] < 0.66
    heavy = [np.random.default_rng(92).gamma(0.02, size=(4, draws)) for draws in (5000, 150)]
    assert compare_moments(*(make_mcmc({"mu": each}) for each in heavy)).spreads == []


@pytest.mark.parametrize(("chains", "draws", "size", "rho"), [(4, 60, 2, 0.0), (4, 250, 10, 0.5)])
def test_equal_distributions_are_called_different_in_at_most_five_percent(chains, draws, size, rho):
    rng, repeats = np.random.default_rng(31), 60
    shape = (chains, draws, size)
    pairs = ([{"x": autoregression(rng, rho, shape)} for _ in "ab"] for _ in range(repeats))
    found = [compare_moments(*pair).verdict for pair in pairs]
    # Of 60 comparisons with a rate of 0.03, more than 6 differ once in 300 runs.
    assert found.count("differ") <= 6, found.count("differ")


def test_a_shift_is_seen_as_often_as_the_stated_power():
    rng, repeats = np.random.default_rng(32), 80
    found = []
    for _ in range(repeats):
        a, b = (rng.normal(size=(4, 250, 10)) for _ in range(2))
        b[..., 3] += SHIFT
        found.append(compare_moments({"x": a}, {"x": b}))
    power = np.mean([each.power for each in found])
    seen = np.mean([each.verdict == "differ" for each in found])
    assert 0.6 < power < 0.95
    # The stated power is that of the least precise mean: a little less than this one's.
    assert -0.08 < seen - power < 0.1, (seen, power)


def test_two_models_are_compared_on_what_they_share(make_mcmc, rng):
    draws = {"mu": rng.normal(size=(4, 300, 2)), "wide": rng.normal(size=(4, 300, 3))}
    one = make_mcmc(draws | {"tau": rng.normal(size=(4, 300))})
    two = make_mcmc({"mu": rng.normal(size=(4, 300, 2)), "wide": draws["wide"][..., :2]})
    found = compare({"one": one, "two": two}, truth="one", permutations=99)
    assert list(found.means.index) == ["mu[0]", "mu[1]"]
    assert any("`one` has `wide`, `tau`" in note for note in found.notes), found.notes
    with pytest.raises(ValueError, match="share no variable with the same name and shape"):
        compare({"one": one, "two": make_mcmc({"wide": draws["wide"][..., :2]})}, truth="one")


@pytest.mark.parametrize(
    ("evidence", "left_out"),
    [
        (None, ("total", "counts")),
        (Evidence(points=5, left_behind=("counts",)), ("counts",)),
        (Evidence(points=5, skipped=("nothing derived was computed",)), ("total", "counts")),
    ],
)
def test_computed_quantities_that_may_carry_labels_are_left_out_and_named(evidence, left_out):
    rng = np.random.default_rng(34)
    kinds = {"mu": "parameter", "tau": "parameter", "total": "transformed", "counts": "generated"}
    attrs = {
        schema.SYMMETRY: to_json((Exchangeable({"mu": 0}),)),
        schema.KINDS: json.dumps(kinds),
        **({} if evidence is None else {schema.SYMMETRY_EVIDENCE: evidence.to_json()}),
    }
    trees = {}
    for name, order in (("a", 1), ("b", -1)):
        mu = (rng.normal(size=(4, 500, 2)) * 0.1 + [-1.0, 1.0])[..., ::order]
        draws = {"mu": mu, "tau": rng.normal(size=(4, 500)), "total": mu.sum(axis=-1)}
        # Counts follow the labels, which differ between the two posteriors.
        counts = rng.poisson(np.exp(mu + 2.0))
        trees[name] = mcmc_tree(draws | {"counts": counts}, attrs=attrs)
    found = compare(trees, truth="a", permutations=99)
    named = " ".join(found.warnings)
    assert f"Left out: {', '.join(f'`{name}`' for name in left_out)}." in named
    assert not {*left_out} & {name.split("[")[0] for name in found.means.index}
    assert "means agree" in found.sentences[0], found.sentences
