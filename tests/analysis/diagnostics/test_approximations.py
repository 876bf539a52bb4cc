"""Verdicts on weighted draws, where tails are known."""

from __future__ import annotations

import re

import numpy as np
import pytest
import xarray as xr
from scipy.stats import norm, t

import onebasin as ob
from onebasin.posteriors import schema
from onebasin.posteriors.pareto import (
    khat_of_weights,
    known,
    pareto_khat,
    smoothed,
    tails_of,
    worth,
)

DRAWS = 4000


def exponential_quantiles(count: int) -> np.ndarray:
    return -np.log1p(-(np.arange(count) + 0.5) / count)


@pytest.mark.parametrize("k", [0.4, 1.3])
def test_khat_of_weights_is_that_of_their_tail(k):
    """Weights exp(k E) with exponential E have Pareto tails of shape k."""
    log_ratio = np.random.default_rng(1).permutation(k * exponential_quantiles(DRAWS))
    assert khat_of_weights(log_ratio) == pytest.approx(k, abs=0.1)


def test_even_weights_have_no_tail_and_lost_draws_no_weight(rng):
    assert khat_of_weights(0.1 * rng.normal(size=DRAWS)) == -np.inf
    bounded = np.repeat([-2.0, 0.0, 1.2], [1960, 1960, 80]) + 0.01 * rng.normal(size=DRAWS)
    assert worth(bounded) < 0.6 * DRAWS and pareto_khat(bounded) > 1
    assert khat_of_weights(bounded) == -np.inf
    log_ratio = np.append(rng.normal(size=DRAWS), [-np.inf, np.nan])
    weights = np.exp(smoothed(log_ratio))
    assert weights.sum() == pytest.approx(1)
    assert (weights[-2:] == 0).all()
    assert weights.argmax() == log_ratio[:-1].argmax()
    assert worth(smoothed(np.zeros(50))) == pytest.approx(50)


def test_a_square_has_twice_the_tail_of_its_root():
    """With even weights, |x|^p of x with Pareto tails of shape k has tails of shape k p."""
    x = np.exp(0.45 * exponential_quantiles(DRAWS))[:, None]
    even = np.zeros(DRAWS)
    tails = tails_of(x, even, smoothed(even))
    assert tails.mean[0] == pytest.approx(0.45, abs=0.1)
    assert tails.square[0] == pytest.approx(0.9, abs=0.15)
    still = tails_of(np.ones((DRAWS, 1)), even, smoothed(even))
    assert np.isnan(still.mean).all()


def tree(rng, *, k: float = 0.4, tail: float = 0.0, drift: float = 0.0) -> xr.DataTree:
    """Weighted draws of two parameters: weights of a tail, the second parameter with one of its own."""
    log_ratio = rng.permutation(k * exponential_quantiles(DRAWS))
    values = {"a": rng.normal(size=DRAWS), "b": rng.normal(size=DRAWS)}
    if tail:
        values["b"] = np.exp(tail * exponential_quantiles(DRAWS))
    log_weight = smoothed(log_ratio)
    rows = rng.choice(DRAWS, size=1000, p=np.exp(log_weight))
    changes = {"a": [0.01 * drift, 0.0, 0.0, 0.0], "b": np.zeros(4)}
    errors = np.array([0.01, 0.005, 0.005, 0.005])
    moved = {n: (("value", "statistic"), np.stack([c, errors])) for n, c in changes.items()}
    stats = {"lp": log_ratio[rows], "log_q": np.zeros(1000)}
    return xr.DataTree.from_dict(
        {
            "posterior": xr.Dataset(
                {n: (("chain", "draw"), v[rows][None]) for n, v in values.items()}
            ),
            "sample_stats": xr.Dataset({n: (("chain", "draw"), v[None]) for n, v in stats.items()}),
            "weighted": xr.Dataset({n: ("sample", v) for n, v in values.items()}),
            "variational": xr.Dataset(
                {"log_ratio": ("sample", log_ratio), "log_weight": ("sample", log_weight)}
            ),
            "drift": xr.Dataset(moved),
        }
    )


@pytest.mark.parametrize(
    ("made", "answer", "words"),
    [
        ({}, "usable", "independent ones, and k-hat of the weights is 0."),
        ({"k": 0.9}, "unusable", ", above 0.70: a few draws dominate"),
        ({"k": 0.6}, "unusable", "19% of them, and k-hat of the weights is 0.59: the draws"),
        (
            {"tail": 0.45},
            "partly",
            "the means, other sds and other quantiles. Do not use the sd of `b`; the quantiles of `b`",
        ),
        (
            {"tail": 0.95},
            "partly",
            "the other means, other sds and quantiles. Do not use the mean and sd of `b`",
        ),
        ({"drift": -5.0}, "unusable", "from the draws move away: `a` by 5.0 standard errors"),
    ],
)
def test_a_verdict_names_what_cannot_be_used(rng, made, answer, words):
    diagnosis = ob.diagnose(tree(rng, **made))
    assert diagnosis.verdict == answer
    assert words in diagnosis.judgement.sentence
    assert ("NUTS" in diagnosis.judgement.sentence) == (answer != "usable")
    found = diagnosis.to_dict()
    assert found["verdict"] == answer


@pytest.mark.parametrize(
    ("gap", "share", "answer", "row"),
    [
        (8.0, 0.5, "aligned", "Labels switch"),
        (8.0, 0.1, "aligned", "Labels switch"),
        (8.0, 0.0, "usable", "All draws have one labelling"),
        (0.0, 0.5, "invariant", "cannot tell the components apart"),
    ],
)
def test_draws_of_several_labellings_are_usable_modulo_labels(rng, gap, share, answer, row):
    """A fit at every optimum of a mixture: the mean of a component is one over all components."""
    fit = tree(rng, k=0.0)
    mu = rng.normal([-gap / 2, gap / 2], size=(1000, 2))
    mu = np.where(rng.random((1000, 1)) < share, mu[:, ::-1], mu)
    posterior = fit["posterior"].to_dataset().assign(mu=(("chain", "draw", "part"), mu[None]))
    fit["posterior"] = xr.DataTree(posterior)
    fit.attrs["symmetry"] = schema.encode_symmetry((ob.Exchangeable({"mu": 0}),))
    diagnosis = ob.diagnose(fit)
    assert diagnosis.verdict == answer
    assert row in diagnosis.judgement.rows[0].sentence
    if answer == "aligned":
        assert np.abs(diagnosis.shown.loc[["mu[0]", "mu[1]"], "mean"]).min() > 3
        assert diagnosis.aligned.switching.distance == pytest.approx(gap, abs=0.5)
        after = ob.diagnose(diagnosis.aligned.alignment.posterior)
        assert after.verdict == "usable" and after.judgement.rows[0].outcome == "passed"
        assert not any("overlap" in warning for warning in diagnosis.aligned.warnings)


def test_labels_are_judged_by_the_search_before_the_run(rng):
    fit = tree(rng)
    assert ob.diagnose(fit).judgement.rows[0].outcome == "not judged"
    fit.attrs["symmetry_found"] = '{"exchangeable": [], "blocks": [], "open": []}'
    assert ob.diagnose(fit).judgement.rows[0].outcome == "passed"
    fit.attrs["symmetry_found"] = '{"exchangeable": [], "blocks": [], "open": ["mu"]}'
    assert ob.diagnose(fit).judgement.rows[0].outcome == "not judged"


@pytest.mark.parametrize(
    ("follows", "shift", "answer"),
    [(False, 0.0, "usable"), (False, 6.0, "aligned"), (True, 6.0, "unusable")],
)
def test_several_fits_agree_modulo_labels_or_are_not_used(
    make_variational, rng, follows, shift, answer
):
    """Every other fit exchanges `a` and `b`; `c`, which differs with them, has no word of a symmetry."""
    shape = (4, 500)
    a, b, c = rng.normal(0, 0.3, shape), rng.normal(shift, 0.5, shape), rng.normal(size=shape)
    other = (np.arange(4) % 2 == 1)[:, None] & (shift > 0)
    draws = {"a": np.where(other, b, a), "b": np.where(other, a, b), "c": c + 3.0 * other * follows}
    lp = -0.5 * rng.chisquare(4, size=shape)
    fits = make_variational(draws, lp=lp, log_q=lp + 0.1 * rng.normal(size=shape))
    found = ob.diagnose(fits)
    assert found.verdict == answer
    assert ("The fits disagree" in found.judgement.sentence) == follows


def plain(rng, sds: tuple[float, ...], **shifts: float) -> xr.DataTree:
    """Draws of a normal fit of standard normals, with sds of its own and a shift of its first mean."""
    shift = shifts.get("mean", 0.0)
    z = rng.permuted(np.tile(norm.ppf((np.arange(DRAWS) + 0.5) / DRAWS), (len(sds), 1)), axis=1)
    x = np.array(sds)[:, None] * z
    x[0] += shift
    log_q = (-0.5 * z**2 - np.log(sds)[:, None]).sum(axis=0)
    stats = {"lp": -0.5 * (x**2).sum(axis=0), "log_q": log_q}
    posterior = xr.Dataset({f"x{i}": (("chain", "draw"), v[None]) for i, v in enumerate(x)})
    statistics = xr.Dataset({n: (("chain", "draw"), v[None]) for n, v in stats.items()})
    tree = xr.DataTree.from_dict({"posterior": posterior, "sample_stats": statistics})
    tree.attrs["method"] = "advi-meanfield"
    return tree


@pytest.mark.parametrize(
    ("sds", "mean", "answer", "named"),
    [
        ((1.0, 1.0, 1.0), 0.0, "usable", set()),
        ((1.0, 1.0, 1.0), 0.05, "usable", set()),
        ((1.15, 1.0, 1.0), 0.0, "partly", {"x0"}),  # although k-hat is good
        ((1.0, 1.0, 1.0), 0.3, "partly", {"x0"}),
        ((0.7, 0.7, 1.0), 0.0, "unusable", set()),
    ],
)
def test_a_plain_fit_is_judged_by_what_weights_change(rng, sds, mean, answer, named):
    """A small k-hat says that weights could correct the draws; it does not say that they are right."""
    found = ob.diagnose(plain(rng, sds, mean=mean))
    assert found.verdict == answer
    if named:
        (cause,) = found.judgement.causes
        assert {*re.findall("`(.*?)`", cause.fact)} == named
        assert "weights=True" in cause.remedy


@pytest.mark.parametrize(
    ("change", "error", "lacks"),
    [
        ([0, 0, 0.02, 0], 0.004, "quantiles of `a`"),  # 2 % more below the 5 % quantile
        ([0, 0, 0, 0], 0.02, "quantiles of `a`"),  # an error that would not have been seen
        ([0, 0.03, 0, 0], 0.01, "sd of `a`"),
        ([0.06, 0, 0, 0], 0.02, "mean and sd of `a`"),
    ],
)
def test_what_short_chains_could_not_confirm_is_not_claimed(rng, change, error, lacks):
    fit = tree(rng)
    values = np.stack([np.array(change, float), np.full(4, error)])
    if error > 0.01:  # small enough for location and spread
        values[1, :2] = 0.015, 0.006
    fit["drift"]["a"][:] = values
    found = ob.diagnose(fit)
    assert found.verdict == "partly"
    assert lacks in found.judgement.sentence


def test_a_standard_deviation_needs_a_tail_that_has_a_variance():
    """Even weights, exact draws and any k-hat: of t distributions the first has hardly a variance, the second has."""
    places = np.random.default_rng(3).permutation((np.arange(10_000) + 0.5) / 10_000)
    even = np.zeros(10_000)
    same = smoothed(even)  # also what they are compared with, so that no error decides
    lacks = [
        known(t.ppf(places, nu)[:, None], even, same, np.exp(same)).lacks((9.0, 9.0, 9.0))[:, 0]
        for nu in (2.05, 5.0)
    ]
    np.testing.assert_array_equal(lacks, [[False, True, False], [False, False, False]])


def test_numbers_that_cannot_be_computed_are_not_claimed():
    """A draw without weight matters to nothing, however large; one with weight that is infinite to everything."""
    values = np.random.default_rng(4).normal(size=(DRAWS, 1))
    for first, value, lacks in (
        (-np.inf, 1e200, False),
        (-np.inf, np.inf, False),
        (0.0, np.inf, True),
    ):
        values[0] = value
        log_ratio = np.append(first, np.zeros(DRAWS - 1))
        found = known(values, log_ratio, smoothed(log_ratio)).lacks((0.7, 0.7, 0.7))
        assert (found == lacks).all()


def test_a_mean_of_few_alike_weights_is_not_claimed():
    """40 of 200 draws have all the weight: k-hat is NaN, as of what never changes, which lacks nothing."""
    values = np.column_stack([np.arange(200) % 2, np.ones(200)])
    log_ratio = np.where(np.arange(200) < 40, 0.0, -30.0)
    found = known(values, log_ratio, smoothed(log_ratio))
    assert np.isnan(found.khats[0]).all()
    assert found.lacks((0.7, 0.7, 0.7)).any(axis=0).tolist() == [True, False]


def test_resampled_draws_are_judged_by_their_distinct_ones(rng):
    """As CmdStan's Pathfinder writes them: the weights are used up, and no draw of small weight is left."""
    fit = plain(rng, (1.3, 1.3))
    ratio = (fit.sample_stats.lp - fit.sample_stats.log_q).to_numpy()[0]
    weights = np.exp(smoothed(ratio))
    for count, answer in ((2000, "usable"), (100, "unusable")):
        rows = rng.choice(DRAWS, size=count, p=weights)
        picked = xr.DataTree.from_dict(
            {
                n: g.to_dataset().isel(draw=rows).assign_coords(draw=np.arange(count))
                for n, g in fit.children.items()
            }
        )
        picked.attrs["method"] = "pathfinder"
        assert ob.diagnose(picked).verdict == answer
