"""References: one copy of a problem, making a short one, and opening all."""

import json
from dataclasses import replace
from functools import cache

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import onebasin as ob
from onebasin.base.precision import precision
from onebasin.inference.density.numpyro import NumpyroValues
from onebasin.inference.runs.posterior import build
from onebasin.models import Exchangeable
from onebasin.models.networks.parametrisation import OrderedNormal
from onebasin.posteriors.open import open_posterior
from onebasin.posteriors.references import FOLDER
from onebasin.truth.labelling import one_copy
from onebasin.truth.making import make
from onebasin.truth.problems import PROBLEMS

Y = np.array([-1.4, -0.6, 0.3, 0.9, 1.2])


def seen(mu, scale=1.0):
    """Two normals in equal shares, so that labels do not matter."""
    both = dist.Normal(mu, scale).log_prob(Y[:, None])
    numpyro.factor("y", jax.scipy.special.logsumexp(both, axis=1).sum())


def free():
    seen(numpyro.sample("mu", dist.Normal(0.0, 1.0).expand([2]).to_event(1)))


def in_order():
    seen(numpyro.sample("mu", OrderedNormal(1.0, 2)))


FREE = ob.Target("free", numpyro_model=free, symmetry=(Exchangeable({"mu": 0}),))
ORDERED = ob.Target("ordered", numpyro_model=in_order)
SETTINGS = ob.Nuts(chains=4, warmup=300, draws=1000)


@pytest.fixture(scope="module")
def run():
    with jax.numpy_rank_promotion("allow"):
        return ob.infer(FREE, method=SETTINGS, seed=1)


def test_draws_in_order_are_those_of_a_chain_that_never_leaves_the_order(run):
    tree, quotient = one_copy(run, FREE, ORDERED)
    mu = tree["posterior"]["mu"].values
    assert (mu[..., 0] < mu[..., 1]).all()
    assert np.array_equal(np.sort(run["posterior"]["mu"].values, axis=-1), mu)
    assert quotient["increasing"] == ["mu"]
    assert quotient["log_copies"] == pytest.approx(np.log(2))
    assert 0.4 < quotient["share_moved"] < 0.6
    direct = ob.infer(ORDERED, method=SETTINGS, seed=2)
    ours, theirs = (ob.summary(each).loc[["mu[0]", "mu[1]"]] for each in (tree, direct))
    error = np.hypot(ours["mcse_mean"], theirs["mcse_mean"])
    assert (np.abs(ours["mean"] - theirs["mean"]) < 4 * error).all()
    # A standard deviation of 1 and some 1,000 effective draws of each: 0.15 is three of the difference's errors.
    lp = [each["sample_stats"]["lp"].values.ravel() for each in (tree, direct)]
    assert np.mean(lp[0]) == pytest.approx(np.mean(lp[1]), abs=0.15)


QUOTIENTS = [problem for problem in PROBLEMS.values() if problem.quotient_of]


@pytest.mark.parametrize(
    "problem",
    [pytest.param(each, marks=[pytest.mark.slow] * (i > 0)) for i, each in enumerate(QUOTIENTS)],
    ids=lambda problem: problem.name,
)
def test_problem_is_one_copy_of_the_one_that_it_names(problem):
    sampled, target = problem.quotient_of.target(), problem.target()
    with precision("float64"):
        points = NumpyroValues(sampled).points(200, 0)
    run = build(sampled, {n: v[None] for n, v in points.items()}, {"lp": np.zeros((1, 200))}, {})
    tree, quotient = one_copy(run, sampled, target)
    assert quotient["log_copies"] == pytest.approx(np.log(2))
    assert quotient["increasing"] == ["b1"]
    assert (np.diff(tree["posterior"]["b1"].values) >= 0).all()


@pytest.mark.full
def test_a_short_reference_is_made_resumed_and_described(tmp_path):
    """Too few draws to pass; the posterior is that of the kept reference, in its labelling."""
    own = PROBLEMS["mixture-2"]
    short = replace(own, settings=replace(own.settings, chains=4, warmup=300))
    with jax.numpy_rank_promotion("allow"):
        assert not make(short, tmp_path, draws=250, thin=4, max_thin=4)
        before = (tmp_path / "mixture-2.summary.json").read_text()
        assert not make(short, tmp_path, draws=250, thin=4, max_thin=4)
    assert (tmp_path / "mixture-2.summary.json").read_text() == before
    info = json.loads((tmp_path / "mixture-2.info.json").read_text())
    kept = json.loads((FOLDER / "mixture-2" / "mixture-2.info.json").read_text())
    assert info["labelling"] == kept["labelling"]
    assert info["symmetry"] == kept["symmetry"]
    assert not info["checks_made"]["ndraws_is_10k"]
    assert info["checks_made"]["r_hat_below_1_01"]
    table, theirs = (
        json.loads((folder / "mixture-2.summary.json").read_text())["parameters"]
        for folder in (tmp_path, FOLDER / "mixture-2")
    )
    for name, (mean, sd, *_) in theirs.items():
        assert abs(table[name][0] - mean) < 0.25 * sd
        assert table[name][1] == pytest.approx(sd, rel=0.2)
    again = open_posterior(tmp_path / "mixture-2.draws.nc")
    assert ob.compare({"again": again}, truth="mixture-2").table.loc["again", "verdict"] == "agree"


NUTS = ob.Nuts(chains=4, warmup=500, draws=1500)


@cache
def run_of(name):
    with jax.numpy_rank_promotion("allow"):
        return ob.infer(PROBLEMS[name].target(), NUTS, engine="numpyro", seed=5)


def test_all_references_are_listed_and_opened():
    table = ob.truth.references()
    assert len(table) == 17
    assert table.loc["mixture-2", "symmetry"] == "mu,sigma,1-theta"
    for name in ("mixture-2", "tanh-teacher", "relu-teacher-givens+ordered"):
        draws = ob.truth.open_reference(name)["posterior"]
        sizes = (v.isel(chain=0, draw=0).size for v in draws.data_vars.values())
        assert draws.sizes["chain"] * draws.sizes["draw"] == 1000
        assert sum(sizes) == table.loc[name, "parameters"]
    with pytest.raises(ValueError, match=r"must be one of .*, mixture-2, mix.*; got 'mixture-9'"):
        ob.truth.open_reference("mixture-9")


@pytest.mark.parametrize(
    "name",
    [
        "mixture-2",
        *(pytest.param(n, marks=pytest.mark.full) for n in ("eight-schools", "mixture-3")),
    ],
)
def test_a_good_run_agrees_and_one_that_is_short_or_shifted_does_not(name):
    def judged(run):
        return ob.compare({"run": run}, truth=name, permutations=99).table.loc["run", "verdict"]

    run = run_of(name)
    assert judged(run) == "agree"
    assert judged(run.isel(draw=slice(0, 30))) == "undecided"
    shifted = run.copy()
    mu = run["posterior"]["mu"]
    spread = mu.std(dim=("chain", "draw")).min()
    shifted["posterior"] = run["posterior"].to_dataset().assign(mu=mu + 0.3 * spread)
    assert judged(shifted) == "differ"
